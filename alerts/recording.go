package alerts

import (
	"slices"
	"strings"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The names of what is recorded.
const (
	RecordEvacuationsMigrated = "evictrail:evacuations_migrated:increase30m"
	RecordNodeVMIs            = "evictrail:node_vmis:max"
	RecordNodeVMIsInCooldown  = "evictrail:node_vmis_in_cooldown:ratio"
	RecordMigrationFailures   = "evictrail:migration_failures:increase1h"
	RecordMigrationsFinished  = "evictrail:migrations_finished:increase1h"
	RecordEvictionBlocks      = "evictrail:eviction_blocks:rate10m"
	RecordCommitLate5m        = recordCommitLate + "5m"
	RecordCommitLate30m       = recordCommitLate + "30m"
	RecordCommitLate1h        = recordCommitLate + "1h"
	RecordCommitLate6h        = recordCommitLate + "6h"
	RecordEvacuationMissed5m  = recordEvacuationMissed + "5m"
	RecordEvacuationMissed30m = recordEvacuationMissed + "30m"
	RecordEvacuationMissed1h  = recordEvacuationMissed + "1h"
	RecordEvacuationMissed6h  = recordEvacuationMissed + "6h"
	RecordEvacuationMissed3d  = recordEvacuationMissed + "3d"
	RecordEvacuationTarget    = "evictrail:evacuation_objective:target"
	RecordMigrationsFailed1d  = "evictrail:migrations_failed:ratio1d"
	RecordMovesUseless1d      = "evictrail:moves_useless:ratio1d"
	RecordEvacuationsMissed1d = "evictrail:evacuations_missed:ratio1d"

	RecordEvictionsAccepted = "evictrail:evictions_accepted:increase1h"
	RecordEvictionsUsual    = "evictrail:evictions_usual:avg4w"
	RecordMigrationsUsual   = "evictrail:migrations_usual:avg4w"

	recordCommitLate       = "evictrail:commit_late:ratio_rate"
	recordEvacuationMissed = "evictrail:evacuation_missed:ratio_rate"
)

// commitInTime is how many seconds a fact may take from sight to commit: a bucket of metrics.CommitLagSeconds.
const commitInTime = "5"

// newRecordingRules returns the rules that others build on.
func newRecordingRules(o Options) []Rule {
	rules := []Rule{
		{Record: RecordEvacuationsMigrated, Expr: sumBy(perNode, increaseOf(
			selectSeries(metrics.EvacuationsEndedTotal, matchLabel(metrics.LabelResult, trail.OutcomeMigrated)), "30m"))},
		{Record: RecordNodeVMIs, Expr: maxBy(perNode, metrics.NodeVMIs)},
		{Record: RecordNodeVMIsInCooldown, Expr: maxBy(perNode, metrics.NodeVMIsInCooldown) + " / (" + RecordNodeVMIs + " > 0)"},
		{Record: RecordMigrationFailures, Expr: sumBy([]string{metrics.LabelClass}, increaseOf(
			selectSeries(metrics.MigrationsTotal, matchLabel(metrics.LabelResult, trail.OutcomeFailed)), "1h"))},
		{Record: RecordMigrationsFinished, Expr: sumBy(perCluster, increaseOf(metrics.MigrationsTotal, "1h"))},
		{Record: RecordEvictionBlocks, Expr: evictionBlocks("10m")},
	}
	for _, window := range []string{"5m", "30m", "1h", "6h"} {
		rules = append(rules, Rule{Record: recordCommitLate + window, Expr: commitLate(window)})
	}
	for _, window := range []string{"5m", "30m", "1h", "6h", "3d"} {
		rules = append(rules, Rule{Record: recordEvacuationMissed + window, Expr: evacuationMissed(window)})
	}
	rules = slices.Concat(rules, newStormRecordingRules(), newFleetRecordingRules())
	return append(rules, Rule{Record: RecordEvacuationTarget, Expr: "0 * " + maxBy(perCluster, metrics.StateTimestamp) + " + " + formatNumber(o.EvacuationTarget/100)})
}

// evictionBlocks is how often the descheduler's cooldown held evictions back, per second. The descheduler's own series come
// first, ours fill in label set by label set. Scraped without honor_labels, as OpenShift's operator does it, the pod's
// namespace is in exported_namespace and namespace is the descheduler's; with it namespace is the pod's.
func evictionBlocks(window string) string {
	of := []string{metrics.LabelReason, metrics.LabelNode, metrics.LabelNamespace}
	return joinLines(
		sumBy(of, `label_replace(`+rateOf(metrics.DeschedulerBlocksTotal, window)+`, "`+metrics.LabelNamespace+`", "$1", "`+
			labelExported+`", "(.+)")`),
		"or",
		sumBy(of, rateOf(metrics.EvictionBlocksTotal, window)))
}

// commitLate is the share of facts that took longer than they may from sight to commit. Prometheus 3 and OpenMetrics
// write the bound of a bucket as 5.0. Where native histograms are scraped there are no buckets, and the share comes from them.
func commitLate(window string) string {
	bound := matchLabel(labelLe, commitInTime, commitInTime+"[.]0")
	return "1 - " + wrapInParens(
		sumBy(perCluster, rateOf(selectSeries(metrics.CommitLagSeconds+"_bucket", bound), window)),
		"/",
		sumBy(perCluster, rateOf(metrics.CommitLagSeconds+"_count", window)),
		"or",
		"histogram_fraction(-Inf, "+commitInTime+", "+sumBy(perCluster, rateOf(metrics.CommitLagSeconds, window))+")")
}

// anyOf returns an expression that holds where one of them does.
func anyOf(of ...string) string { return wrapInParens(strings.Join(of, "\nor\n")) }
