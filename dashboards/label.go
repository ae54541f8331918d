package dashboards

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/evictrail/evictrail/trail"
)

// findLabels returns the labels of a column of evictrail_v1, as view.column.
func findLabels(column string) trail.LabelSet {
	set, found := trail.FindLabelSet(column)
	if !found {
		panic("no labels of column " + column) // a broken invariant: columns are named here
	}
	return set
}

// labelSQL is the label of the value of an expression, whose values are those of a column of evictrail_v1, as view.column; another value stays, NULL is NULL.
func labelSQL(expression, column string) string {
	out := "CASE " + expression
	for _, l := range findLabels(column).Labels {
		if l.Value != l.Short {
			out += fmt.Sprintf(" WHEN '%s' THEN '%s'", l.Value, strings.ReplaceAll(l.Short, "'", "''"))
		}
	}
	return out + " ELSE " + expression + " END"
}

// labelTexts shows the values of a column of evictrail_v1, as view.column, by their labels, in the colour of the first paint that matches the value.
func labelTexts(column string, paints ...paint) []dashboard.DynamicConfigValue {
	texts := map[string]dashboard.ValueMappingResult{}
	for i, l := range findLabels(column).Labels {
		texts[l.Value] = dashboard.ValueMappingResult{Text: cog.ToPtr(l.Short), Color: findColour(l.Value, paints), Index: cog.ToPtr(int32(i))}
	}
	out := []dashboard.DynamicConfigValue{{Id: "mappings", Value: []dashboard.ValueMapping{
		{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: texts}},
	}}}
	if len(paints) > 0 {
		out = append(out, dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": "color-text"}})
	}
	return out
}

func findColour(value string, paints []paint) *string {
	for _, p := range paints {
		if regexp.MustCompile(p.of).MatchString(value) {
			return cog.ToPtr(p.colour)
		}
	}
	return nil
}

// labelSeries names series that bear the values of a column of evictrail_v1, as view.column, by their labels, and colours them by the paint of their value.
func labelSeries(column string, paints ...paint) []cog.Builder[dashboard.DashboardFieldConfigSourceOverrides] {
	out := asSeries(paints)
	for _, l := range findLabels(column).Labels {
		if l.Value != l.Short {
			out = append(out, dashboard.NewDashboardFieldConfigSourceOverridesBuilder().
				Matcher(dashboard.MatcherConfig{Id: "byName", Options: l.Value}).
				Properties([]dashboard.DynamicConfigValue{{Id: "displayName", Value: l.Short}}))
		}
	}
	return out
}
