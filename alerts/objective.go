package alerts

import (
	"math"
	"strconv"

	"github.com/evictrail/evictrail/metrics"
)

// objectiveBurn is the alert for evacuations that take longer than they may.
const objectiveBurn = "EvictrailEvacuationObjectiveBurn"

// The share of evacuations, in percent, that may be asked to keep to their objective. With less, no hour could burn the rest 14.4 times as fast as
// it may.
const (
	LowestTarget  = 95
	HighestTarget = 99.99
)

// formatBudget is the share of evacuations that may miss their objective, as it is written in expressions.
func (o Options) formatBudget() string { return formatNumber((100 - o.EvacuationTarget) / 100) }

// formatNumber writes a number without the noise of its last digits.
func formatNumber(n float64) string { return strconv.FormatFloat(math.Round(n*1e6)/1e6, 'f', -1, 64) }

// evacuationMissed is the share of evacuations, of those that were decided in a window, whose guest was still there when its time was over.
func evacuationMissed(window string) string {
	return wrapInParens(
		sumBy(perRequester, rateOf(selectSeries(metrics.EvacuationObjectiveTotal, matchLabel(metrics.LabelResult, metrics.ObjectiveMissed)), window)),
		"/",
		"("+sumBy(perRequester, rateOf(metrics.EvacuationObjectiveTotal, window))+" > 0)")
}

// buildMissedExpr holds where three evacuations, at least, missed their objective in a window. Prometheus extrapolates: three may come as 2.9, two as 2.1.
func buildMissedExpr(window string) string {
	return sumBy(perRequester, increaseOf(selectSeries(metrics.EvacuationObjectiveTotal, matchLabel(metrics.LabelResult, metrics.ObjectiveMissed)), window)) + " > 2.5"
}

// newObjectiveAlerts burn their budget fast, over an hour and five minutes, or slowly, over six hours and thirty minutes; what would use it up only in a month is
// an info. VMs are few: one or two that are late are half of a small drain, and say nothing about the rest.
func newObjectiveAlerts(o Options) []alert {
	burn := func(long, short, factor string) string {
		limit := " > " + o.formatBudget()
		if factor != "" {
			limit = " > (" + factor + " * " + o.formatBudget() + ")"
		}
		return joinLines(recordEvacuationMissed+long+limit, "and", recordEvacuationMissed+short+limit, "and", buildMissedExpr(long))
	}
	who, may := insertLabel(metrics.LabelRequester), formatNumber(100-o.EvacuationTarget)+"%"
	return []alert{
		{
			name: objectiveBurn, severity: Warning, of: perRequester, wait: "2m", board: boardDrain,
			expr:    joinLines(wrapInParens(burn("1h", "5m", "14.4")), "or", wrapInParens(burn("6h", "30m", "6"))),
			summary: theShare + " of evacuations for " + who + " miss their objective",
			description: theShare + " of the VMs that " + who + " had evacuated, three or more, were still on their node when their time was over; " + may + " may be. " +
				"People who empty nodes wait longer than was agreed.",
		},
		{
			name: objectiveBurn, severity: Info, of: perRequester, wait: "1h", board: boardDrain,
			expr:    burn("3d", "6h", ""),
			summary: theShare + " of evacuations for " + who + " missed their objective in 3 days",
			description: theShare + " of the VMs that " + who + " had evacuated in three days, three or more, were still on their node when their time was over; " + may + " may be. " +
				"It goes on at this rate.",
		},
	}
}
