package main

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestReferenceNamesEverything looks for each command that help lists and each of its flags, and for nothing that help hides.
func TestReferenceNamesEverything(t *testing.T) {
	t.Parallel()
	code, text, stderr := runCommand(t, "generate", "cli-reference")
	require.Equal(t, exitFound, code, stderr)
	commands, flags := 0, 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			heading := "\n### " + sub.CommandPath() + "\n"
			if sub.Hidden {
				require.NotContains(t, text, heading)
				continue
			}
			require.Contains(t, text, heading)
			require.Contains(t, text, escapeMarkdown(sub.Short))
			if sub.Example != "" {
				require.Contains(t, text, renderCode(sub.Example))
			}
			commands++
			sub.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					require.Contains(t, text, "--"+f.Name)
					flags++
				}
			})
			check(sub)
		}
	}
	check(newRoot())
	require.Greater(t, commands, 25)
	require.Greater(t, flags, 150)
	for _, s := range exitStatuses {
		require.Contains(t, text, fmt.Sprintf("| %d | %s |", s.status, s.meaning))
	}
	require.Contains(t, text, "| `-o, --output format` | format: text or json (default `text`) |")
	require.NotContains(t, text, "| `--help`")
}
