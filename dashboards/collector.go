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

// collector is for who runs evictrail.
func collector() Dashboard {
	return Dashboard{
		UID: UIDCollector, Title: "Is the record complete, and is it fresh?",
		Short:       "The health of evictrail itself: from the watch to the database.",
		variables:   sources(),
		annotations: annotations(),
		rows: []row{
			{question: "Where does it stop?", panels: []cog.Builder[dashboard.Panel]{pipeline()}},
			{question: "How late is the record, and how long does the spool last?", panels: []cog.Builder[dashboard.Panel]{lateness(), spool(), spoolLeft()}},
			{question: "Who writes, and does the database keep up?", panels: []cog.Builder[dashboard.Panel]{leaders(), storeLatency(), storeErrors()}},
			{question: "What is not in the record?", panels: []cog.Builder[dashboard.Panel]{lost(), gapList()}},
			{question: "What else can go wrong?", panels: []cog.Builder[dashboard.Panel]{auditEvents(), upkeep(), skew()}},
		},
	}
}

// The steps of a fact, and for each how many go through it, how many go wrong, and how late it is: three queries that are
// joined by the name of the step.
func pipeline() cog.Builder[dashboard.Panel] {
	facts := func(stage string) string {
		return sumBy(rate(metric(metrics.FactsTotal, is(metrics.LabelStage, stage))))
	}
	stored := sumBy(rate(metric(metrics.FactsTotal, matches(metrics.LabelStage, metrics.StageCommitted+"|"+metrics.StageDeduplicated))))
	rates := inSteps(
		"sum("+rate(metrics.WatchRestartsTotal)+")",
		facts(metrics.StageObserved),
		"clamp_min("+facts(metrics.StageObserved)+" - ("+stored+" or vector(0)), 0)", // of what did not happen yet there are no series
		facts(metrics.StageCommitted),
		sumBy(rate(metrics.HTTPRequestDurationSeconds+"_count")),
	)
	errors := inSteps(
		sumBy(rate(metric(metrics.WatchRestartsTotal, is(metrics.LabelReason, metrics.RestartError)))),
		facts(metrics.StageRejected),
		sumBy(rate(metrics.EventsLostTotal)),
		sumBy(rate(metrics.StoreErrorsTotal)),
		sumBy(rate(metric(metrics.HTTPRequestDurationSeconds+"_count", matches(metrics.LabelCode, "5.*"))))+" or on () 0 * "+sumBy(rate(metrics.HTTPRequestDurationSeconds+"_count")),
	)
	lags := inSteps(
		"time() - min("+maxBy(metrics.WatchLastActivityTimestamp, metrics.LabelResource)+")",
		"max("+metrics.QueueLength+") / (sum("+rate(metric(metrics.FactsTotal, is(metrics.LabelStage, metrics.StageCommitted)))+") > 0)",
		"time() - (min("+metrics.SpoolOldestEventTimestamp+") > 0)",
		p99(metrics.CommitLagSeconds),
		p99(metrics.HTTPRequestDurationSeconds),
	)
	return rows("The way of a fact", "The five steps in the order of the data. Rate: watches begun anew, facts made, facts by which the spool grows, facts stored, requests answered, each a second. Errors: what went wrong there, a second. "+
		"Lag: the longest silence of a watch, the time that the queue stands for, the age of what is spooled, and the 99th percentile of the time to commit and of answers. A lag is missing where nothing waits.").
		Datasource(prometheus()).Unit(units.NoUnit).
		WithTarget(rowsOf("A", rates)).WithTarget(rowsOf("B", errors)).WithTarget(rowsOf("C", lags)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "joinByField", Options: map[string]any{"byField": labelStep, "mode": "outer"}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "Time 1": true, "Time 2": true, "Time 3": true},
			"renameByName":  map[string]string{labelStep: "step", "Value #A": "rate", "Value #B": "errors", "Value #C": "lag"},
		}}).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("step").Desc(false)}).
		OverrideByName("rate", column(units.OpsPerSecond)).
		OverrideByName("errors", coloured(units.OpsPerSecond, thresholds(colourGood, step{0.001, colourBad}))).
		OverrideByName("lag", coloured(units.Seconds, thresholds(colourGood, step{5, colourBlocked}, step{300, colourBad}))).
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

// coloured is a column of a table whose background tells how well it is.
func coloured(unit string, t *dashboard.ThresholdsConfigBuilder) []dashboard.DynamicConfigValue {
	return append(figure(unit, 2, t), dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background", "mode": "basic"}},
		dashboard.DynamicConfigValue{Id: "color", Value: map[string]any{"mode": "thresholds"}})
}

func lateness() cog.Builder[dashboard.Panel] {
	b := lines("Share of facts that take over 5 s to commit", "Over five minutes, half an hour, an hour and six hours: what the alert on the freshness budget looks at. The budget is one in a thousand.", units.PercentUnit)
	for i, window := range []string{"5m", "30m", "1h", "6h"} {
		b = b.WithTarget(series(string(rune('A'+i)), recordLateRatioPrefix+window, window))
	}
	return b.Thresholds(thresholds(colourGood, step{0.0144, colourBad})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(10).Height(9)
}

func spool() cog.Builder[dashboard.Panel] {
	return lines("What the spool holds", "Facts on disk that the database has not confirmed yet, for each replica, and how much it can hold.", units.BytesIEC).
		WithTarget(series("A", maxBy(metrics.SpoolBytes, labelInstance), "{{"+labelInstance+"}}")).
		WithTarget(series("B", "min("+metrics.SpoolCapacityBytes+")", "capacity")).
		Span(8).Height(9)
}

func spoolLeft() cog.Builder[dashboard.Panel] {
	grows := "(max by (" + labelInstance + ") (deriv(" + metrics.SpoolBytes + "[30m])) > 0)"
	free := maxBy(metrics.SpoolCapacityBytes+" - "+metrics.SpoolBytes, labelInstance)
	return numbers("Until the spool is full", "How long the fullest spool lasts if it grows as in the last half hour, and how full it is. No time is shown while none grows.").
		WithTarget(last("A", "min("+free+" / "+grows+")", "Time left")).
		WithTarget(last("B", "max("+metrics.SpoolBytes+" / "+metrics.SpoolCapacityBytes+")", "Full")).
		OverrideByQuery("A", figure(units.Seconds, 0, thresholds(colourBad, step{4 * 3600, colourBlocked}, step{24 * 3600, colourCalm}))).
		OverrideByQuery("B", figure(units.PercentUnit, 0, thresholds(colourCalm, step{0.2, colourBlocked}, step{0.5, colourBad}))).
		Span(6).Height(9)
}

func leaders() cog.Builder[dashboard.Panel] {
	return statetimeline.NewPanelBuilder().Title("Which replica derives").
		Description("A lane for each replica: green while it holds the lease. There should be one green lane at any time; the others only store facts.").
		Datasource(prometheus()).Unit(units.NoUnit).
		WithTarget(series("A", maxBy(metrics.Leader, labelInstance), "{{"+labelInstance+"}}")).
		Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{
			"0": {Text: cog.ToPtr("stands by"), Color: cog.ToPtr(colourCalm), Index: cog.ToPtr(int32(0))},
			"1": {Text: cog.ToPtr("leads"), Color: cog.ToPtr(colourGood), Index: cog.ToPtr(int32(1))},
		}}}}).
		ColorScheme(fixed(colourCalm)). // by thresholds, which every panel has, 0 and 1 would be one state
		ShowValue(common.VisibilityModeAuto).RowHeight(0.8).MergeValues(true).FillOpacity(85).Legend(noLegend()).Tooltip(oneState()).
		Span(8).Height(8)
}

func storeLatency() cog.Builder[dashboard.Panel] {
	return lines("Time of a call of the database", "The 99th percentile of each operation of the store.", units.Seconds).
		WithTarget(series("A", p99(metrics.StoreWriteDurationSeconds, metrics.LabelOp), "{{"+metrics.LabelOp+"}}")).
		Span(8).Height(8)
}

func storeErrors() cog.Builder[dashboard.Panel] {
	return lines("Failed calls and connections of the database", "Calls that failed, a second, by operation and class of SQLSTATE (retry 40: transactions that were done again, as after a deadlock); and how many of the connections are in use.", units.Short).
		WithTarget(series("A", sumBy(rate(metrics.StoreErrorsTotal), metrics.LabelOp, metrics.LabelSQLStateClass), "{{"+metrics.LabelOp+"}} {{"+metrics.LabelSQLStateClass+"}} /s")).
		WithTarget(series("B", sumBy(metrics.StorePoolConnections, metrics.LabelState), "connections {{"+metrics.LabelState+"}}")).
		WithTarget(series("C", maxBy(metrics.StoreUp), "up")).
		Span(8).Height(8)
}

func lost() cog.Builder[dashboard.Panel] {
	return bars("What was lost, by cause", "Facts and events that are in no record, by cause. Anything here is a hole.").
		WithTarget(series("A", sumBy(increase(metrics.EventsLostTotal), metrics.LabelKind, metrics.LabelCause)+" > 0", "{{"+metrics.LabelKind+"}}: {{"+metrics.LabelCause+"}}")).
		WithTarget(series("B", sumBy(increase(metrics.WatchRelistUnrecoverableTotal), metrics.LabelKind)+" > 0", "{{"+metrics.LabelKind+"}}: not rebuilt after a list")).
		ColorScheme(fixed(colourBad)).Span(12).Height(7)
}

func auditEvents() cog.Builder[dashboard.Panel] {
	return lines("Audit events, by what became of them", "Audit events that were read, a second, and how long ago the last came. Requests and their authors are missing while none come though some are expected.", units.OpsPerSecond).
		WithTarget(series("A", sumBy(rate(metrics.AuditEventsTotal), metrics.LabelResult), "{{"+metrics.LabelResult+"}}")).
		WithTarget(series("B", "time() - (max("+metrics.AuditLastEventTimestamp+") > 0)", "since the last")).
		OverrideByName("since the last", append(column(units.Seconds), dashboard.DynamicConfigValue{Id: "custom.axisPlacement", Value: "right"})).
		Span(8).Height(8)
}

func upkeep() cog.Builder[dashboard.Panel] {
	return numbers("Schema, partitions, series", "How far ahead partitions are made and how many rows found none, whether the schema is that of the binary, and how often a series was left out for the cap in the time range: each replica reads the state every 10 s and counts each time.").
		WithTarget(last("A", "min("+metrics.PartitionAheadSeconds+")", "Partitions ahead")).
		WithTarget(last("B", maxBy(metrics.DefaultPartitionRows), "Rows without a partition")).
		WithTarget(last("C", maxBy(metrics.SchemaVersion)+" - "+maxBy(metrics.SchemaVersionExpected), "Schema against binary")).
		WithTarget(last("D", sumBy(overRange(metrics.SeriesDroppedTotal)), "Series left out")).
		OverrideByQuery("A", figure(units.Seconds, 0, thresholds(colourBad, step{7 * 86400, colourCalm}))).
		OverrideByQuery("B", figure(units.Short, 0, thresholds(colourCalm, step{1, colourBad}))).
		OverrideByQuery("C", figure(units.Short, 0, thresholds(colourBlocked, step{0, colourCalm}, step{1, colourBlocked}))).
		OverrideByQuery("D", figure(units.Short, 0, thresholds(colourCalm, step{1, colourBlocked}))).
		Span(8).Height(8)
}

func skew() cog.Builder[dashboard.Panel] {
	return lines("Difference of clocks", "How far the clocks of the API server and of Postgres are from ours. Over 2 s it is not certain any more who moved first.", units.Seconds).
		WithTarget(series("A", maxBy("abs("+metrics.ClockSkewSeconds+")", metrics.LabelPeer), "{{"+metrics.LabelPeer+"}}")).
		Thresholds(thresholds(colourGood, step{2, colourBad})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(8).Height(8)
}
