package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/build"
)

const changelog = `# Changelog

Words.

## Unreleased

- Something
  long.

## [0.2.0] - 2026-12-01

First line,
second line.

### Added

- One thing that
  goes on.
- Another.

` + "```\n## not a heading\nkeep this\n```" + `

| a | b |
|---|---|

## 0.1.0

## 0.0.1

Old.
`

func TestNotesAreCut(t *testing.T) {
	t.Parallel()
	for section, want := range map[string]string{
		"Unreleased": "- Something long.\n",
		"0.2.0": "First line, second line.\n\n### Added\n\n- One thing that goes on.\n- Another.\n\n" +
			"```\n## not a heading\nkeep this\n```\n\n| a | b |\n|---|---|\n",
		"0.0.1": "Old.\n",
	} {
		notes, err := cutNotes(changelog, section)
		require.NoError(t, err)
		require.Equal(t, want, notes)
	}
	for _, section := range []string{"0.1.0", "0.3.0", "0.2"} {
		_, err := cutNotes(changelog, section)
		require.ErrorContains(t, err, `expected a heading "## `+section+`"`)
	}
}

// TestTheChangelogHasNotes cuts the notes of our own changelog, for the next version and for those that it knows.
func TestTheChangelogHasNotes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(build.Root(), "CHANGELOG.md"))
	require.NoError(t, err)
	for _, section := range []string{"Unreleased", "0.1.0"} {
		notes, err := cutNotes(string(text), section)
		require.NoError(t, err)
		require.Contains(t, notes, "\n- ")
	}
	require.NotEmpty(t, needRelease(t).read(t, "release-notes.md"))
}

func TestVersions(t *testing.T) {
	t.Parallel()
	const commit = "0123456789abcdef"
	chart := []byte("version: 1.2.0\nappVersion: 1.2.0\n")
	version, err := chooseVersion(chart, "1.2.0", true, commit)
	require.NoError(t, err)
	require.Equal(t, "1.2.0", version)
	version, err = chooseVersion(chart, "", false, commit)
	require.NoError(t, err)
	require.Equal(t, "1.2.0-dev.g01234567", version)
	_, err = chooseVersion(chart, "1.3.0", true, commit)
	require.ErrorContains(t, err, "tag v1.3.0, version 1.2.0 of deploy/chart/Chart.yaml: expected the same; tag")
	_, err = chooseVersion([]byte("version: 1.2.0\nappVersion: 1.1.0\n"), "", false, commit)
	require.ErrorContains(t, err, `version "1.2.0", appVersion "1.1.0": expected the same`)
}
