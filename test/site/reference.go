package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/migrations"
)

// The generated pages, as if they were files of the repository.
const (
	commandsPath = "docs/cli.md"
	apiPath      = "docs/api.md"
	viewsPath    = "docs/views.md"
	alertsPath   = "docs/alerts.md"
)

// escapeMarkdown writes text on one line so that Markdown shows it as it is, but for code between backquotes.
var escapeMarkdown = strings.NewReplacer(`\`, `\\`, "*", `\*`, "<", `\<`, "[", `\[`, "|", `\|`, "\n", " ").Replace

// writeTable writes a table whose cells are Markdown. Without rows it writes nothing.
func writeTable(out *strings.Builder, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	_, _ = fmt.Fprintf(out, "\n| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, row := range rows {
		_, _ = fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
}

// renderAlerts returns the page about alerts and recording rules, by their groups.
func renderAlerts() string {
	var out strings.Builder
	out.WriteString("# Alerts\n\nThe rules that `evictrail generate alerts` prints, with their defaults. `{{ ... }}` stands for what Prometheus fills in.\n")
	for _, group := range alerts.Groups(alerts.DefaultOptions()) {
		_, _ = fmt.Fprintf(&out, "\n## %s\n", group.Name)
		for _, r := range group.Rules {
			if r.Record != "" {
				_, _ = fmt.Fprintf(&out, "\n### %s\n", r.Record)
			} else {
				writeAlert(&out, r)
			}
			_, _ = fmt.Fprintf(&out, "\n```\n%s\n```\n", strings.TrimSpace(r.Expr))
		}
	}
	return out.String()
}

func writeAlert(out *strings.Builder, r alerts.Rule) {
	rows := [][]string{{"Severity", r.Labels["severity"]}, {"For", "`" + r.For + "`"}}
	if r.For == "" {
		rows[1][1] = "at once"
	}
	if r.KeepFiringFor != "" {
		rows = append(rows, []string{"Keeps firing for", "`" + r.KeepFiringFor + "`"})
	}
	rows = append(rows, []string{"Summary", escapeMarkdown(r.Annotations["summary"])}, []string{"Runbook", fmt.Sprintf("[%[1]s](runbooks/%[1]s.md)", r.Alert)})
	_, _ = fmt.Fprintf(out, "\n### %s\n\n%s\n", r.Alert, escapeMarkdown(r.Annotations["description"]))
	writeTable(out, []string{"Property", "Value"}, rows)
}

// viewComment finds what a view is in the file that makes it. An apostrophe is doubled.
var viewComment = regexp.MustCompile(`COMMENT ON VIEW evictrail_v1\.(\w+) IS '((?:[^']|'')*)';`)

// column is a column of a view, as a database with the current schema describes it.
type column struct{ View, Name, Type, About string }

// renderViews returns the page about the views of SQL: what they are from the files that make them, their columns from the list that
// `make generate` makes of a database.
func renderViews(files fs.FS) (string, error) {
	text, err := fs.ReadFile(files, "api/columns.json")
	if err != nil {
		return "", err
	}
	var columns []column
	if err := json.Unmarshal(text, &columns); err != nil {
		return "", fmt.Errorf("read api/columns.json: %w", err)
	}
	rows := map[string][][]string{}
	for _, c := range columns {
		rows[c.View] = append(rows[c.View], []string{"`" + c.Name + "` " + c.Type, escapeMarkdown(c.About)})
	}
	var out strings.Builder
	out.WriteString("# SQL views\n\nThe views of schema `evictrail_v1`. Columns are only added; [sql.md](sql.md) says how to ask.\n")
	for _, script := range migrations.Update(0) {
		if path.Dir(script.Name) != "views" {
			continue
		}
		comment := viewComment.FindStringSubmatch(script.SQL)
		if comment == nil || rows[comment[1]] == nil {
			return "", fmt.Errorf("%s: expected a view of evictrail_v1 with a comment, and its columns in api/columns.json", script.Name)
		}
		_, _ = fmt.Fprintf(&out, "\n## %s\n\n%s\n", comment[1], escapeMarkdown(strings.ReplaceAll(comment[2], "''", "'")))
		writeTable(&out, []string{"Column", "Meaning"}, rows[comment[1]])
	}
	return out.String(), nil
}
