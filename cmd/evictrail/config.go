package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/cmd/evictrail/config"
)

// completeFlags sets the flags that the command line left out from the environment and the configuration file.
func completeFlags(cmd *cobra.Command) error {
	err := config.Complete(cmd.Flags(), os.Getenv, func() (*config.File, error) {
		named := cmd.Flags().Lookup(config.FileFlag)
		if named == nil || named.Value.String() == "" {
			return nil, nil
		}
		return readConfig(named.Value.String())
	})
	if err != nil {
		return &usageError{err}
	}
	return nil
}

func readConfig(path string) (*config.File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer func() { _ = r.Close() }()
	return config.Decode(path, r)
}

// addConfigFlag adds the flag that names the configuration file.
func addConfigFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, config.FileFlag, "", "`file` with settings, named as the flags: 'evictrail config print --all' writes one with all of them (docs/configuration.md)")
	_ = cmd.MarkFlagFilename(config.FileFlag, "yaml", "yml")
}

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show the configuration of run, and where each setting is from", GroupID: "keep", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigPrint())
	return cmd
}

func newConfigPrint() *cobra.Command {
	var f runFlags
	var all bool
	cmd := &cobra.Command{
		Use: "print", Short: "Print the settings in force, as a configuration file", Args: asUsage(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Print the settings that "run" would have with the same flags, environment and file, as a file for --config, each with where it is from.
Passwords in URLs are hidden. Settings that have their defaults are left out; --all writes them as comments, with what they mean, to begin a file
of your own.

Exit status 2 where "run" would not start with them; standard error says why.`,
		Example: `  evictrail config print --config evictrail.yaml   # is it right, and what does the environment change?
  evictrail config print --all > evictrail.yaml    # a file to begin with
  kubectl -n evictrail exec evictrail-0 -- evictrail config print`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.printConfig(cmd, all) },
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "write the settings that have their defaults, too, as comments")
	config.LeaveToCommandLine(cmd.Flags(), "all")
	return cmd
}

func (f *runFlags) printConfig(cmd *cobra.Command, all bool) error {
	text, err := config.Write(cmd.Flags(), all)
	if err != nil {
		return err
	}
	printTextf(cmd.OutOrStdout(), "%s", text)
	if err := f.checkConfig(cmd); err != nil {
		return usageErrorf("run would not start with this:\n%w", err)
	}
	return nil
}

// checkConfig returns what is wrong with the flags alone, all of it.
func (f *runFlags) checkConfig(cmd *cobra.Command) error {
	_, level := f.log.parseLevel()
	errs := append(f.listMistakes(cmd), level, f.log.checkFormat())
	if f.db.url != "" {
		errs = append(errs, f.db.checkFlags())
	}
	return errors.Join(errs...)
}
