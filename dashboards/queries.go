package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// Query is a query of a panel, a variable or an annotation, with Grafana's variables and macros still in it.
type Query struct {
	Dashboard string // its UID
	Row       string // the question of its row; empty for variables and annotations
	Panel     string // the title of the panel, or the name of the variable or annotation
	RefID     string // the letter within its panel; empty for variables
	Of        QuerySource
	Language  Language
	Text      string
	Series    bool // rows of SQL become series: a column time, sorted ascending
}

// Name says where the query is, in one line.
func (q Query) Name() string { return fmt.Sprintf("%s/%s/%s", q.Dashboard, q.Panel, q.RefID) }

// QuerySource says what asks.
type QuerySource string

// What asks.
const (
	OfPanel      QuerySource = "panel"
	OfVariable   QuerySource = "variable"
	OfAnnotation QuerySource = "annotation"
)

// Language is what a query is written in.
type Language string

// The languages.
const (
	SQL    Language = "SQL"
	PromQL Language = "PromQL"
	LogQL  Language = "LogQL"
)

// Queries lists every query of every dashboard in the order of the dashboards, for the tests that run them.
func Queries() ([]Query, error) {
	var out []Query
	for _, d := range All() {
		built, err := d.Build()
		if err != nil {
			return nil, err
		}
		for _, v := range built.Templating.List {
			if v.Type == dashboard.VariableTypeQuery {
				out = append(out, Query{Dashboard: d.UID, Panel: v.Name, Of: OfVariable, Language: SQL, Text: *v.Query.String})
			}
		}
		for _, a := range built.Annotations.List {
			q := queryOf(a.Target)
			q.Dashboard, q.Panel, q.Of = d.UID, a.Name, OfAnnotation
			out = append(out, q)
		}
		eachPanel(built, func(row string, p dashboard.Panel) {
			for _, target := range p.Targets {
				q := queryOf(target)
				q.Dashboard, q.Row, q.Panel, q.Of = d.UID, row, *p.Title, OfPanel
				out = append(out, q)
			}
		})
	}
	return out, nil
}

func queryOf(target variants.Dataquery) Query {
	switch t := target.(type) {
	case postgresQuery:
		return Query{RefID: t.RefID, Language: SQL, Text: t.RawSQL, Series: t.Format == formatSeries}
	case prom.Dataquery:
		return Query{RefID: *t.RefId, Language: PromQL, Text: t.Expr}
	case loki.Dataquery:
		return Query{RefID: *t.RefId, Language: LogQL, Text: t.Expr}
	default:
		panic(fmt.Sprintf("query of type %T", target)) // a broken invariant: panels are made here
	}
}

// eachPanel calls f with each panel and the question of its row, from above to below.
func eachPanel(d dashboard.Dashboard, f func(row string, p dashboard.Panel)) {
	row := ""
	for _, p := range d.Panels {
		if p.RowPanel == nil {
			f(row, *p.Panel)
			continue
		}
		row = *p.RowPanel.Title
		for _, inner := range p.RowPanel.Panels {
			f(row, inner)
		}
	}
}
