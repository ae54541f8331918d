package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// completeTimeout is how long a shell waits for names. Without an answer it offers none.
const completeTimeout = time.Second

// completer offers what a person who types may mean.
type completer = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeNames completes the flags that take names, where the command has them, with those that are known in the cluster chosen.
func completeNames(cmd *cobra.Command, from *readerFlags, cluster *string) {
	for flag, kind := range map[string]trail.NameKind{"cluster": trail.NameCluster, "namespace": trail.NameNamespace, "node": trail.NameNode, "vm": trail.NameVM} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			within := ""
			if kind == trail.NameVM {
				within = namespaceOf(cmd)
			}
			q := trail.NameQuery{Kind: kind, Prefix: within + typed}
			if kind != trail.NameCluster {
				q.Cluster = *cluster
			}
			return findCompletions(cmd, from, q, within)
		})
	}
}

// namespaceOf returns the namespace chosen, with a slash; nothing where none is.
func namespaceOf(cmd *cobra.Command) string {
	if namespace, err := cmd.Flags().GetString("namespace"); err == nil && namespace != "" {
		return namespace + "/"
	}
	return ""
}

// findCompletions looks names up, and says nothing of what goes wrong: that would stand in the middle of what is typed. What they begin
// with is cut off.
func findCompletions(cmd *cobra.Command, from *readerFlags, q trail.NameQuery, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	from.notes = nil
	if completeFlags(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := from.openSource(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	found, err := s.listNames(ctx, q)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], begin)
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeVM completes NAMESPACE/VM.
func completeVM(q *question) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return findCompletions(cmd, &q.from, trail.NameQuery{Kind: trail.NameVM, Cluster: q.cluster, Prefix: typed}, "")
	}
}

// completeNode completes the name of a node.
func completeNode(q *question) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return findCompletions(cmd, &q.from, trail.NameQuery{Kind: trail.NameNode, Cluster: q.cluster, Prefix: typed}, "")
	}
}

// completeVMOrNode completes NAMESPACE/VM and node NODE.
func completeVMOrNode(q *question) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 && args[0] == nodeWord {
			return completeNode(q)(cmd, nil, typed)
		}
		found, directive := completeVM(q)(cmd, args, typed)
		if len(args) == 0 && strings.HasPrefix(nodeWord, typed) {
			found = append(found, cobra.CompletionWithDesc(nodeWord, "a node, not a VM"))
		}
		return found, directive
	}
}
