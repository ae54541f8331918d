package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/barchart"
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// fullWidth is the width of a dashboard in columns.
const fullWidth = 24

// newLegend is a table under the panel, the largest last value first.
func newLegend() *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
		Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", "max"}).SortBy("Last *").SortDesc(true)
}

func noLegend() *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().ShowLegend(false).DisplayMode(common.LegendDisplayModeList).
		Placement(common.LegendPlacementBottom).Calcs([]string{})
}

// oneState returns what the pointer is on.
func oneState() *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)
}

// allSeries is a tooltip that shows every series at that time.
func allSeries() *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)
}

func newFixedColour(colour string) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(colour)
}

func byThresholds() *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)
}

// newLinesPanel draws series over time.
func newLinesPanel(title, description, unit string) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(prometheusSource()).
		Unit(unit).Min(0).LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeAuto).Legend(newLegend()).Tooltip(allSeries())
}

// newBarsPanel draws counts over time, one upon the other.
func newBarsPanel(title, description string) *timeseries.PanelBuilder {
	return newLinesPanel(title, description, units.Short).DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// newNumbersPanel shows the last value of each query. A value's unit and thresholds are set by its query's letter (see number).
func newNumbersPanel(title, description string) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(description).Datasource(prometheusSource()).
		Unit(units.Short).ColorMode(common.BigValueColorModeBackground).GraphMode(common.BigValueGraphModeNone).
		Orientation(common.VizOrientationAuto).ReduceOptions(lastValue()).NoValue("no data").ColorScheme(byThresholds()).Thresholds(newThresholds(colourCalm))
}

func lastValue() *common.ReduceDataOptionsBuilder {
	return common.NewReduceDataOptionsBuilder().Values(false).Calcs([]string{"lastNotNull"}).Fields("")
}

// styleNumber says how one of several numbers is shown.
func styleNumber(unit string, decimals int, t *dashboard.ThresholdsConfigBuilder, links ...*dashboard.DashboardLinkBuilder) []dashboard.DynamicConfigValue {
	built, err := t.Build()
	if err != nil {
		panic("thresholds: " + err.Error()) // a broken invariant: thresholds sets everything
	}
	out := []dashboard.DynamicConfigValue{{Id: "unit", Value: unit}, {Id: "decimals", Value: decimals}, {Id: "thresholds", Value: built}}
	if len(links) > 0 {
		out = append(out, linkColumn(links...))
	}
	return out
}

// newTablePanel shows the rows of a query; the columns that lead elsewhere do so by their name.
func newTablePanel(title, description string) *table.PanelBuilder {
	return newPlainTablePanel(title, description).
		OverrideByName("vmi", []dashboard.DynamicConfigValue{linkColumn(toVM())}).
		OverrideByName("node", []dashboard.DynamicConfigValue{linkColumn(toLoop(), toDrain())})
}

// newPlainTablePanel shows the rows of a query, no column of which leads elsewhere.
func newPlainTablePanel(title, description string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Description(description).Datasource(postgresSource()).
		CellHeight(common.TableCellHeightSm).Filterable(true).ShowHeader(true).NoValue("nothing in this time range").Span(fullWidth)
}

// wrapColumn makes a column of a table wide, and breaks its lines.
func wrapColumn(width int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "custom.width", Value: width},
		{Id: "custom.cellOptions", Value: map[string]any{"type": "auto", "wrapText": true}},
	}
}

// setColumnUnit sets the unit of a column of a table.
func setColumnUnit(unit string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "unit", Value: unit}}
}

// colourTexts colours the texts of a column of a table.
func colourTexts(paints ...paint) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "mappings", Value: asText(paints...)},
		{Id: "custom.cellOptions", Value: map[string]any{"type": "color-text"}},
	}
}

// newLanesPanel shows states over time. Its query has a row for each state: time and time_end bound it, lane says where it is drawn,
// and "Value" is its text. Rows are sorted by lane, then time, and those of a lane do not overlap;
// equal ones that follow each other without a gap are drawn as one.
//
// A frame for each lane is made by the transformation; its name is that of the lane because the field is named Value. Where a
// frame has two columns of time, Grafana takes the second for the end.
//
// Source: grafana/grafana public/app/core/components/TimelineChart/utils.ts (prepareTimelineFields).
func newLanesPanel(title, description string, paints ...paint) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().Title(title).Description(description).Datasource(postgresSource()).Span(fullWidth).
		Mappings(asText(paints...)).ColorScheme(byThresholds()).Thresholds(newThresholds(colourCalm)).
		ShowValue(common.VisibilityModeAuto).RowHeight(0.8).MergeValues(true).AlignValue(common.TimelineValueAlignmentLeft).
		FillOpacity(85).LineWidth(1).Legend(noLegend()).PerPage(40).
		Tooltip(oneState()).
		WithTransformation(dashboard.DataTransformerConfig{
			Id: "partitionByValues", Options: map[string]any{"fields": []string{"lane"}, "keepFields": false, "naming": map[string]any{"asLabels": true}},
		})
}

// newBarChartPanel draws bars of the numbers of each row, named by its first column.
func newBarChartPanel(title, description, unit, x string) *barchart.PanelBuilder {
	return barchart.NewPanelBuilder().Title(title).Description(description).Datasource(postgresSource()).Unit(unit).Min(0).
		XField(x).Orientation(common.VizOrientationHorizontal).Stacking(common.StackingModeNone).ShowValue(common.VisibilityModeAuto).
		BarWidth(0.9).GroupWidth(0.8).FillOpacity(80).LineWidth(0).Legend(newLegend()).Tooltip(allSeries())
}

// newGaugesPanel draws a bar for each series.
func newGaugesPanel(title, description, unit string) *bargauge.PanelBuilder {
	return bargauge.NewPanelBuilder().Title(title).Description(description).Datasource(prometheusSource()).Unit(unit).Min(0).
		Orientation(common.VizOrientationHorizontal).DisplayMode(common.BarGaugeDisplayModeBasic).ShowUnfilled(true).
		ReduceOptions(lastValue()).NoValue("none")
}

// newHeatmapPanel draws a histogram over time.
func newHeatmapPanel(title, description, unit string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Title(title).Description(description).Datasource(prometheusSource()).
		Calculate(false).CellGap(1).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Fill("dark-orange").Steps(64)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit)).ShowLegend().
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto))
}
