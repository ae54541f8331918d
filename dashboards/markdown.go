package dashboards

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const markdownHead = `# Dashboards

Made by ` + "`make generate`" + ` from the package dashboards: change it there. Each dashboard answers the question that is its title, each row the one
above it; a panel says in its description what it shows.

- **Get them**: ` + "`evictrail generate dashboards --dir DIR`" + ` writes JSON to import, ` + "`--format configmap`" + ` ConfigMaps for the sidecar of Grafana's
  chart, ` + "`--format grafanadashboard`" + ` resources of the Grafana operator. ` + "`deploy/dashboards`" + ` holds the JSON, ` + "`deploy/dev`" + ` a Grafana to try it in.
- **Data sources** are variables: a Prometheus that scrapes evictrail and runs its rules, and a Postgres for which a role like
  ` + "`evictrail_reader`" + ` is enough (` + "`evictrail schema roles`" + ` prints the SQL that makes it). Panels of Postgres read the views of schema ` + "`evictrail_v1`" + ` alone.
- **Many clusters** in one database: the variable cluster chooses one. Panels of Prometheus have no such label: choose the Prometheus of that cluster.
- **Alert, panel, VM**: alerts link to a board with its node or VM set; nodes in tables lead to the loop investigator and to the drains, VMs to
  their story, always with the time range.
- **Colours** mean the same everywhere: purple the descheduler, blue a drain, grey a person, teal an update by KubeVirt; green success, red
  failure, amber something in the way, light blue a cooldown.
- **Times** of states follow the cluster's clocks, where migrations have whole seconds only.
`

// Markdown explains every panel, for people: docs/dashboards.md.
func Markdown() ([]byte, error) {
	out := &strings.Builder{}
	out.WriteString(markdownHead)
	for _, d := range All() {
		built, err := d.Build()
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(out, "\n## %s\n\n`%s`: %s\n", d.Title, d.UID, d.Short)
		row := ""
		eachPanel(built, func(question string, p dashboard.Panel) {
			if question != row {
				row = question
				_, _ = fmt.Fprintf(out, "\n**%s**\n\n| Panel | What it shows | From |\n|---|---|---|\n", question)
			}
			_, _ = fmt.Fprintf(out, "| %s | %s | %s |\n", escapeCell(*p.Title), escapeCell(*p.Description), sourcesOf(p))
		})
	}
	return []byte(out.String()), nil
}

// escapeCell keeps a text within its column.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

var (
	viewsIn   = regexp.MustCompile(`evictrail_v1\.(\w+)`)
	metricsIn = regexp.MustCompile(`\b(?:evictrail[_:]|kubevirt_|descheduler[_:]|node_pressure_)[\w:]+\b|\b` + foreignAlerts + `\b`)
	suffixes  = regexp.MustCompile(`_(?:bucket|count|sum)$`)
)

// sourcesOf names the views and metrics that a panel reads, sorted.
func sourcesOf(p dashboard.Panel) string {
	var names []string
	for _, target := range p.Targets {
		q := queryOf(target)
		switch q.Language {
		case SQL:
			for _, found := range viewsIn.FindAllStringSubmatch(q.Text, -1) {
				names = append(names, "view `"+found[1]+"`")
			}
		case PromQL:
			for _, name := range MetricsIn(q.Text) {
				names = append(names, "`"+name+"`")
			}
		case LogQL:
			names = append(names, "Loki")
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// MetricsIn returns the metrics that an expression names, without the endings of histograms, in the order of the expression.
func MetricsIn(expr string) []string {
	var out []string
	for _, name := range metricsIn.FindAllString(expr, -1) {
		out = append(out, suffixes.ReplaceAllString(name, ""))
	}
	return out
}
