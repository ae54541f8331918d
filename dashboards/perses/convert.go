package perses

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/evictrail/evictrail/dashboards"
)

// Convert returns a dashboard for Perses. draws is false where it has no panel for Perses: nothing of it asks Prometheus. publicURL is the address of
// evictrail's pages, to which notes link; empty: they do not.
func Convert(d dashboards.Dashboard, publicURL string) (out *Dashboard, draws bool, err error) {
	g, err := readGrafana(d)
	if err != nil {
		return nil, false, err
	}
	out = &Dashboard{Kind: "Dashboard", Metadata: Metadata{d.UID}, Spec: Spec{
		Display: Display{g.Title, g.Description}, Duration: "6h", RefreshInterval: g.Refresh, Panels: map[string]Panel{},
	}}
	for i, r := range g.listRows() {
		layout, drawsRow, err := out.addRow(r, i, publicURL)
		if err != nil {
			return nil, false, fmt.Errorf("convert dashboard %s for Perses: %w", d.UID, err)
		}
		out.Spec.Layouts, draws = append(out.Spec.Layouts, layout), draws || drawsRow
	}
	out.Spec.Variables = convertVariables(g.Templating.List, out.listExprs())
	return out, draws, nil
}

// addRow adds the panels of a row, with a note about those that Perses does not show. It reports whether there is another panel than the note.
func (d *Dashboard) addRow(r row, index int, publicURL string) (layout Layout, draws bool, err error) {
	layout = Layout{"Grid", LayoutSpec{Display: LayoutDisplay{r.title, Collapse{Open: !r.collapsed}}, Items: []Item{}}}
	var all []drawn
	var left []grafanaPanel
	for _, p := range r.panels {
		its, err := drawPanel(p)
		if err != nil {
			return layout, false, fmt.Errorf("panel %q: %w", p.Title, err)
		}
		if len(its) == 0 {
			left = append(left, p)
		}
		all, draws = append(all, its...), draws || p.asksPrometheus()
	}
	if len(left) > 0 {
		all = append(all, newNote("note-"+strconv.Itoa(index+1), left, publicURL))
	}
	x, y, height := 0, 0, 0
	for _, p := range all {
		if x+p.width > gridWidth {
			x, y, height = 0, y+height, 0
		}
		d.Spec.Panels[p.key] = p.panel
		layout.Spec.Items = append(layout.Spec.Items, Item{x, y, p.width, p.height, Ref{"#/spec/panels/" + p.key}})
		x, height = x+p.width, max(height, p.height)
	}
	return layout, draws, nil
}

// listExprs returns the expressions of all panels.
func (d *Dashboard) listExprs() (out []string) {
	for _, p := range d.Spec.Panels {
		for _, q := range p.Spec.Queries {
			if asked, is := q.Spec.Plugin.Spec.(promQuery); is {
				out = append(out, asked.Query)
			}
		}
	}
	return out
}

// ownSeries are the metrics of evictrail, whose labels have the names that variables choose from.
const ownSeries = `__name__=~"evictrail.+"`

// convertVariables returns the variables that expressions name: in Perses their values are those of labels of evictrail's metrics. Without a label
// cluster, which a Prometheus of several clusters adds, the variable cluster has no values, and series without the label match all the same.
func convertVariables(all []grafanaVariable, exprs []string) (out []Variable) {
	asked := strings.Join(exprs, "\n")
	for _, v := range all {
		if !regexp.MustCompile(`\$` + v.Name + `\b`).MatchString(asked) {
			continue
		}
		matchers := ownSeries
		if v.Name != dashboards.VarCluster {
			matchers += `, cluster=~"$cluster|"`
		}
		spec := VariableSpec{
			Name: v.Name, Display: Display{Name: v.Label}, AllowAllValue: v.Multi, AllowMultiple: v.Multi,
			Plugin: Plugin{"PrometheusLabelValuesVariable", labelValues{v.Name, []string{"{" + matchers + "}"}}},
		}
		if v.Multi {
			spec.DefaultValue, spec.CustomAllValue = "$__all", ".*"
		}
		out = append(out, Variable{"ListVariable", spec})
	}
	return out
}

// labelValues is the settings of a PrometheusLabelValuesVariable.
type labelValues struct {
	Label    string   `json:"labelName"`
	Matchers []string `json:"matchers"`
}
