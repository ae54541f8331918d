package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// textFile is a file that "generate" writes or prints.
type textFile struct{ name, text string }

// formatCompletions explains completions, one a line, each ending with a newline: the name, wide enough for all, and what it is.
func formatCompletions(width int, all []cobra.Completion) string {
	var out strings.Builder
	for _, c := range all {
		name, short, _ := strings.Cut(c, "\t")
		_, _ = fmt.Fprintf(&out, "  %-*s %s\n", width, name, short)
	}
	return out.String()
}

// withoutGiven offers those that were not given yet.
func withoutGiven(all []cobra.Completion, given []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	left := slices.DeleteFunc(slices.Clone(all), func(c cobra.Completion) bool {
		name, _, _ := strings.Cut(c, "\t")
		return slices.Contains(given, name)
	})
	return left, cobra.ShellCompDirectiveNoFileComp
}

// addDir adds the flag that says where the files are written; each says what.
func addDir(cmd *cobra.Command, dir *string, each string) {
	cmd.Flags().StringVar(dir, "dir", "", "write "+each+" into this `directory` instead of printing")
	_ = cmd.MarkFlagDirname("dir")
}

// outputFiles prints files, YAML as documents, or writes them into a directory where one is named and prints their paths. Files of
// the same names are replaced.
func outputFiles(out io.Writer, dir string, files []textFile) error {
	if dir != "" {
		return writeFiles(out, dir, files)
	}
	for i, f := range files {
		if i > 0 && strings.HasSuffix(f.name, ".yaml") {
			f.text = "---\n" + f.text
		}
		if _, err := io.WriteString(out, f.text); err != nil {
			return err
		}
	}
	return nil
}

func writeFiles(out io.Writer, dir string, files []textFile) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make output directory: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		_, _ = fmt.Fprintln(out, path)
	}
	return nil
}
