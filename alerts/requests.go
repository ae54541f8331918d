package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// requests are about who asks for evictions.
func requests() []alert { return []alert{blockStorm()} }

// blockStorm compares with the day before: a day that holds the storm would call it normal after six hours. A repeated
// request is what a drain sends every five seconds for each VM it waits for, so it counts only where no VM moves.
func blockStorm() alert {
	of := []string{metrics.LabelRequester, metrics.LabelAnswer}
	refused := series(metrics.EvictionRequestsTotal, is(metrics.LabelAnswer, trail.AnswerAlreadyMarked,
		trail.AnswerNotMigratable, trail.AnswerTargetPod, trail.AnswerPDB, trail.AnswerError))
	now := sumBy(of, rate(refused, "10m"))
	return alert{
		name: "EvictrailEvictionBlockStorm", severity: Warning, of: of, wait: "15m", board: boardOverview,
		expr: lines(
			"("+now+" * 60 > 30)",
			"unless "+on(of),
			"("+now+" <= 4 * "+sumBy(of, "rate("+refused+"[1d] offset 1d)")+")",
			"unless "+on([]string{metrics.LabelAnswer}),
			as(metrics.LabelAnswer, trail.AnswerAlreadyMarked, sumBy(perCluster, RecordEvacuationsMigrated)+" > 0")),
		summary: the(metrics.LabelRequester) + " evictions are refused " + theNumber + " times a minute (" + the(metrics.LabelAnswer) + ")",
		description: "Eviction requests of " + the(metrics.LabelRequester) + " are refused " + theNumber + " times a minute with the answer " +
			the(metrics.LabelAnswer) + ", more than four times as often as the day before. It asks again and again for what it does not get.",
	}
}
