package nodesim

import (
	"cmp"
	"time"
)

// stage is what a virt-handler does next to a VMI.
type stage string

const (
	stageIdle        stage = ""
	stageBoot        stage = "boot"          // the guest starts
	stageShutdown    stage = "shutdown"      // the guest stops, as its VMI is deleted
	stagePrepare     stage = "prepare"       // the target of a migration has an address
	stageBegin       stage = "begin"         // the source starts the transfer
	stageDetect      stage = "detect"        // the target sees the guest
	stageTransfer    stage = "transfer"      // the transfer ends
	stageAcknowledge stage = "acknowledge"   // the target has the guest: the VMI is on the other node
	stageComplete    stage = "complete"      // the migration is completed
	stageForget      stage = "forget-target" // the target of a failed migration is forgotten
	stageAbort       stage = "abort"         // an abort is under way
	stageAborted     stage = "aborted"       // the abort ends
)

// never is the delay of a stage that lasts until something else changes the object.
const never = time.Duration(-1)

// nextStage returns what a virt-handler does next. It is idle where it waits for virt-controller.
func nextStage(v *vmi) stage {
	switch {
	case v.isFinal() || v.Status.NodeName == "":
		return stageIdle
	case v.DeletionTimestamp != nil:
		return stageShutdown
	case v.Status.Phase == phaseScheduled:
		return stageBoot
	case v.Status.Phase != phaseRunning || v.Status.Migration == nil || v.Status.Migration.TargetNode == "":
		return stageIdle
	default:
		return migrationStage(v, v.Status.Migration)
	}
}

func migrationStage(v *vmi, m *migrationState) stage {
	switch {
	case m.Failed && v.Labels[labelTargetNode] != "":
		return stageForget
	case m.Failed || m.Completed:
		return stageIdle
	case m.End != nil:
		return stageComplete
	case m.AbortStatus == abortAborting:
		return stageAborted
	case m.AbortRequested && m.AbortStatus == "" && m.Start != nil:
		return stageAbort
	case m.TargetNodeAddress == "":
		return stagePrepare
	case m.Start == nil:
		return stageBegin
	case !m.TargetDomainSeen:
		return stageDetect
	case m.TargetDomainReady == nil:
		return stageTransfer
	default:
		return stageAcknowledge
	}
}

// delay returns how long a VMI is in the stage before the change is made.
func (s stage) delay(v *vmi, p Pace, m Migration) time.Duration {
	switch s {
	case stageBoot:
		return p.Boot
	case stageShutdown:
		return p.Shutdown
	case stagePrepare:
		if m.Outcome == OutcomeStallPrepare || m.Outcome == OutcomeCrash {
			return never
		}
		return cmp.Or(m.Prepare, p.Prepare)
	case stageBegin:
		return p.Begin
	case stageDetect:
		return p.Detect
	case stageTransfer:
		if m.Outcome == OutcomeStall {
			return cmp.Or(m.After, time.Duration(v.Status.Migration.Settings.ProgressTimeout)*time.Second)
		}
		return cmp.Or(m.After, p.Transfer)
	case stageAcknowledge, stageComplete, stageForget:
		return p.HandOver
	case stageAbort:
		return 0
	case stageAborted:
		return p.Abort
	default:
		return never
	}
}
