package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// newGenerateMan makes the command that writes the manual pages. It is for who packs evictrail (test/release), so help
// does not list it.
func newGenerateMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a manual page for every command, COMMAND.1",
		Hidden: true,
		Args:   asUsage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if err := os.MkdirAll(dirs[0], 0o750); err != nil {
				return fmt.Errorf("make output directory: %w", err)
			}
			root := newRoot()
			prepareMan(root)
			return doc.GenManTree(root, manHeader(), dirs[0])
		},
	}
}

// manHeader returns the header of the manual pages. Their date is that of the build, so that one commit has one set of
// pages.
func manHeader() *doc.GenManHeader {
	built, err := time.Parse("20060102-15:04:05", version.BuildDate)
	if err != nil {
		built = time.Unix(0, 0).UTC() // a build that has no date
	}
	return &doc.GenManHeader{Section: "1", Date: &built, Source: "evictrail " + version.Version, Manual: "evictrail"}
}

// prepareMan changes the texts of a command, and of those below it, to the Markdown that cobra expects of them.
func prepareMan(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true // its date is in the header
	cmd.Short = escapeMarkdown(cmd.Short)
	cmd.Long = strings.TrimSpace(renderText(cmd.Long))
	cmd.Flags().VisitAll(escapeUsage)
	cmd.PersistentFlags().VisitAll(escapeUsage)
	for _, sub := range cmd.Commands() {
		prepareMan(sub)
	}
}

// escapeUsage changes the text of a flag. One that several commands share is changed once.
func escapeUsage(f *pflag.Flag) {
	const done = "man"
	if f.Annotations[done] != nil {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	if f.Usage = escapeMarkdown(usage); value != "" && value != "string" {
		f.Usage = "*" + escapeMarkdown(value) + "*: " + f.Usage
	}
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[done] = []string{}
}
