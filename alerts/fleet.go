package alerts

import (
	"strconv"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// componentFleet are the alerts that compare clusters. They need a Prometheus that has the series of several clusters, with
// the label cluster. With fewer than three of them they never fire: no share is three times a median in which it is half.
const componentFleet = "fleet"

// sharedBy is how many clusters have a loop before what they share is looked at.
const sharedBy = 3

// labelMeasure says in what a cluster is compared.
const labelMeasure = "measure"

// measure is what clusters are compared by: a share that is recorded of each of them.
type measure struct {
	record string
	least  string // share below which nothing stands out, however good the others are
	label  trail.Label
}

// Label returns the value of labelMeasure, with what it means in words.
func (m measure) Label() trail.Label { return m.label }

// listMeasures returns what clusters are compared by, each over a day.
func listMeasures() []measure {
	return []measure{
		{RecordMigrationsFailed1d, "0.05", trail.Label{Value: "migrations_failed", Text: "This is the share of its migrations that failed."}},
		{RecordMovesUseless1d, "0.2", trail.Label{
			Value: "moves_useless", Text: "This is the share of its rebalancing moves that relieved nothing, or overloaded their target.",
		}},
		{RecordEvacuationsMissed1d, "0.05", trail.Label{Value: "evacuations_missed", Text: "This is the share of its evacuations that missed their objective."}},
	}
}

// newFleetRecordingRules record the measures. A cluster in which fewer than 20 things ended in a day has none: two failures
// of five say nothing about a cluster.
func newFleetRecordingRules() []Rule {
	share := func(metric, some, all string) string {
		of := func(matcher string) string {
			return sumBy(perCluster, increaseOf(selectSeries(metric, matcher), "1d"))
		}
		return of(some) + " / (" + of(all) + " >= 20)"
	}
	return []Rule{
		{Record: RecordMigrationsFailed1d, Expr: share(metrics.MigrationsTotal, matchLabel(metrics.LabelResult, trail.OutcomeFailed),
			matchLabel(metrics.LabelResult, trail.OutcomeSucceeded, trail.OutcomeFailed))},
		{Record: RecordMovesUseless1d, Expr: share(metrics.MovesTotal, matchLabel(metrics.LabelBenefit, trail.NoEffect, trail.Harmed),
			excludeLabel(metrics.LabelBenefit, trail.BenefitUnknown))},
		{Record: RecordEvacuationsMissed1d, Expr: share(metrics.EvacuationObjectiveTotal, matchLabel(metrics.LabelResult, metrics.ObjectiveMissed),
			matchLabel(metrics.LabelResult, metrics.ObjectiveMet, metrics.ObjectiveMissed))},
	}
}

func newFleetAlerts() []alert { return []alert{newClusterStandsOutAlert(), newLoopsInClustersAlert()} }

// newClusterStandsOutAlert needs both a share that would be bad anywhere, and three times that of the fleet: where all clusters
// are bad alike, the alerts of each of them say so.
func newClusterStandsOutAlert() alert {
	of := []string{labelMeasure}
	var worse []string
	for _, m := range listMeasures() {
		worse = append(worse, addLabel(labelMeasure, m.label.Value, wrapInParens(
			m.record+" > "+m.least,
			"and "+m.record+" > on () group_left () (3 * quantile(0.5, "+m.record+"))")))
	}
	return alert{
		name: "EvictrailClusterStandsOut", severity: Warning, of: of, wait: "1h", board: boardFleet,
		expr:    anyOf(worse...),
		summary: "Cluster " + insertLabel(labelCluster) + " is three times worse than the fleet (" + insertLabel(labelMeasure) + ")",
		description: insertLabel(labelCluster) + " has " + theShare + " in the last day, more than three times the median of all clusters." +
			explainLabel(labelMeasure, listMeasures()...) + " Look for what differs there: versions, settings, the migration network, one node.",
	}
}

// LoopsInClusters is the alert that names no cluster.
const LoopsInClusters = "EvictrailLoopsInClusters"

// newLoopsInClustersAlert names no cluster: what makes the same loop in several of them is what they share.
func newLoopsInClustersAlert() alert {
	return alert{
		name: LoopsInClusters, severity: Warning, wait: "15m", keep: "15m", board: boardFleet,
		expr:    "count(" + countBy(perCluster, loopOpen()) + ") >= " + strconv.Itoa(sharedBy),
		summary: "Dual retry loops are active in " + theValue + " clusters at once",
		description: "In " + theValue + " clusters evacuations fail again and again while the descheduler evicts more. So many clusters at once have one cause: " +
			"a version that was rolled out, a setting, shared storage or a shared network.",
	}
}
