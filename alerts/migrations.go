package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newMigrationAlerts are about live migrations of any trigger.
func newMigrationAlerts() []alert {
	return []alert{newQueueSaturatedAlert(), newFailuresControlPlaneAlert(), newFailuresDataPlaneAlert(), newPostCopyIrrecoverableAlert(), newUselessMovesAlert()}
}

// newQueueSaturatedAlert goes by the age of the oldest that waits, and needs the limit that it waits for to be used up.
func newQueueSaturatedAlert() alert {
	of := []string{metrics.LabelBlocker}
	limit := func(scope string) string {
		return maxBy(perCluster, selectSeries(metrics.MigrationLimit, matchLabel(metrics.LabelScope, scope)))
	}
	oldest := selectSeries(metrics.MigrationPendingOldest, matchLabel(metrics.LabelBlocker, trail.WaitClusterLimit, trail.WaitNodeLimit))
	leaving := selectSeries(metrics.NodeMigrations, matchLabel(metrics.LabelDirection, metrics.DirectionOut))
	return alert{
		name: "EvictrailMigrationQueueSaturated", severity: Warning, of: of, wait: "15m", board: boardMigrations,
		expr: joinLines(
			"("+secondsSince(minBy(of, oldest))+" > 1800)",
			"and "+matchOn(of),
			anyOf(
				addLabel(metrics.LabelBlocker, trail.WaitClusterLimit,
					maxBy(perCluster, metrics.MigrationsRunning)+" >= 0.8 * "+limit(metrics.ScopeCluster)),
				addLabel(metrics.LabelBlocker, trail.WaitNodeLimit,
					maxBy(perCluster, leaving)+" >= "+limit(metrics.ScopeNodeOutbound)))),
		summary: "Migrations wait over 30 minutes for a parallel slot (" + insertLabel(metrics.LabelBlocker) + ")",
		description: "The oldest migration has waited " + theTime + " for a slot." + explainLabel(metrics.LabelBlocker, trail.WaitClusterLimit, trail.WaitNodeLimit) + " More is asked " +
			"than parallelMigrationsPerCluster and parallelOutboundMigrationsPerNode let through, or the running ones are slow.",
	}
}

// failureShare needs a share of failures and three VMs that fail: one VM in a retry loop makes up to eleven failures an hour,
// and that is EvictrailEvacuationStuck's.
func failureShare(classes ...trail.FailureClass) string {
	failing := selectSeries(metrics.MigrationFailingVMIs, matchLabel(metrics.LabelWindow, metrics.Window1h), matchLabel(metrics.LabelClass, classes...))
	return joinLines(
		wrapInParens(
			sumBy(perCluster, selectSeries(RecordMigrationFailures, matchLabel(metrics.LabelClass, classes...)))+" / "+RecordMigrationsFinished,
			"> 0.2"),
		"and "+matchOn(perCluster),
		"("+sumBy(perCluster, maxBy([]string{metrics.LabelClass}, failing))+" >= 3)")
}

func newFailuresControlPlaneAlert() alert {
	return alert{
		name: "EvictrailMigrationFailuresControlPlane", severity: Warning, of: perCluster, wait: "15m", board: boardMigrations,
		expr:    failureShare(trail.FailureControlPlane, trail.FailureScheduling),
		summary: theShare + " of migrations fail before memory copy",
		description: theShare + " of the migrations that ended within the last hour failed before any data moved, and three VMs or more are affected: " +
			"no node takes the target pod, or it dies or is refused.",
	}
}

func newFailuresDataPlaneAlert() alert {
	return alert{
		name: "EvictrailMigrationFailuresDataPlane", severity: Warning, of: perCluster, wait: "15m", board: boardMigrations,
		expr:    failureShare(trail.FailureDataPlane),
		summary: theShare + " of migrations fail during memory copy",
		description: theShare + " of the migrations that ended within the last hour failed while memory or disks were copied, and three VMs or more are " +
			"affected: the migration network, its bandwidth, or guests that write faster than can be copied.",
	}
}

const postCopyLost = "EvictrailPostCopyIrrecoverable"

// newPostCopyIrrecoverableAlert sees the first loss on a node because the counter of each node starts at zero.
func newPostCopyIrrecoverableAlert() alert {
	return alert{
		name: postCopyLost, severity: Critical, of: perNode, keep: "1h", board: boardMigrations,
		expr:    sumBy(perNode, increaseOf(metrics.PostCopyFailuresTotal, "15m")) + " > 0",
		summary: "A VM was lost in post-copy migration from " + theNode,
		description: "In the last 15 minutes {{ $value | printf \"%.0f\" }} migration(s) from " + theNode + " failed after the guest had begun to run on the target. Its memory is " +
			"gone: the VM has crashed, starts again if its run strategy says so, and may need a check of its file systems.",
	}
}

// newUselessMovesAlert needs a share over hours and ten moves: single ones may fail to help for many causes. Moves whose load is not known do not count.
func newUselessMovesAlert() alert {
	moved := func(matcher string) string {
		return sumBy(perCluster, increaseOf(selectSeries(metrics.MovesTotal, matcher), "6h"))
	}
	known := moved(excludeLabel(metrics.LabelBenefit, trail.BenefitUnknown))
	return alert{
		name: "EvictrailUselessMoves", severity: Warning, of: perCluster, wait: "30m", board: boardOverview,
		expr: joinLines(
			wrapInParens(moved(matchLabel(metrics.LabelBenefit, trail.NoEffect, trail.Harmed))+" / "+known, "> 0.5"),
			"and "+matchOn(perCluster),
			"("+known+" >= 10)"),
		summary: theShare + " of rebalancing moves relieve nothing",
		description: theShare + " of the moves of the last six hours that were made to relieve a node did not, or overloaded the node that the VM came to: there was nothing " +
			"to relieve any more, or the load only changes its place.",
	}
}
