package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newCooldownAlerts are about the descheduler's cooldown of VMs that have just moved.
func newCooldownAlerts() []alert {
	return []alert{newCooldownAtCapAlert(), newRebalanceExhaustedAlert()}
}

// newCooldownAtCapAlert counts VMs. The descheduler's own histogram counts evaluations, of which one VM can have hundreds a day.
func newCooldownAtCapAlert() alert {
	return alert{
		name: "EvictrailCooldownAtCap", severity: Warning, of: perCluster, wait: "30m", board: boardCooldown,
		expr: countBy(perCluster, joinLines("",
			"  "+maxBy(perVMI, metrics.VMICooldownSeconds),
			"  >= "+matchOn(perCluster)+" group_left ()",
			"  "+maxBy(perCluster, selectSeries(metrics.CooldownConfigSeconds, matchLabel(metrics.LabelParam, metrics.ParamMax))),
			"")) + " > 5",
		summary: theValue + " VMs sit at the maximum migration cooldown",
		description: "The cooldown of " + theValue + " VMs has grown to the descheduler's maximum. It doubles with each migration of the last two days and can " +
			"protect them no further: the cluster moves VMs and does not come to rest.",
	}
}

// newRebalanceExhaustedAlert looks back over a cycle of the descheduler, at the end of which it counts blocks: an hour at the most, as its
// operator shows. It rests on blocks, which a descheduler in mode Predictive counts as well. There it only pretends to
// evict: no request and no mark reaches the cluster, and no VM is missing. So one of them must have been seen in a day:
// requests where audit events or the observer have seen them, else the marks that are known to be its own.
func newRebalanceExhaustedAlert() alert {
	evicted := func(counter string) string {
		return sumBy(perCluster, increaseOf(selectSeries(counter, matchLabel(metrics.LabelRequester, trail.RequesterDescheduler)), "1d")) + " > 0"
	}
	return alert{
		name: "EvictrailNodeRebalanceExhausted", severity: Warning, of: perNode, wait: "1h", board: boardCooldown,
		expr: joinLines(
			"("+RecordNodeVMIsInCooldown+" > 0.8)",
			"and "+matchOn(perNode),
			"("+sumBy(perNode, "max_over_time("+selectSeries(RecordEvictionBlocks, matchLabel(metrics.LabelReason, trail.DecidedCooldown))+"[70m])")+" > 0)",
			"and "+matchOn(perNode),
			"("+RecordNodeVMIs+" >= 3)",
			"and "+matchOn(perCluster),
			anyOf(evicted(metrics.EvictionRequestsTotal), evicted(metrics.EvacuationsStartedTotal))),
		summary: "Descheduler has no VM left to move on " + theNode,
		description: theShare + " of the VMs on " + theNode + " are in their cooldown, and the descheduler still wants to move some. The node " +
			"stays as loaded as it is until a cooldown runs out.",
	}
}
