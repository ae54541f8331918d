package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeNotes writes what the changelog says of the version, or of what is unreleased where there is no tag.
func (r *release) writeNotes() error {
	text, err := os.ReadFile(filepath.Join(r.checkout, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section := "Unreleased"
	if r.tagged {
		section = r.version
	}
	notes, err := cutNotes(string(text), section)
	if err != nil {
		return err
	}
	return writePublic(filepath.Join(r.out, "release-notes.md"), notes)
}

// cutNotes returns a section of the changelog without its heading, one line for each paragraph and list item: where
// notes are shown, the end of a line is one. A heading may say more than the version, such as its date.
func cutNotes(changelog, section string) (string, error) {
	var out strings.Builder
	inside, found, fenced, joined := false, false, false, false
	for line := range strings.Lines(changelog) {
		line = strings.TrimRight(line, "\n")
		if heading, is := strings.CutPrefix(line, "## "); is && !fenced {
			words := strings.Fields(heading)
			inside = len(words) > 0 && strings.Trim(words[0], "[]") == section
			found = found || inside
			continue
		}
		if !inside {
			continue
		}
		text := strings.TrimSpace(line)
		fence := strings.HasPrefix(text, "```")
		verbatim := fenced || fence || text == "" || strings.HasPrefix(line, "    ") || strings.ContainsAny(text[:1], "#|")
		if !verbatim && joined && !strings.HasPrefix(text, "- ") {
			out.WriteString(" " + text)
			continue
		}
		out.WriteString("\n" + line)
		joined = !verbatim
		fenced = fenced != fence
	}
	notes := strings.TrimSpace(out.String())
	if !found || notes == "" {
		return "", fmt.Errorf("CHANGELOG.md says nothing of %[1]s: expected a heading %[2]q and what is new below it",
			section, "## "+section)
	}
	return notes + "\n", nil
}
