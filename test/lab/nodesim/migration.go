package nodesim

import (
	"cmp"
	"fmt"
	"time"
)

// Values of status.migrationState.
const (
	abortAborting  = "Aborting"
	abortSucceeded = "Succeeded"
	abortFailed    = "Failed"
	modePreCopy    = "PreCopy"
	modePostCopy   = "PostCopy"
)

// advanceMigration returns the next change of a live migration.
func advanceMigration(s stage, v *vmi, m Migration, now time.Time) change {
	state := map[string]any{}
	c := change{Status: map[string]any{"migrationState": state}}
	switch s {
	case stagePrepare:
		state["targetNodeAddress"] = addressOf(v.Status.Migration.TargetNode)
		state["targetDirectMigrationNodePorts"] = map[string]any{"35254": 49152, "38534": 0, "39176": 49153}
		c.event = &vmiEvent{node: v.Status.Migration.TargetNode, reason: "PreparingTarget", message: "VirtualMachineInstance Migration Target Prepared."}
	case stageBegin:
		state["startTimestamp"], state["mode"] = toAPITime(now), modePreCopy
		c.event = &vmiEvent{node: v.Status.Migration.SourceNode, reason: "Migrating", message: "VirtualMachineInstance is migrating."}
	case stageDetect:
		state["targetNodeDomainDetected"] = true
	case stageTransfer:
		return endTransfer(v, m, now)
	case stageAcknowledge:
		return acknowledgeMigration(v, now)
	case stageComplete:
		state["completed"] = true
	case stageForget:
		return change{Metadata: map[string]any{"labels": map[string]any{labelTargetNode: nil}}}
	case stageAbort:
		state["abortStatus"] = abortAborting
		if m.IgnoreAbort {
			state["abortStatus"] = abortFailed
		}
		c.event = &vmiEvent{node: v.Status.Migration.SourceNode, reason: "Migrating", message: "VirtualMachineInstance is aborting migration."}
	case stageAborted:
		return failMigration(v, "Live migration aborted ", abortSucceeded, now)
	case stageIdle, stageBoot, stageShutdown:
	}
	return c
}

// endTransfer returns how the transfer ends.
func endTransfer(v *vmi, m Migration, now time.Time) change {
	switch m.Outcome {
	case OutcomeFail:
		return failMigration(v, cmp.Or(m.Reason, libvirtError), "", now)
	case OutcomeStall:
		stuck := now.Sub(v.Status.Migration.Start.Time).Round(time.Second)
		return failMigration(v, cmp.Or(m.Reason, fmt.Sprintf("Live migration stuck for %d seconds and has been aborted", int(stuck.Seconds()))), abortSucceeded, now)
	case OutcomeLose:
		return loseGuest(v, cmp.Or(m.Reason, libvirtError), now)
	case OutcomeSucceed, OutcomeStallPrepare, OutcomeNeverReady, OutcomeCrash:
	}
	return change{Status: map[string]any{"migrationState": map[string]any{"targetNodeDomainReadyTimestamp": toAPITime(now)}}}
}

// acknowledgeMigration moves the VMI: pkg/virt-handler/migration-target.go, ackMigrationCompletion. The mark of an evacuation goes with it.
func acknowledgeMigration(v *vmi, now time.Time) change {
	target := v.Status.Migration.TargetNode
	return change{
		Metadata: map[string]any{"labels": map[string]any{labelNode: target}, "annotations": map[string]any{annotationSource: nil}},
		Status: map[string]any{
			"nodeName": target, "evacuationNodeName": nil, "launcherContainerImageVersion": nil,
			"migrationState": map[string]any{"endTimestamp": toAPITime(now)},
		},
		event: &vmiEvent{node: target, reason: "Migrated", message: "The VirtualMachineInstance migrated to node " + target + "."},
	}
}

// failMigration is the end of a migration whose guest stays where it is.
func failMigration(v *vmi, reason, abort string, now time.Time) change {
	state := map[string]any{"failed": true, "failureReason": reason, "endTimestamp": toAPITime(now)}
	if abort != "" {
		state["abortStatus"] = abort
	}
	return change{Status: map[string]any{"migrationState": state}, event: &vmiEvent{
		node: v.Status.Migration.SourceNode, kind: eventWarning, reason: "Migrated",
		message: fmt.Sprintf("VirtualMachineInstance migration uid %s failed. reason:%s", v.Status.Migration.UID, reason),
	}}
}

// loseGuest is the end of a migration in post-copy that takes the guest with it.
func loseGuest(v *vmi, reason string, now time.Time) change {
	c := failMigration(v, reason, "", now)
	for key, value := range endedAs(v, phaseFailed, now) {
		c.Status[key] = value
	}
	c.Status["conditions"] = v.withConditions(condition{
		"type": "Synchronized", "status": "False", "reason": "Synchronizing with the Domain failed.",
		"message": "VMI is irrecoverable due to failed post-copy migration", "lastProbeTime": toAPITime(now), "lastTransitionTime": toAPITime(now),
	})
	state, _ := c.Status["migrationState"].(map[string]any)
	state["mode"], state["completed"] = modePostCopy, true
	return c
}
