//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutant is one way to break evictrail, and the test that must notice.
type mutant struct {
	name   string
	breaks string // what, for people
	pkg    string // of the test: ./store, ./test/chaos
	test   string // a regular expression, as for go test -run
	within time.Duration
	file   string // from the root of the repository
	old    string // is there exactly once
	new    string // takes its place
	end    string // comes behind the file
}

// loadMutants reads all mutants of a directory, in the order of their names.
func loadMutants(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no mutants in %s", dir)
	}
	var all []mutant
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.name = strings.TrimSuffix(filepath.Base(path), ".txt")
		all = append(all, m)
	}
	return all, nil
}

// parseMutant reads lines of the form "key: value", then sections: "-- old --", "-- new --" and, where it is needed, "-- end --".
// A section ends before the last line break.
func parseMutant(text string) (m mutant, err error) {
	head, rest, _ := strings.Cut(text, "-- old --\n")
	for line := range strings.Lines(head) {
		key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimSpace(value)
		switch {
		case !found:
			err = fmt.Errorf("%q: expected key: value", line)
		case key == "breaks":
			m.breaks = value
		case key == "package":
			m.pkg = value
		case key == "test":
			m.test = value
		case key == "within":
			m.within, err = time.ParseDuration(value)
		case key == "file":
			m.file = value
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return m, err
		}
	}
	m.old, rest, _ = strings.Cut(rest, "\n-- new --\n")
	m.new, m.end, _ = strings.Cut(strings.TrimSuffix(rest, "\n"), "\n-- end --\n")
	if m.breaks == "" || m.pkg == "" || m.test == "" || m.within == 0 || m.file == "" || m.old == "" || m.new == m.old {
		return m, errors.New("expected breaks, package, test, within, file, and sections old and new that differ")
	}
	return m, nil
}

// mutateFile returns the mutant's file as it makes it.
func (m mutant) mutateFile(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(raw, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("does not apply: what it replaces is in %s %d times instead of once", m.file, n)
	}
	raw = bytes.Replace(raw, []byte(m.old), []byte(m.new), 1)
	if m.end != "" {
		raw = append(raw, "\n"+m.end+"\n"...)
	}
	return raw, nil
}
