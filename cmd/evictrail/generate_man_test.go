package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestManNamesEverything looks for a page of each command that help lists, with each of its flags, and for no other
// page.
func TestManNamesEverything(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man")
	code, _, stderr := runCommand(t, "generate", "man", dir)
	require.Equal(t, exitFound, code, stderr)
	pages := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		if cmd.Hidden {
			require.NoFileExists(t, path)
			return
		}
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		pages++
		require.NotContains(t, string(page), "Auto generated", path)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				require.Contains(t, string(page), `\fB--`+f.Name+`\fP`, path)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
	require.Greater(t, pages, 25)
	manifests, err := os.ReadFile(filepath.Join(dir, "evictrail-generate-manifests.1"))
	require.NoError(t, err)
	require.Contains(
		t,
		string(manifests),
		"\n.EX\naudit-policy     which requests a kube-apiserver writes down",
		"what lines up stays so",
	)
	require.Contains(t, string(manifests), `\fIfile\fP: file with the CA`)
}

func TestManNeedsADirectory(t *testing.T) {
	t.Parallel()
	code, _, _ := runCommand(t, "generate", "man")
	require.Equal(t, exitUsage, code)
}
