//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", ".", "the `directory` of the repository")
	memory := flag.Int64("memory", 4096, "`MiB` that a test and all that it starts may take")
	logs := flag.String("logs", "", "`directory` for what each test writes")
	flag.Parse()
	if err := adoptOrphans(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	survived, err := runMutants(*root, *memory<<20, *logs, flag.Args(), os.Stdout, os.Stderr)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

// runMutants runs the named mutants, or all, says to progress how it gets on, and writes a table. It returns how many were not noticed.
func runMutants(root string, memory int64, logs string, names []string, table, progress io.Writer) (survived int, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return 0, err
	}
	all, err := loadMutants(filepath.Join(root, "hack", "mutants", "list"))
	if err != nil {
		return 0, err
	}
	chosen, err := chooseMutants(all, names)
	if err != nil {
		return 0, err
	}
	r := &runner{root: root, memory: memory, sound: map[string]string{}}
	started := time.Now()
	rows := []string{"| Mutant | What it breaks | Noticed by | Seconds |", "|---|---|---|---|"}
	for _, m := range chosen {
		out := r.run(m)
		if logs != "" && out.output != "" {
			if err := os.WriteFile(filepath.Join(logs, m.name+".log"), []byte(out.output), 0o600); err != nil {
				return survived, err
			}
		}
		verdict := out.noticed
		if verdict == "" {
			survived++
			verdict = "**not noticed**: " + out.problem
		}
		_, _ = fmt.Fprintf(progress, "%-12s %4.0f s  %s\n", m.name, out.took.Seconds(), verdict)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %.0f |", m.name, m.breaks, strings.ReplaceAll(verdict, "|", `\|`), out.took.Seconds()))
	}
	_, err = fmt.Fprintf(table, "%s\n\n%d of %d noticed, in %s.\n", strings.Join(rows, "\n"), len(chosen)-survived, len(chosen), time.Since(started).Round(time.Second))
	return survived, err
}

// chooseMutants returns the named ones, or all where none is named.
func chooseMutants(all []mutant, names []string) ([]mutant, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []mutant
	for _, name := range names {
		at := slices.IndexFunc(all, func(m mutant) bool { return m.name == name })
		if at < 0 {
			return nil, fmt.Errorf("no mutant named %q", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}
