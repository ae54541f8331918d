package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newRequestAlerts are about who asks for evictions.
func newRequestAlerts() []alert { return []alert{newBlockStormAlert()} }

// newBlockStormAlert compares with the day before: a day that holds the storm would call it normal after six hours. A repeated
// request is what a drain sends every five seconds for each VM it waits for, so it counts only where no VM moves.
func newBlockStormAlert() alert {
	of := []string{metrics.LabelRequester, metrics.LabelAnswer}
	refused := selectSeries(metrics.EvictionRequestsTotal, matchLabel(metrics.LabelAnswer, trail.AnswerAlreadyMarked,
		trail.AnswerNotMigratable, trail.AnswerTargetPod, trail.AnswerPDB, trail.AnswerError))
	now := sumBy(of, rateOf(refused, "10m"))
	return alert{
		name: "EvictrailEvictionBlockStorm", severity: Warning, of: of, wait: "15m", board: boardOverview,
		expr: joinLines(
			"("+now+" * 60 > 30)",
			"unless "+matchOn(of),
			"("+now+" <= 4 * "+sumBy(of, "rate("+refused+"[1d] offset 1d)")+")",
			"unless "+matchOn([]string{metrics.LabelAnswer}),
			addLabel(metrics.LabelAnswer, trail.AnswerAlreadyMarked, sumBy(perCluster, RecordEvacuationsMigrated)+" > 0")),
		summary: insertLabel(metrics.LabelRequester) + " evictions are refused " + theNumber + " times a minute (" + insertLabel(metrics.LabelAnswer) + ")",
		description: "Eviction requests of " + insertLabel(metrics.LabelRequester) + " are refused " + theNumber + " times a minute with the answer " +
			insertLabel(metrics.LabelAnswer) + ", more than four times as often as the day before. It asks again and again for what it does not get.",
	}
}
