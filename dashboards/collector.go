package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
)

// newCollectorDashboard is for who runs evictrail.
func newCollectorDashboard() Dashboard {
	return Dashboard{
		UID: UIDCollector, Title: "evictrail / Recorder: is the record complete, and is it fresh?",
		Short:       "The health of evictrail itself: from the watch to the database.",
		refresh:     refreshOften,
		variables:   newCommonVariables(),
		annotations: newAnnotations(),
		rows: []row{
			{question: "Where does it stop?", panels: []cog.Builder[dashboard.Panel]{newPipelinePanel()}},
			{question: "How late is the record, and how long does the spool last?", panels: []cog.Builder[dashboard.Panel]{newLatenessPanel(), newSpoolPanel(), newSpoolLeftPanel()}},
			{question: "Who writes, and does the database keep up?", panels: []cog.Builder[dashboard.Panel]{newLeadersPanel(), newStoreLatencyPanel(), newStoreErrorsPanel()}},
			{question: "What is not in the record?", panels: []cog.Builder[dashboard.Panel]{newLossesPanel(), newGapListPanel()}},
			{question: "What else can go wrong?", panels: []cog.Builder[dashboard.Panel]{newAuditEventsPanel(), newUpkeepPanel(), newSkewPanel()}},
		},
	}
}

// The steps of a fact, and for each how many go through it, how many go wrong, and how late it is: three queries that are
// joined by the name of the step.
func newPipelinePanel() cog.Builder[dashboard.Panel] {
	facts := func(stage string) string {
		return sumBy(rateOf(selectSeries(metrics.FactsTotal, matchLabel(metrics.LabelStage, stage))))
	}
	stored := sumBy(rateOf(selectSeries(metrics.FactsTotal, matchRegexp(metrics.LabelStage, metrics.StageCommitted+"|"+metrics.StageDeduplicated))))
	rates := inSteps(
		"sum("+rateOf(metrics.WatchRestartsTotal)+")",
		facts(metrics.StageObserved),
		"clamp_min("+facts(metrics.StageObserved)+" - ("+stored+" or vector(0)), 0)", // of what did not happen yet there are no series
		facts(metrics.StageCommitted),
		sumBy(rateOf(metrics.HTTPRequestDurationSeconds+"_count")),
	)
	errors := inSteps(
		sumBy(rateOf(selectSeries(metrics.WatchRestartsTotal, matchLabel(metrics.LabelReason, metrics.RestartError)))),
		facts(metrics.StageRejected),
		sumBy(rateOf(metrics.EventsLostTotal)),
		sumBy(rateOf(metrics.StoreErrorsTotal)),
		sumBy(rateOf(selectSeries(metrics.HTTPRequestDurationSeconds+"_count", matchRegexp(metrics.LabelCode, "5.*"))))+" or on () 0 * "+sumBy(rateOf(metrics.HTTPRequestDurationSeconds+"_count")),
	)
	lags := inSteps(
		"time() - min("+maxBy(metrics.WatchLastActivityTimestamp, metrics.LabelResource)+")",
		"max("+metrics.QueueLength+") / (sum("+rateOf(selectSeries(metrics.FactsTotal, matchLabel(metrics.LabelStage, metrics.StageCommitted)))+") > 0)",
		"time() - (min("+metrics.SpoolOldestEventTimestamp+") > 0)",
		computeP99(metrics.CommitLagSeconds),
		computeP99(metrics.HTTPRequestDurationSeconds),
	)
	return newTablePanel("Pipeline: rate, errors and lag per stage", "Five steps, in the order of the data. Rate per second: watches restarted, facts made, growth of the spool, facts stored, requests answered. "+
		"Errors per second. Lag: longest silence of a watch, time in the queue, age of the spool, p99 of commits and of answers. A lag is missing where nothing waits.").
		Datasource(prometheusSource()).Unit(units.NoUnit).
		WithTarget(rowsOf("A", rates)).WithTarget(rowsOf("B", errors)).WithTarget(rowsOf("C", lags)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "joinByField", Options: map[string]any{"byField": labelStep, "mode": "outer"}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "Time 1": true, "Time 2": true, "Time 3": true},
			"renameByName":  map[string]string{labelStep: "step", "Value #A": "rate", "Value #B": "errors", "Value #C": "lag"},
		}}).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("step").Desc(false)}).
		OverrideByName("rate", setColumnUnit(units.OpsPerSecond)).
		OverrideByName("errors", colourColumn(units.OpsPerSecond, newThresholds(colourGood, step{0.001, colourBad}))).
		OverrideByName("lag", colourColumn(units.Seconds, newThresholds(colourGood, step{5, colourBlocked}, step{300, colourBad}))).
		Height(8)
}

// steps are those of the way of a fact. They are numbered as tables sort by name.
var steps = []string{"1 watch", "2 decode", "3 spool", "4 commit", "5 API"}

// inSteps names one expression for each step.
func inSteps(exprs ...string) string {
	out := ""
	for i, expr := range exprs {
		if i > 0 {
			out += " or "
		}
		out += "label_replace(" + expr + ", " + strconv.Quote(labelStep) + ", " + strconv.Quote(steps[i]) + `, "", "")`
	}
	return out
}

// colourColumn is a column of a table whose background shows how well it is.
func colourColumn(unit string, t *dashboard.ThresholdsConfigBuilder) []dashboard.DynamicConfigValue {
	return append(styleNumber(unit, 2, t), dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background", "mode": "basic"}},
		dashboard.DynamicConfigValue{Id: "color", Value: map[string]any{"mode": "thresholds"}})
}

func newLatenessPanel() cog.Builder[dashboard.Panel] {
	b := newLinesPanel("Facts committed late (over 5 s)", "Over 5 minutes, 30 minutes, 1 hour and 6 hours, as the alert on the freshness budget has it. The budget is one in a thousand.", units.PercentUnit)
	for i, window := range []string{"5m", "30m", "1h", "6h"} {
		b = b.WithTarget(queryRange(string(rune('A'+i)), recordLateRatioPrefix+window, window))
	}
	return b.Thresholds(newThresholds(colourGood, step{0.0144, colourBad})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(10).Height(9)
}

func newSpoolPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Spool size", "Facts on disk that the database has not confirmed, for each replica, and the capacity.", units.BytesIEC).
		WithTarget(queryRange("A", maxBy(metrics.SpoolBytes, labelInstance), "{{"+labelInstance+"}}")).
		WithTarget(queryRange("B", "min("+metrics.SpoolCapacityBytes+")", "capacity")).
		Span(8).Height(9)
}

func newSpoolLeftPanel() cog.Builder[dashboard.Panel] {
	grows := "(max by (" + labelInstance + ") (deriv(" + metrics.SpoolBytes + "[30m])) > 0)"
	free := maxBy(metrics.SpoolCapacityBytes+" - "+metrics.SpoolBytes, labelInstance)
	return newNumbersPanel("Spool runway", "How long the fullest spool lasts at the growth of the last 30 minutes, and how full it is. No time while none grows.").
		WithTarget(queryInstant("A", "min("+free+" / "+grows+")", "Time left")).
		WithTarget(queryInstant("B", "max("+metrics.SpoolBytes+" / "+metrics.SpoolCapacityBytes+")", "Full")).
		OverrideByQuery("A", styleNumber(units.Seconds, 0, newThresholds(colourBad, step{4 * 3600, colourBlocked}, step{24 * 3600, colourCalm}))).
		OverrideByQuery("B", styleNumber(units.PercentUnit, 0, newThresholds(colourCalm, step{0.2, colourBlocked}, step{0.5, colourBad}))).
		Span(6).Height(9)
}

func newLeadersPanel() cog.Builder[dashboard.Panel] {
	return statetimeline.NewPanelBuilder().Title("Leader").
		Description("A lane for each replica, green while it holds the lease. One should be green at any time; the others only record.").
		Datasource(prometheusSource()).Unit(units.NoUnit).
		WithTarget(queryRange("A", maxBy(metrics.Leader, labelInstance), "{{"+labelInstance+"}}")).
		Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{
			"0": {Text: cog.ToPtr("stands by"), Color: cog.ToPtr(colourCalm), Index: cog.ToPtr(int32(0))},
			"1": {Text: cog.ToPtr("leads"), Color: cog.ToPtr(colourGood), Index: cog.ToPtr(int32(1))},
		}}}}).
		ColorScheme(newFixedColour(colourCalm)). // by thresholds, which every panel has, 0 and 1 would be one state
		ShowValue(common.VisibilityModeAuto).RowHeight(0.8).MergeValues(true).FillOpacity(85).Legend(noLegend()).Tooltip(oneState()).
		Span(8).Height(8)
}

func newStoreLatencyPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Database latency", "99th percentile of each operation of the store.", units.Seconds).
		WithTarget(queryRange("A", computeP99(metrics.StoreWriteDurationSeconds, metrics.LabelOp), "{{"+metrics.LabelOp+"}}")).
		Span(8).Height(8)
}

func newStoreErrorsPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Database errors and connections", "Failed calls per second by operation and class of SQLSTATE (retry 40: "+
		"repeated transactions, as after a deadlock), and connections in use.", units.Short).
		WithTarget(queryRange("A", sumBy(rateOf(metrics.StoreErrorsTotal), metrics.LabelOp, metrics.LabelSQLStateClass), "{{"+metrics.LabelOp+"}} {{"+metrics.LabelSQLStateClass+"}} /s")).
		WithTarget(queryRange("B", sumBy(metrics.StorePoolConnections, metrics.LabelState), "connections {{"+metrics.LabelState+"}}")).
		WithTarget(queryRange("C", maxBy(metrics.StoreUp), "up")).
		Span(8).Height(8)
}

func newLossesPanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Lost facts by cause", "Facts that are in no record, by cause. Anything here is a hole.").
		WithTarget(queryRange("A", sumBy(increaseOf(metrics.EventsLostTotal), metrics.LabelKind, metrics.LabelCause)+" > 0", "{{"+metrics.LabelKind+"}}: {{"+metrics.LabelCause+"}}")).
		WithTarget(queryRange("B", sumBy(increaseOf(metrics.WatchRelistUnrecoverableTotal), metrics.LabelKind)+" > 0", "{{"+metrics.LabelKind+"}}: not rebuilt after a list")).
		ColorScheme(newFixedColour(colourBad)).Span(12).Height(7)
}

func newAuditEventsPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Audit events by result", "Audit events read per second, and how long ago the last came. "+
		"While none come though some are expected, requests and requesters are missing.", units.OpsPerSecond).
		WithTarget(queryRange("A", sumBy(rateOf(metrics.AuditEventsTotal), metrics.LabelResult), "{{"+metrics.LabelResult+"}}")).
		WithTarget(queryRange("B", "time() - (max("+metrics.AuditLastEventTimestamp+") > 0)", "since the last")).
		OverrideByName("since the last", append(setColumnUnit(units.Seconds), dashboard.DynamicConfigValue{Id: "custom.axisPlacement", Value: "right"})).
		Span(8).Height(8)
}

func newUpkeepPanel() cog.Builder[dashboard.Panel] {
	return newNumbersPanel("Schema, partitions and series", "How far ahead partitions are made and how many rows found none, whether the schema is the binary's, and how often a series was left out for the "+
		"cap: each replica counts at each reading, every 10 s.").
		WithTarget(queryInstant("A", "min("+metrics.PartitionAheadSeconds+")", "Partitions ahead")).
		WithTarget(queryInstant("B", maxBy(metrics.DefaultPartitionRows), "Rows without a partition")).
		WithTarget(queryInstant("C", maxBy(metrics.SchemaVersion)+" - "+maxBy(metrics.SchemaVersionExpected), "Schema against binary")).
		WithTarget(queryInstant("D", sumBy(overRange(metrics.SeriesDroppedTotal)), "Series left out")).
		OverrideByQuery("A", styleNumber(units.Seconds, 0, newThresholds(colourBad, step{7 * 86400, colourCalm}))).
		OverrideByQuery("B", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBad}))).
		OverrideByQuery("C", styleNumber(units.Short, 0, newThresholds(colourBlocked, step{0, colourCalm}, step{1, colourBlocked}))).
		OverrideByQuery("D", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBlocked}))).
		Span(8).Height(8)
}

func newSkewPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Clock skew", "How far the clocks of the API server and of Postgres are from ours. Over 2 s it is uncertain who moved first.", units.Seconds).
		WithTarget(queryRange("A", maxBy("abs("+metrics.ClockSkewSeconds+")", metrics.LabelPeer), "{{"+metrics.LabelPeer+"}}")).
		Thresholds(newThresholds(colourGood, step{2, colourBad})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(8).Height(8)
}
