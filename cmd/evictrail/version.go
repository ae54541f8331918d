package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

// A build without the linker flags of the Makefile, such as that of `go install`, says what Go knows of it.
func init() {
	if info, ok := debug.ReadBuildInfo(); ok {
		fillVersion(info)
	}
}

// fillVersion sets what the linker flags have left empty.
func fillVersion(info *debug.BuildInfo) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version.Version = cmp.Or(version.Version, info.Main.Version, "(devel)")
	version.Branch = cmp.Or(version.Branch, "unknown")
	version.BuildUser = cmp.Or(version.BuildUser, "unknown")
	version.BuildDate = cmp.Or(version.BuildDate, settings["vcs.time"], "unknown")
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "keep", Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Print("evictrail"))
			return err
		},
	}
}
