package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The alerts that a database which takes nothing explains.
const (
	storeDown     = "EvictrailStoreDown"
	spoolGrowing  = "EvictrailSpoolGrowing"
	freshnessBurn = "EvictrailFreshnessBudgetBurn"
)

// newStoreAlerts is about the way from what was seen to the database.
func newStoreAlerts() []alert {
	return []alert{newStoreDownAlert(), newSpoolGrowingAlert(), newNearlyFullAlert(), newSpoolUnwritableAlert(), newRefusedFactsAlert(), newUnderivedAlert(), newEventLossAlert(), newHistoryBrokenAlert(), newFreshnessAlert(), newPartitionRunwayAlert(), newSchemaMismatchAlert()}
}

func newStoreDownAlert() alert {
	return alert{
		name: storeDown, severity: Warning, of: perCluster, wait: "5m", board: boardCollector,
		expr:    maxBy(perCluster, metrics.StoreUp) + " < 1",
		summary: "evictrail cannot write to PostgreSQL",
		description: theValue + " replicas of evictrail can write to the database: the last write of each failed. History stops growing; nothing is lost yet, " +
			"since facts wait in the spool.",
	}
}

// spoolLevel is how full the spool of each replica is.
func spoolLevel() string {
	return maxBy(perReplica, metrics.SpoolBytes+" / "+metrics.SpoolCapacityBytes)
}

// newSpoolGrowingAlert needs level and slope.
func newSpoolGrowingAlert() alert {
	return alert{
		name: spoolGrowing, severity: Warning, of: perReplica, wait: "15m", board: boardCollector,
		expr: joinLines(
			"("+spoolLevel()+" > 0.2)",
			"and "+matchOn(perReplica),
			"("+maxBy(perReplica, "deriv("+metrics.SpoolBytes+"[30m])")+" > 0)"),
		summary: "Spool of " + theReplica + " is " + theShare + " full and growing",
		description: "The spool of " + theReplica + " is " + theShare + " full and grows: the database takes less than evictrail sees, or nothing. History is late " +
			"by as much as waits there; nothing is lost yet.",
	}
}

func newNearlyFullAlert() alert {
	return alert{
		name: "EvictrailSpoolNearlyFull", severity: Critical, of: perReplica, wait: "5m", board: boardCollector,
		expr: joinLines(
			"("+spoolLevel()+" > 0.5)",
			"and "+matchOn(perReplica),
			wrapInParens(
				maxBy(perReplica, "predict_linear("+metrics.SpoolBytes+"[30m], 4 * 3600)"),
				"> "+matchOn(perReplica),
				maxBy(perReplica, metrics.SpoolCapacityBytes))),
		summary: "Spool of " + theReplica + " fills within 4 hours",
		description: "The spool of " + theReplica + " is " + theShare + " full, and as it grows now it has no room left within four hours. Then evictrail can " +
			"take in no more, and what the cluster forgets during that time is lost for good: this is the last call.",
	}
}

func newSpoolUnwritableAlert() alert {
	return alert{
		name: "EvictrailSpoolUnwritable", severity: Warning, of: perReplica, wait: "5m", board: boardCollector,
		expr:    maxBy(perReplica, metrics.SpoolWritable) + " < 1",
		summary: "Spool of " + theReplica + " cannot be written",
		description: "The disk under the spool of " + theReplica + " takes nothing. Facts go straight to the database, and while that is away at most 50,000 wait in " +
			"memory: a restart then, or more of them, loses what was seen.",
	}
}

func newRefusedFactsAlert() alert {
	return alert{
		name: "EvictrailFactsRefused", severity: Warning, of: perReplica, wait: "1m", board: boardCollector,
		expr:    maxBy(perReplica, metrics.DeadLetters) + " > 0",
		summary: "{{ $value }} fact(s) of " + theReplica + " were refused and set aside",
		description: "The database refused {{ $value }} fact(s) of " + theReplica + ", and would again. They are set aside beside the spool, so that nothing waits behind " +
			"them; the gaps say what the record has no part of until they are replayed.",
	}
}

func newUnderivedAlert() alert {
	return alert{
		name: "EvictrailDerivationFailing", severity: Warning, of: perCluster, wait: "5m", board: boardCollector,
		expr:    maxBy(perCluster, metrics.UnderivedSubjects) + " > 0",
		summary: "{{ $value }} VM(s) or node(s) cannot be derived",
		description: "evictrail cannot derive {{ $value }} VM(s) or node(s) from their facts. These are stored; lists, pages and answers about them stand still until it can. " +
			"All others go on.",
	}
}

func newEventLossAlert() alert {
	of := []string{metrics.LabelKind, metrics.LabelCause}
	return alert{
		name: "EvictrailEventLoss", severity: Warning, of: of, keep: "1h", board: boardCollector,
		expr:    sumBy(of, increaseOf(metrics.EventsLostTotal, "15m")) + " > 0",
		summary: "evictrail lost {{ $value | printf \"%.0f\" }} " + insertLabel(metrics.LabelKind) + " event(s): " + insertLabel(metrics.LabelCause),
		description: "In the last 15 minutes about {{ $value | printf \"%.0f\" }} " + insertLabel(metrics.LabelKind) + " event(s) were lost (" + insertLabel(metrics.LabelCause) + "). " +
			"The record has a hole there for good; the gaps say from when to when.",
	}
}

// newHistoryBrokenAlert also sees a break that was noticed before the first scrape of a process: a series that did not exist an hour ago and is above zero.
func newHistoryBrokenAlert() alert {
	of := []string{metrics.LabelCause}
	var causes []trail.Gap
	for _, cause := range trail.BreakCauses() {
		causes = append(causes, trail.Gap{Cause: cause})
	}
	return alert{
		name: "EvictrailHistoryBroken", severity: Warning, of: of, keep: "1h", board: boardCollector,
		expr: joinLines(
			maxBy(of, increaseOf(metrics.EpochsTotal, "1h"))+" > 0",
			"or",
			maxBy(of, wrapInParens(metrics.EpochsTotal+" > 0", "unless", metrics.EpochsTotal+" offset 1h"))),
		summary: "History does not continue what was recorded: " + insertLabel(metrics.LabelCause),
		description: "Within the last hour the cluster or the database went back behind what evictrail had recorded." + explainLabel(metrics.LabelCause, causes...) + " evictrail has compared " +
			"everything and goes on; a gap says from when to when the record may differ from what happened.",
	}
}

// lateFacts is how many late facts of six hours are too few for an alert: on a quiet cluster, one that was late is more than a thousandth.
const lateFacts = "10"

// newFreshnessAlert burns a budget of one late fact in a thousand: fast, over an hour, or slowly, over six hours and thirty minutes. Five minutes in time end the
// alert: then the database has recovered.
func newFreshnessAlert() alert {
	const fast, slow = " > (14.4 * 0.001)", " > (6 * 0.001)"
	stored := sumBy(perCluster, increaseOf(selectSeries(metrics.FactsTotal, matchLabel(metrics.LabelStage, metrics.StageCommitted)), "6h"))
	return alert{
		name: freshnessBurn, severity: Warning, of: perCluster, wait: "2m", board: boardCollector,
		expr: joinLines(
			anyOf(
				wrapInParens(RecordCommitLate1h+fast, "and", RecordCommitLate5m+fast),
				wrapInParens(RecordCommitLate6h+slow, "and", RecordCommitLate30m+slow, "and", RecordCommitLate5m+slow)),
			"and",
			RecordCommitLate6h+" * "+stored+" > "+lateFacts),
		summary: "History is late: " + theShare + " of events took over 5 s to commit",
		description: theShare + " of what evictrail saw took longer than five seconds to reach the database; one in a thousand may. Who asks now " +
			"may get an answer that is out of date.",
	}
}

// newPartitionRunwayAlert has one value for both: rows in the default partition mean that no time is left.
func newPartitionRunwayAlert() alert {
	return alert{
		name: "EvictrailPartitionRunway", severity: Warning, of: perCluster, wait: "1h", board: boardCollector,
		expr: joinLines(
			"0 * ("+maxBy(perCluster, metrics.DefaultPartitionRows)+" > 0)",
			"or",
			minBy(perCluster, metrics.PartitionAheadSeconds)+" < 7 * 86400"),
		summary: "Partition runway is short",
		description: "The last partition of the history ends in {{ $value | humanizeDuration }} (0s: rows are already in the default partition). New ones are made " +
			"far ahead, so this has failed for weeks; rows in the default partition are in the way of the partition they belong to.",
	}
}

func newSchemaMismatchAlert() alert {
	return alert{
		name: "EvictrailSchemaMismatch", severity: Warning, of: perCluster, wait: "15m", board: boardCollector,
		expr:    maxBy(perCluster, metrics.SchemaVersion) + " != " + maxBy(perCluster, metrics.SchemaVersionExpected),
		summary: "Database schema does not match the running binary",
		description: "The schema of the database is at version {{ $value }}, and the running evictrail needs another. An upgrade, or the way back, stopped " +
			"half-way; old and new get along for one version only.",
	}
}
