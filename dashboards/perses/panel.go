package perses

import (
	"fmt"
	"strconv"
)

// The settings of plugins of Perses, as far as they are used here.
//
// Source: the CUE schemas of perses/plugins timeserieschart v0.10, statchart v0.9, table v0.7, markdown v0.9 and prometheus v0.53, which Perses v0.52 has.
type (
	// lines are the settings of a TimeSeriesChart.
	lines struct {
		Legend     legend      `json:"legend"`
		YAxis      yAxis       `json:"yAxis"`
		Visual     visual      `json:"visual"`
		Thresholds *thresholds `json:"thresholds,omitempty"`
	}
	legend struct {
		Position string   `json:"position"`
		Mode     string   `json:"mode"`
		Values   []string `json:"values"`
	}
	yAxis struct {
		Format *unitFormat `json:"format,omitempty"`
		Min    *float64    `json:"min,omitempty"`
		Max    *float64    `json:"max,omitempty"`
	}
	visual struct {
		Display     string  `json:"display"`
		LineWidth   float64 `json:"lineWidth"`
		AreaOpacity float64 `json:"areaOpacity"`
		Stack       string  `json:"stack,omitempty"`
	}
	// number is the settings of a StatChart.
	number struct {
		Calculation string      `json:"calculation"`
		Format      *unitFormat `json:"format,omitempty"`
		Thresholds  *thresholds `json:"thresholds,omitempty"`
	}
	// list is the settings of a Table.
	list struct {
		Columns    []column    `json:"columnSettings,omitempty"`
		Transforms []transform `json:"transforms,omitempty"`
	}
	column struct {
		Name   string      `json:"name"`
		Header string      `json:"header,omitempty"`
		Format *unitFormat `json:"format,omitempty"`
		Hide   bool        `json:"hide,omitempty"`
	}
	transform struct {
		Kind string        `json:"kind"`
		Spec transformSpec `json:"spec"`
	}
	transformSpec struct {
		Column  string   `json:"column,omitempty"`
		Columns []string `json:"columns,omitempty"`
	}
	unitFormat struct {
		Unit          string   `json:"unit"`
		DecimalPlaces *float64 `json:"decimalPlaces,omitempty"`
		ShortValues   bool     `json:"shortValues,omitempty"`
	}
	thresholds struct {
		Mode         string          `json:"mode"`
		DefaultColor string          `json:"defaultColor,omitempty"`
		Steps        []thresholdStep `json:"steps"`
	}
	thresholdStep struct {
		Value float64 `json:"value"`
		Color string  `json:"color"`
	}
	promQuery struct {
		Query            string `json:"query"`
		SeriesNameFormat string `json:"seriesNameFormat,omitempty"`
	}
	text struct {
		Text string `json:"text"`
	}
)

// Sizes on the grid, which has as many columns as Grafana's.
const (
	gridWidth  = 24
	stepColumn = "step" // by which the steps of the pipeline are joined
)

// drawn is a panel of Perses with its size.
type drawn struct {
	key           string
	panel         Panel
	width, height int
}

// What a description says of how Perses shows something else than Grafana.
const (
	showsLast = " The last value in the time range, even where there is none any more."
	addsUp    = " Each series counts all up to its length."
)

// drawPanel returns the panels that show in Perses what one shows in Grafana: several for numbers that are styled one by one; none for what asks something
// else than Prometheus.
func drawPanel(p grafanaPanel) ([]drawn, error) {
	if p.Type == "text" {
		return drawOne(p, Plugin{"Markdown", text{p.Options.Content}}), nil
	}
	if !p.asksPrometheus() {
		return nil, nil
	}
	for i := range p.Targets {
		if t := &p.Targets[i]; t.LegendFormat == "{{le}}" { // Grafana subtracts the buckets from each other
			t.LegendFormat = "≤ {{le}}"
			p.Description += addsUp
		}
	}
	switch p.Type {
	case "timeseries", "state-timeline", "heatmap":
		return drawLines(p)
	case "stat", "bargauge":
		p.Description += showsLast
		return drawNumbers(p)
	case "table":
		return drawList(p)
	}
	return nil, fmt.Errorf("panels of type %s are not drawn in Perses", p.Type)
}

// drawOne makes one panel, as large as in Grafana, of all queries.
func drawOne(p grafanaPanel, plugin Plugin) []drawn {
	return []drawn{{nameKey(p, ""), newPanel(p.Title, p.Description, plugin, p.Targets), p.GridPos.Width, p.GridPos.Height}}
}

func drawLines(p grafanaPanel) ([]drawn, error) {
	f := p.FieldConfig.Defaults
	unit, err := convertUnit(f)
	if err != nil {
		return nil, err
	}
	spec := lines{
		Legend: legend{"bottom", "table", []string{"last", "max"}}, YAxis: yAxis{unit, f.Min, f.Max},
		Visual: visual{Display: "line", LineWidth: 1, AreaOpacity: 0.1}, Thresholds: convertThresholds(f.Thresholds),
	}
	if f.Custom.DrawStyle == "bars" {
		spec.Visual = visual{Display: "bar", LineWidth: 1, AreaOpacity: 0.8}
	}
	if f.Custom.Stacking.Mode == "normal" {
		spec.Visual.Stack = "all"
	}
	return drawOne(p, Plugin{"TimeSeriesChart", spec}), nil
}

// drawNumbers makes a panel of each query: a StatChart has one unit and one set of thresholds.
func drawNumbers(p grafanaPanel) (out []drawn, err error) {
	for _, t := range p.Targets {
		f, err := p.fieldOf(t.RefID)
		if err != nil {
			return nil, err
		}
		unit, err := convertUnit(f)
		if err != nil {
			return nil, err
		}
		title, letter := p.Title, ""
		if len(p.Targets) > 1 {
			title, letter = p.Title+": "+t.LegendFormat, t.RefID
		}
		spec := number{Calculation: "last-number", Format: unit, Thresholds: convertThresholds(f.Thresholds)}
		out = append(out, drawn{
			nameKey(p, letter), newPanel(title, p.Description, Plugin{"StatChart", spec}, []grafanaTarget{t}), max(4, p.GridPos.Width/len(p.Targets)), p.GridPos.Height,
		})
	}
	return out, nil
}

// drawList makes a table of instant values: the columns are the labels and, where it has several queries, the value of each. Perses numbers the columns
// of several queries (step #1, value #1); rows are joined by the step.
func drawList(p grafanaPanel) ([]drawn, error) {
	spec := list{Columns: []column{{Name: "timestamp", Hide: true}}}
	if len(p.Targets) == 1 {
		spec.Columns = append(spec.Columns, column{Name: "value", Hide: true})
	} else {
		spec.Transforms = []transform{
			{"MergeIndexedColumns", transformSpec{Column: stepColumn}}, {"JoinByColumnValue", transformSpec{Columns: []string{stepColumn}}},
		}
		for i, t := range p.Targets {
			header := p.nameColumn(t.RefID)
			f, err := p.fieldOf(header)
			if err != nil {
				return nil, err
			}
			unit, err := convertUnit(f)
			if err != nil {
				return nil, err
			}
			spec.Columns = append(spec.Columns, column{Name: "value #" + strconv.Itoa(i+1), Header: header, Format: unit})
		}
	}
	return drawOne(p, Plugin{"Table", spec}), nil
}

// nameKey returns the key of a panel, which stays when others are added.
func nameKey(p grafanaPanel, letter string) string { return "panel-" + strconv.Itoa(p.ID) + letter }

func newPanel(title, description string, plugin Plugin, targets []grafanaTarget) Panel {
	p := Panel{"Panel", PanelSpec{Display: Display{title, description}, Plugin: plugin}}
	for _, t := range targets {
		p.Spec.Queries = append(p.Spec.Queries, Query{
			"TimeSeriesQuery", QuerySpec{Plugin{"PrometheusTimeSeriesQuery", promQuery{t.Expr, t.LegendFormat}}},
		})
	}
	return p
}

// convertUnit returns the format of a unit of Grafana. A unit that is not known is an error.
func convertUnit(f grafanaField) (*unitFormat, error) {
	units := map[string]unitFormat{
		"": {Unit: "decimal", ShortValues: true}, "none": {Unit: "decimal"}, "short": {Unit: "decimal", ShortValues: true},
		"s": {Unit: "seconds"}, "percentunit": {Unit: "percent-decimal"}, "bytes": {Unit: "bytes", ShortValues: true},
		"ops": {Unit: "ops/sec"}, "binBps": {Unit: "bytes/sec", ShortValues: true},
	}
	unit, known := units[f.Unit]
	if !known {
		return nil, fmt.Errorf("unit %q has no format in Perses", f.Unit)
	}
	unit.DecimalPlaces = f.Decimals
	return &unit, nil
}

// convertThresholds returns the colours of values; nil where there is one colour for all.
func convertThresholds(t grafanaThresholds) *thresholds {
	out := thresholds{Mode: "absolute", Steps: []thresholdStep{}}
	for _, s := range t.Steps {
		if s.Value == nil {
			out.DefaultColor = s.Color
			continue
		}
		out.Steps = append(out.Steps, thresholdStep{*s.Value, s.Color})
	}
	if len(out.Steps) == 0 {
		return nil
	}
	return &out
}
