package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The alerts of drains. Where a VM cannot be migrated, that is why the drain stands still.
const (
	drainStalled  = "EvictrailDrainStalled"
	notMigratable = "EvictrailNonMigratableBlocksDrain"
)

// newDrainAlerts are about nodes that are being emptied.
func newDrainAlerts() []alert { return []alert{newDrainStalledAlert(), newBlockedAlert()} }

// newDrainStalledAlert is over as soon as a VM leaves, also one that was shut down: a queue that moves is no standstill.
func newDrainStalledAlert() alert {
	left := func(of string) string {
		return sumBy(perNode, maxBy([]string{metrics.LabelNode, metrics.LabelBlocker}, of))
	}
	remaining, before := left(metrics.NodeDrainRemaining), left(metrics.NodeDrainRemaining+" offset 30m")
	return alert{
		name: drainStalled, severity: Warning, of: perNode, wait: "15m", board: boardDrain,
		expr: joinLines(
			"("+remaining+" > 0)",
			"and "+matchOn(perNode),
			"("+secondsSince(maxBy(perNode, metrics.NodeDrainStart))+" > 1800)",
			"unless "+matchOn(perNode),
			"("+RecordEvacuationsMigrated+" > 0)",
			"unless "+matchOn(perNode),
			"("+remaining+" < "+before+")"),
		summary: "Drain of " + theNode + " makes no progress; VMs left: " + theValue,
		description: "The drain of " + theNode + " began more than 30 minutes ago, no VM has left the node in the last half hour, and " + theValue + " are still there. " +
			"Maintenance or an upgrade waits for them.",
	}
}

func newBlockedAlert() alert {
	of := append([]string{metrics.LabelReason}, perVMI...)
	return alert{
		name: notMigratable, severity: Warning, of: of, wait: "5m", board: boardDrain,
		expr:    maxBy(of, selectSeries(metrics.VMIDrainBlocked, matchLabel(metrics.LabelBlocker, trail.BlockerNotMigratable))) + " == 1",
		summary: theVM + " cannot be migrated and blocks the drain of " + theNode,
		description: "The drain of " + theNode + " waits for " + theVM + ", which KubeVirt cannot live-migrate (" + insertLabel(metrics.LabelReason) + "). " +
			"It will wait for ever: the VM has to be made migratable, or its owner has to shut it down.",
	}
}
