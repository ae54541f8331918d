package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/answers, testdata/access, api/openapi.yaml and api/columns.json")

// TestAnswers asks about the recorded incidents what an operator would, and compares the answers to the letter. Each was
// read beside the scenario.md of its recording. Evidence is left out, and which settings and rules an answer rests on: other tests hold these.
func TestAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/answers/*.txt")
	require.NoError(t, err)
	require.Len(t, files, len(listRecordings(t)), "each recording has its questions")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := playedURL(t, name)
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			var got strings.Builder
			for _, line := range strings.Split(string(raw), "\n") {
				question, is := strings.CutPrefix(line, "$ evictrail ")
				if !is {
					continue
				}
				code, out, stderr := runCommand(t, append(strings.Fields(question), "--database-url", url)...)
				require.Equal(t, exitFound, code, "%s: %s", question, stderr)
				answer, _, _ := strings.Cut(out, "\nEvidence")
				answer, _, _ = strings.Cut(answer, "\nSettings in force: ")
				answer, _, _ = strings.Cut(answer, "\nRules: ")
				got.WriteString(line + "\n\n" + strings.Trim(answer, "\n") + "\n\n")
			}
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
				return
			}
			require.Equal(t, string(raw), got.String())
		})
	}
}
