package alerts

import (
	"fmt"
	"strconv"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// labelActivity says what there is a storm of.
const labelActivity = "activity"

// usualWeeks is how many weeks say what is usual at an hour of the week.
const usualWeeks = 4

// newStormRecordingRules record how much there was in the last hour, and how much is usual at this hour of the week.
func newStormRecordingRules() []Rule {
	return []Rule{
		{Record: RecordEvictionsAccepted, Expr: sumBy(perCluster, increaseOf(
			selectSeries(metrics.EvictionRequestsTotal, matchLabel(metrics.LabelAnswer, trail.AnswerMarked, trail.AnswerAllowed)), "1h"))},
		{Record: RecordEvictionsUsual, Expr: usualOf(RecordEvictionsAccepted)},
		{Record: RecordMigrationsUsual, Expr: usualOf(RecordMigrationsFinished)},
	}
}

// usualOf is the average of what was recorded at this hour of the last weeks, of those that there are: a young cluster,
// or a Prometheus that keeps two weeks, has fewer. Of each it takes the most within half an hour, as what runs once a
// week does not begin to the minute.
func usualOf(record string) string {
	weeks := make([]string, usualWeeks)
	for i := range weeks {
		offset := fmt.Sprintf("%dd23h30m", 7*(i+1)-1)
		weeks[i] = addLabel("week", strconv.Itoa(i+1), "max_over_time("+record+"[1h] offset "+offset+")")
	}
	return "avg" + groupBy(perCluster) + " " + anyOf(weeks...)
}

// newStormAlert compares a cluster with itself at the same hour of the weeks before: a backup or an update that runs
// each Sunday is no storm. A cluster that was not recorded a week ago has nothing to compare with, and never fires.
// Refused evictions are EvictrailEvictionBlockStorm's.
func newStormAlert() alert {
	storm := func(activity, record, usual string) string {
		return addLabel(labelActivity, activity, wrapInParens(record+" > 100", "and "+record+" > 4 * "+usual))
	}
	return alert{
		name: "EvictrailActivityStorm", severity: Warning, of: []string{labelActivity}, wait: "15m", board: boardOverview,
		expr: anyOf(
			storm("evictions", RecordEvictionsAccepted, RecordEvictionsUsual),
			storm("migrations", RecordMigrationsFinished, RecordMigrationsUsual)),
		summary: theCount + " " + insertLabel(labelActivity) + " within an hour, over four times the usual",
		description: "There were " + theCount + " " + insertLabel(labelActivity) + " within the last hour. At this hour of the " +
			"last four weeks there were less than a quarter of that on average. Either somebody began maintenance, or a controller evicts without end.",
	}
}
