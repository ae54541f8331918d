package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// DualRetryLoop is the alert for two controllers that work against each other: a warning for each node, and one page when
// it spreads.
const DualRetryLoop = "EvictrailDualRetryLoop"

const deschedulerSlots = "EvictrailDeschedulerSlotsStuck"

// newLoopAlerts are about what is repeated, by the descheduler or by anyone.
func newLoopAlerts() []alert {
	return []alert{newDualRetryLoopAlert(), newDualRetryStormAlert(), newSlotsStuckAlert(), newPingPongAlert(), newChurnAlert(),
		newOscillationAlert(), newFrequentMovesAlert(), newRepeatedFailuresAlert()}
}

// loopOpen has a series for each node with an open dual retry loop.
func loopOpen() string {
	return maxBy(perNode, selectSeries(metrics.LoopsOpen, matchLabel(metrics.LabelKind, trail.LoopDualRetry))) + " > 0"
}

func newDualRetryLoopAlert() alert {
	return alert{
		name: DualRetryLoop, severity: Warning, of: perNode, wait: "5m", keep: "15m", board: boardLoop,
		expr:    loopOpen(),
		summary: "Two controllers are retrying against node " + theNode,
		description: "An evacuation that keeps failing holds a VM on " + theNode + ", KubeVirt tries it again without end, and the descheduler " +
			"goes on evicting from the node (open loops: " + theValue + "). The node is not relieved, and other VMs move for nothing.",
	}
}

func newDualRetryStormAlert() alert {
	return alert{
		name: DualRetryLoop, severity: Critical, of: perCluster, wait: "5m", keep: "15m", board: boardOverview,
		expr:    countBy(perCluster, loopOpen()) + " >= 3",
		summary: "Dual retry loops are active on " + theValue + " nodes at once",
		description: "On " + theValue + " nodes evacuations fail again and again while the descheduler evicts more. So many at once have one cause: " +
			"the migration network, storage, a quota, an image. Stop the descheduler first, then look for what the failures share.",
	}
}

func newOscillationAlert() alert {
	return alert{
		name: "EvictrailNodesOscillate", severity: Warning, of: perNode, keep: "1h", board: boardLoop,
		expr:    maxBy(perNode, selectSeries(metrics.LoopsOpen, matchLabel(metrics.LabelKind, trail.LoopOscillation))) + " > 0",
		summary: "The descheduler moves VMs to and fro between " + theNode + " and other nodes",
		description: "VMs go from " + theNode + " to another node and others come back, from there or round, again and again (open loops: " + theValue + "). No node is " +
			"relieved for long: whichever has the VMs is over the threshold, so each cycle undoes the one before.",
	}
}

// selectRepeated has a series for each VM with an open loop of a kind, no matter who asked.
func selectRepeated(kind trail.LoopKind) string {
	return maxBy(perVM, selectSeries(metrics.VMILoopRepetitions, matchLabel(metrics.LabelKind, kind))) + " > 0"
}

func newFrequentMovesAlert() alert {
	return alert{
		name: "EvictrailVMMovedOften", severity: Info, of: perVM, keep: "1h", board: boardVM,
		expr:    selectRepeated(trail.LoopFrequentMoves),
		summary: "VM " + theVM + " was moved " + theValue + " times, no matter who asked",
		description: theVM + " was moved " + theValue + " times within a day: by users, updates, drains or the descheduler together. Each move costs the guest a pause " +
			"and the nodes their network.",
	}
}

func newRepeatedFailuresAlert() alert {
	return alert{
		name: "EvictrailVMMigrationsFail", severity: Warning, of: perVM, keep: "15m", board: boardVM,
		expr:    selectRepeated(trail.LoopRepeatedFailures),
		summary: "Migrations of VM " + theVM + " failed " + theValue + " times in a row",
		description: "No matter who asked to move " + theVM + ", users, updates or drains: " + theValue + " migrations failed in a row. It stays where it is, and will stay " +
			"there in the next drain, too.",
	}
}

// newSlotsStuckAlert needs slots that are all taken and old: a system that is busy and moves frees its slots within minutes.
func newSlotsStuckAlert() alert {
	of := []string{metrics.LabelScope, metrics.LabelNode}
	return alert{
		name: deschedulerSlots, severity: Warning, of: of, wait: "10m", board: boardLoop,
		expr: joinLines(
			wrapInParens(
				maxBy(of, metrics.SlotsInUse),
				">= "+matchOn([]string{metrics.LabelScope})+" group_left ()",
				maxBy([]string{metrics.LabelScope}, metrics.SlotsLimit)),
			"and "+matchOn(of),
			"("+secondsSince(maxBy(of, metrics.SlotOldestTimestamp))+" > 1800)"),
		summary: "Stuck evictions hold all descheduler slots (" + insertLabel(metrics.LabelScope) + "){{ with $labels." + metrics.LabelNode + " }} on {{ . }}{{ end }}",
		description: "All " + theValue + " slots of the descheduler are taken (" + insertLabel(metrics.LabelScope) + "), the oldest for more than 30 minutes. " +
			"{{ with $labels." + metrics.LabelNode + " }}From {{ . }} it evicts nothing more{{ else }}It evicts nothing more, anywhere{{ end }}: " +
			"evictions that it learned of from the pods' annotation never expire in its memory.",
	}
}

func newPingPongAlert() alert {
	return alert{
		name: "EvictrailVMPingPong", severity: Warning, of: perVM, keep: "1h", board: boardVM,
		expr:    maxBy(perVM, selectSeries(metrics.VMIPingPongReturns, matchLabel(metrics.LabelWindow, metrics.Window6h))) + " >= 2",
		summary: "VM " + theVM + " bounces between the same nodes",
		description: "In six hours the descheduler brought " + theVM + " back " + theValue + " times to a node that it had taken it from. It undoes its own work: " +
			"it and the scheduler disagree about where the VM belongs, or the VM itself is the load.",
	}
}

func newChurnAlert() alert {
	return alert{
		name: "EvictrailVMChurnHigh", severity: Info, of: perVM, keep: "1h", board: boardVM,
		expr: maxBy(perVM, selectSeries(metrics.VMIMigrationsRecent,
			matchLabel(metrics.LabelWindow, metrics.Window24h), matchLabel(metrics.LabelTrigger, trail.TriggerDescheduler))) + " >= 4",
		summary: "VM " + theVM + " was rebalanced " + theValue + " times in 24h",
		description: "The descheduler moved " + theVM + " " + theValue + " times in 24 hours. Each move costs the guest a pause and the nodes their " +
			"network; if none of them helped, the cooldown is too short for this VM.",
	}
}
