package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The alerts that a dual retry loop on the same node explains.
const (
	evacuationStuck    = "EvictrailEvacuationStuck"
	evacuationOrphaned = "EvictrailEvacuationOrphaned"
)

// newEvacuationAlerts are about one VM that has to leave its node.
func newEvacuationAlerts() []alert {
	return []alert{newStuckAlert(), newOrphanedAlert(), newUnansweredAlert()}
}

// tooLong is for how many seconds an evacuation may be open: 35 minutes. The mark is kept in the database, and its age is the same before and after a restart
// of evictrail or of Prometheus, where a `for` would begin again.
const tooLong = "2100"

// newStuckAlert needs failures and time: KubeVirt makes three attempts within two and a half minutes when each fails at once.
func newStuckAlert() alert {
	return alert{
		name: evacuationStuck, severity: Warning, of: perVMI, keep: "5m", board: boardVM,
		expr: joinLines(
			"("+maxBy(perVMI, metrics.VMIFailedAttempts)+" >= 3)",
			"and "+matchOn(perVMI),
			"("+secondsSince(maxBy(perVMI, selectSeries(metrics.VMIMarkedTimestamp, excludeLabel(metrics.LabelStrategy, trail.StrategyExternal))))+" > "+tooLong+")"),
		summary: "Evacuation of " + theVM + " has failed " + theValue + " times",
		description: "KubeVirt has tried " + theValue + " times to move " + theVM + " off " + theNode + " and failed, over more than 35 minutes. It goes on " +
			"without limit, at most about five minutes apart, until a migration succeeds or somebody cancels the evacuation.",
	}
}

// newOrphanedAlert needs a fresh failure: the annotation comes a moment after the mark, and later where the pod is not ready.
func newOrphanedAlert() alert {
	return alert{
		name: evacuationOrphaned, severity: Warning, of: perVMI, wait: "10m", board: boardLoop,
		expr: joinLines(
			"("+maxBy(perVMI, metrics.VMIAnnotationPresent)+" == 0)",
			"and "+matchOn(perVMI),
			"("+maxBy(perVMI, "changes("+metrics.VMIFailedAttempts+"[30m])")+" > 0)"),
		summary: "Descheduler lost track of the evacuation of " + theVM,
		description: "KubeVirt is still evacuating " + theVM + " from " + theNode + ", and failing, but the launcher pod carries no eviction-in-progress " +
			"annotation. For the descheduler the slot is free: it will evict this VM again, or others.",
	}
}

func newUnansweredAlert() alert {
	return alert{
		name: "EvictrailExternalEvictionUnanswered", severity: Warning, of: perVMI, keep: "5m", board: boardDrain,
		expr: secondsSince(maxBy(perVMI, selectSeries(metrics.VMIMarkedTimestamp,
			matchLabel(metrics.LabelStrategy, trail.StrategyExternal)))) + " > " + tooLong,
		summary: "No controller answered the eviction of " + theVM,
		description: theVM + " was asked to leave " + theNode + " " + theTime + " ago. Its eviction strategy is External: KubeVirt refuses the eviction and " +
			"does nothing else. The controller that owns the VM has to act, and has not.",
	}
}
