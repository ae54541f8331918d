package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// refuseUnknownCommand refuses arguments of a command that only has others below it, and names those that are spelled most alike.
func refuseUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	for cmd.SuggestionsMinimumDistance = 1; cmd.SuggestionsMinimumDistance <= 2; cmd.SuggestionsMinimumDistance++ {
		if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
			slices.Sort(alike)
			return usageErrorf("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), strings.Join(alike, " or "))
		}
	}
	return usageErrorf("unknown command %q for %q", args[0], cmd.CommandPath())
}

// withNodeHint makes a question about a VM that is named without its namespace suggest the node of that name, where there is one.
func withNodeHint(cmd *cobra.Command) *cobra.Command {
	ask := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := ask(cmd, args)
		var usage *usageError
		if len(args) == 1 && isName(args[0]) && errors.As(err, &usage) && isKnownNode(cmd, args[0]) {
			return usageErrorf("%w; %s is a node: `%s node %s`", err, args[0], cmd.CommandPath(), args[0])
		}
		return err
	}
	return cmd
}

// isKnownNode reports whether a node of that name is recorded where the flags of a command say to ask. Where nobody answers soon, it is not.
func isKnownNode(cmd *cobra.Command, name string) bool {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	found, err := findNodes(ctx, cmd, name)
	return err == nil && slices.Contains(found, name)
}

// findNodes returns the nodes whose names begin so, where the flags of a command say to ask.
func findNodes(ctx context.Context, cmd *cobra.Command, prefix string) ([]string, error) {
	from := readerFlags{changed: cmd.Flags().Changed}
	q := trail.NameQuery{Kind: trail.NameNode, Prefix: prefix}
	for flag, into := range map[string]*string{
		"cluster": &q.Cluster, "database-url": &from.database.url, "database-password-file": &from.database.passwordFile,
		"database-read-url": &from.database.readURL,
		"server":            &from.server.URL, "server-ca-file": &from.server.CAFile, "server-token-file": &from.server.TokenFile,
	} {
		value, err := cmd.Flags().GetString(flag)
		if err != nil {
			return nil, err
		}
		*into = value
	}
	var err error
	if from.database.readMaxLag, err = cmd.Flags().GetDuration("database-read-max-lag"); err != nil {
		return nil, err
	}
	if from.database.insecure, err = cmd.Flags().GetBool("database-insecure"); err != nil {
		return nil, err
	}
	s, err := from.openSource(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.listNames(ctx, q)
}
