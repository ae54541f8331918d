package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
)

const runbooks = "../../docs/runbooks/"

// alertRules returns the alerts, those of one name side by side.
func alertRules() (out []alerts.Rule) {
	for _, g := range alerts.Groups(alerts.DefaultOptions()) {
		for _, r := range g.Rules {
			if r.Alert != "" {
				out = append(out, r)
			}
		}
	}
	return out
}

// readSections reads a page: its title and what stands below each heading, by order and by name.
func readSections(t *testing.T, page string) (title string, order []string, texts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(runbooks + page)
	require.NoError(t, err)
	parts := strings.Split(string(text), "\n## ")
	texts = map[string]string{}
	for _, part := range parts[1:] {
		name, body, _ := strings.Cut(part, "\n")
		order, texts[name] = append(order, name), body
	}
	return strings.TrimSpace(strings.TrimPrefix(parts[0], "# ")), order, texts
}

func TestEveryAlertHasItsPage(t *testing.T) {
	t.Parallel()
	written, err := filepath.Glob(runbooks + "Evictrail*.md")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, r := range alertRules() {
		names[r.Alert] = true
	}
	require.Len(t, written, len(names), "one page for each alert, and no other")
	for _, r := range alertRules() {
		t.Run(r.Alert+"/"+r.Labels["severity"], func(t *testing.T) {
			t.Parallel()
			title, order, texts := readSections(t, r.Alert+".md")
			require.Equal(t, r.Alert, title)
			require.Equal(t, []string{"Problem", "Impact", "Action", "All clear", "Cause"}, order)
			for name, text := range texts {
				require.NotEmpty(t, strings.TrimSpace(text), name)
			}
			wait := r.For
			if wait == "" {
				wait = "0m"
			}
			require.Contains(t, texts["Problem"], "`for: "+wait+"`")
			if r.KeepFiringFor != "" {
				require.Contains(t, texts["Problem"], "`keep_firing_for: "+r.KeepFiringFor+"`")
			}
			require.LessOrEqual(t, countWords(texts), maxRunbookWords, "words beside commands: it is read at night")
			command, found := firstCommand(texts["Action"])
			require.True(t, found && inPod.MatchString(command), "the first command of the action is %q: expected one of ours that needs kubectl alone", command)
			if !aboutRecorder.MatchString(command) {
				require.Contains(t, command, " --cluster CLUSTER", "several clusters may share a database")
			}
		})
	}
}

// inPod is a command of ours in the pod of a recorder; aboutRecorder is one that is about it, not about a cluster.
var (
	inPod         = regexp.MustCompile(`^kubectl -n evictrail exec (evictrail-0|POD) -- evictrail `)
	aboutRecorder = regexp.MustCompile(`-- evictrail (doctor|schema|spool)\b`)
)

// maxRunbookWords is how long the text of a page may be, commands aside.
const maxRunbookWords = 200

// countWords counts the words of all sections but those of indented lines, which are commands.
func countWords(texts map[string]string) (words int) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "    ") {
				words += len(strings.Fields(line))
			}
		}
	}
	return words
}

// firstCommand returns the first indented line.
func firstCommand(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if command, is := strings.CutPrefix(line, "    "); is {
			return strings.TrimSpace(command), true
		}
	}
	return "", false
}

// listItem is the marker of an item of a list, up to its text.
var listItem = regexp.MustCompile(`^ *(?:[0-9]+\.|-) +`)

// TestRunbooksShowCommandsAsCode wants each line that is indented to be code where it is rendered: four columns right of the text around it, in an item of a
// list too, and after an empty line.
//
// Source: CommonMark 0.31, 4.4 "Indented code blocks" and 5.2 "List items".
func TestRunbooksShowCommandsAsCode(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(runbooks + "*.md")
	require.NoError(t, err)
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		column, before := 0, "" // where the text of the item begins, and the line before
		for i, line := range strings.Split(string(text), "\n") {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			switch marker := listItem.FindString(line); {
			case marker != "" && indent < column+4:
				column = len(marker)
			case strings.TrimSpace(line) == "":
			case indent == 0:
				column = 0
			case indent == column && strings.TrimSpace(before) != "": // the text of an item of a list within a list goes on
			case indent >= 4:
				begins := strings.TrimSpace(before) == "" || strings.HasPrefix(before, strings.Repeat(" ", column+4))
				require.True(t, begins && indent >= column+4, "%s:%d is rendered as prose: %s", filepath.Base(page), i+1, line)
				count++
			}
			before = line
		}
	}
	require.Greater(t, count, 100)
}

// ourCommand finds a call of evictrail in a line of code or between backquotes, up to what the shell takes for itself.
var ourCommand = regexp.MustCompile("(?:^ {4,}(?:.*(?:\\||--) )?|`)evictrail ([^`|#]+)")

// TestRunbooksCallWhatThereIs parses every command of ours in the pages, as the shell would pass it.
func TestRunbooksCallWhatThereIs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(runbooks + "*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		paragraphs := regexp.MustCompile("(?s)`([^`]*)`").ReplaceAllStringFunc(string(text), func(code string) string {
			return strings.ReplaceAll(code, "\n", " ")
		})
		for line := range strings.Lines(paragraphs) {
			for _, call := range ourCommand.FindAllStringSubmatch(strings.TrimRight(line, "\n"), -1) {
				require.NoError(t, validateCommandLine(strings.Fields(call[1])), "%s: evictrail %s", filepath.Base(page), call[1])
				count++
			}
		}
	}
	require.Greater(t, count, 80)
}

// validateCommandLine reports whether a command line would be run: that there is the command, its flags and as many arguments.
func validateCommandLine(args []string) error {
	root := newRoot()
	root.SetOut(io.Discard)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("%q is no command", args)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestRunbooksLinkToPages follows the links between pages.
func TestRunbooksLinkToPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(runbooks + "*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)#]+\.md)(#[^)]*)?\)`).FindAllStringSubmatch(string(text), -1) {
			require.FileExists(t, filepath.Join(runbooks, link[1]), page)
		}
	}
}

// TestRunbooksHaveAnIndex holds the table of docs/runbooks/README.md; -update rewrites it.
func TestRunbooksHaveAnIndex(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, r := range alertRules() {
		wait := r.For
		if wait == "" {
			wait = "at once"
		}
		rows = append(rows, fmt.Sprintf("| [%[1]s](%[1]s.md) | %[2]s | %[3]s | %[4]s |", r.Alert, r.Labels["severity"], wait, formatSubject(r.Annotations["summary"])))
	}
	slices.Sort(rows)
	text, err := os.ReadFile(runbooks + "README.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?s)(\n\|---\|---\|---\|---\|\n).*?\n\n`)
	want := table.ReplaceAllLiteralString(string(text), "\n|---|---|---|---|\n"+strings.Join(rows, "\n")+"\n\n")
	if *update {
		require.NoError(t, os.WriteFile(runbooks+"README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./cmd/evictrail -run RunbooksHaveAnIndex -update")
}

// formatSubject writes a summary with names in capitals where Prometheus fills them in.
func formatSubject(summary string) string {
	for _, replace := range [][2]string{
		{`{{ (?:or )?\$labels\.(\w+)[^}]* }}`, "<$1>"}, {`{{ \$value[^}]* }}`, "N"}, {`{{ with \$labels\.(\w+) }}([^{]*){{ \. }}{{ end }}`, "$2<$1>"},
	} {
		summary = regexp.MustCompile(replace[0]).ReplaceAllString(summary, replace[1])
	}
	return regexp.MustCompile(`<\w+>`).ReplaceAllStringFunc(summary, func(name string) string {
		return strings.ToUpper(strings.Trim(name, "<>"))
	})
}
