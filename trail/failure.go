package trail

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// FailureClass says in which part of a migration it failed.
type FailureClass string

// The classes of failures.
const (
	FailureScheduling   FailureClass = "scheduling"    // the target pod found no node
	FailureControlPlane FailureClass = "control_plane" // the target died or was refused before data moved
	FailureDataPlane    FailureClass = "data_plane"    // the transfer failed
	FailurePostCopy     FailureClass = "post_copy"     // the transfer failed after the guest had left: it is lost
	FailureAborted      FailureClass = "aborted"       // somebody deleted the migration, or its VMI, before it was final
	FailureGuestLost    FailureClass = "guest_lost"    // the guest was lost at hand-over
	FailureUnknown      FailureClass = "unknown"
)

// FailureClasses lists the classes of failures.
func FailureClasses() []FailureClass { return failureClassLabels.values() }

// modePostCopy is the mode of a migration whose guest runs on its target while memory is still on its source.
//
// Source: kubevirt staging/src/kubevirt.io/api/core/v1/types.go, MigrationPostCopy.
const modePostCopy = "PostCopy"

// FailureReason is the finer cause within a class.
type FailureReason string

// The finer causes.
const (
	CauseUnschedulable      FailureReason = "target_unschedulable"
	CauseNoCPUModel         FailureReason = "no_node_for_cpu_model"
	CausePendingTimeout     FailureReason = "target_pending_timeout"
	CauseTargetRemoved      FailureReason = "target_pod_removed"
	CauseTargetCrashed      FailureReason = "target_pod_crashed"
	CauseAttachmentCrashed  FailureReason = "attachment_pod_crashed"
	CauseTargetDown         FailureReason = "target_pod_down"
	CauseQuota              FailureReason = "quota_exceeded"
	CausePodRefused         FailureReason = "target_pod_refused"
	CauseUtilityVolumes     FailureReason = "utility_volumes_timeout"
	CauseBackup             FailureReason = "backup_in_progress"
	CauseConcurrent         FailureReason = "concurrent_migration"
	CauseStateLost          FailureReason = "migration_state_lost"
	CauseVMIGone            FailureReason = "vmi_gone"
	CauseSync               FailureReason = "sync_failed"
	CauseNoProgress         FailureReason = "no_progress"
	CauseTooSlow            FailureReason = "completion_timeout"
	CauseMonitorAbort       FailureReason = "monitor_abort"
	CauseVolumeTooSmall     FailureReason = "destination_volume_too_small"
	CausePreparing          FailureReason = "preparation_failed"
	CauseTestHook           FailureReason = "functional_test"
	CauseConnection         FailureReason = "connection_lost"
	CauseTargetQEMU         FailureReason = "target_qemu_died"
	CauseIncompatible       FailureReason = "incompatible_target"
	CauseStorage            FailureReason = "storage_error"
	CauseStateLock          FailureReason = "state_lock"
	CauseLibvirt            FailureReason = "libvirt_error"
	CauseReported           FailureReason = "reported_by_source"
	CauseUserAbort          FailureReason = "user_abort"
	CausePostCopy           FailureReason = "post_copy_failed"
	CauseNeverObserved      FailureReason = "never_seen_on_target"
	CauseUnknownHost        FailureReason = "migrated_to_unknown_host"
	CauseBeforeHandOver     FailureReason = "ended_before_hand_over"
	CauseBeforeStart        FailureReason = "ended_before_start"
	CauseDuringTransfer     FailureReason = "ended_during_transfer"
	CauseEndNotSeen         FailureReason = "end_not_seen"
	CauseNothingSaid        FailureReason = "nothing_said"
	CauseDecentralizedHosts FailureReason = "certificate_mismatch"
)

// failureText maps a text to what it means. A row matches when the text holds every part, whatever the case.
type failureText struct {
	parts []string
	class FailureClass
	cause FailureReason
}

// reasonTexts are the texts of migrationState.failureReason, first match wins: those of KubeVirt v1.3 to v1.8, those
// of v1.9, then libvirt's own. During an upgrade both generations occur side by side, so both are tried.
//
// Source: kubevirt pkg/virt-launcher/virtwrap/live-migration-source.go; reference kubevirt-signals §6.
var reasonTexts = []failureText{
	// KubeVirt v1.3 to v1.8.
	{[]string{"live migration stuck for", "has been aborted"}, FailureDataPlane, CauseNoProgress},
	{[]string{"live migration is not completed after", "has been aborted"}, FailureDataPlane, CauseTooSlow},
	{[]string{"destination volume is smaller then the source volume"}, FailureDataPlane, CauseVolumeTooSmall},
	{[]string{"canceled by client"}, FailureDataPlane, CauseMonitorAbort},
	{[]string{"live migration aborted"}, FailureDataPlane, CauseMonitorAbort},
	// KubeVirt v1.9: one text for stuck, too slow and user abort; a user's abort was distinguished before.
	{[]string{"live migration has been aborted"}, FailureDataPlane, CauseMonitorAbort},
	{[]string{"destination volume is smaller than the source volume"}, FailureDataPlane, CauseVolumeTooSmall},
	// Either.
	{[]string{"target pod is down"}, FailureControlPlane, CauseTargetDown},
	{[]string{"error encountered during preparing domain for migration"}, FailureDataPlane, CausePreparing},
	{[]string{"failed to get domain spec"}, FailureDataPlane, CausePreparing},
	{[]string{"error encountered while generating migration parameters"}, FailureDataPlane, CausePreparing},
	{[]string{"failed to retrive domain state"}, FailureDataPlane, CausePreparing},
	{[]string{"migration monitor failed to look up domain"}, FailureDataPlane, CausePreparing},
	{[]string{"failed migration to satisfy functional test condition"}, FailureDataPlane, CauseTestHook},
	// libvirt's wording: hints.
	{[]string{"cannot acquire state change lock"}, FailureDataPlane, CauseStateLock},
	{[]string{"unable to read from socket"}, FailureDataPlane, CauseConnection},
	{[]string{"unable to write to socket"}, FailureDataPlane, CauseConnection},
	{[]string{"connection reset by peer"}, FailureDataPlane, CauseConnection},
	{[]string{"client socket is closed"}, FailureDataPlane, CauseConnection},
	{[]string{"cannot recv data"}, FailureDataPlane, CauseConnection},
	{[]string{"unable to connect"}, FailureDataPlane, CauseConnection},
	{[]string{"end of file while reading data"}, FailureDataPlane, CauseConnection},
	{[]string{"unexpectedly closed the monitor"}, FailureDataPlane, CauseTargetQEMU},
	{[]string{"lost connection to destination"}, FailureDataPlane, CauseTargetQEMU},
	{[]string{"guest cpu doesn't match"}, FailureDataPlane, CauseIncompatible},
	{[]string{"unsupported configuration"}, FailureDataPlane, CauseIncompatible},
	{[]string{"does not support"}, FailureDataPlane, CauseIncompatible},
	{[]string{`failed to get "write" lock`}, FailureDataPlane, CauseStorage},
	{[]string{"input/output error"}, FailureDataPlane, CauseStorage},
	{[]string{"no space left"}, FailureDataPlane, CauseStorage},
	{[]string{"virerror("}, FailureDataPlane, CauseLibvirt},
	{[]string{"live migration failed"}, FailureDataPlane, CauseLibvirt},
}

// eventTexts are the messages of Kubernetes Events on the migration and, within its time, on the VMI; the first row
// that any message matches wins.
var eventTexts = []failureText{
	{[]string{"never observed on the target"}, FailureGuestLost, CauseNeverObserved},
	{[]string{"migrated to unknown host"}, FailureGuestLost, CauseUnknownHost},
	{[]string{"irrecoverable due to failed post-copy migration"}, FailurePostCopy, CausePostCopy},
	{[]string{"migration failed due to being canceled"}, FailureAborted, CauseUserAbort},
	{[]string{"migration canceled and pod"}, FailureAborted, CauseUserAbort},
	{[]string{"unschedulable pod", "timeout period exceeded"}, FailureScheduling, CauseUnschedulable},
	{[]string{"pending pod", "timeout period exceeded"}, FailureControlPlane, CausePendingTimeout},
	{[]string{"is currently unschedulable"}, FailureScheduling, CauseUnschedulable},
	{[]string{"no node is suitable to run the required cpu model"}, FailureScheduling, CauseNoCPUModel},
	{[]string{"target pod was removed during active migration"}, FailureControlPlane, CauseTargetRemoved},
	{[]string{"target attachment pod shutdown during migration"}, FailureControlPlane, CauseAttachmentCrashed},
	{[]string{"target pod shutdown during migration"}, FailureControlPlane, CauseTargetCrashed},
	{[]string{"target pod is down"}, FailureControlPlane, CauseTargetDown},
	{[]string{"exceeded quota"}, FailureControlPlane, CauseQuota},
	{[]string{"violates podsecurity"}, FailureControlPlane, CausePodRefused},
	{[]string{"needs a privileged namespace"}, FailureControlPlane, CausePodRefused},
	{[]string{"error creating pod"}, FailureControlPlane, CausePodRefused},
	{[]string{"timeout waiting for utility volumes to detach"}, FailureControlPlane, CauseUtilityVolumes},
	{[]string{"another migration job is in progress"}, FailureControlPlane, CauseConcurrent},
	{[]string{"taken over by another migration job"}, FailureControlPlane, CauseConcurrent},
	{[]string{"in-flight migration detected"}, FailureControlPlane, CauseConcurrent},
	{[]string{"migration state was cleared"}, FailureControlPlane, CauseStateLost},
	{[]string{"vmi does not exist"}, FailureControlPlane, CauseVMIGone},
	{[]string{"vmi shutdown during migration"}, FailureControlPlane, CauseVMIGone},
	{[]string{"waiting for utility volumes"}, FailureControlPlane, CauseUtilityVolumes},
	{[]string{"waiting for backup"}, FailureControlPlane, CauseBackup},
	{[]string{"aborting backup"}, FailureControlPlane, CauseBackup},
	{[]string{"until backup"}, FailureControlPlane, CauseBackup},
	{[]string{"x509 hostname error"}, FailureControlPlane, CauseDecentralizedHosts},
	{[]string{"failed to mount hotplug volumes"}, FailureControlPlane, CauseSync},
	{[]string{"failed to configure vmi network for migration target"}, FailureControlPlane, CauseSync},
	{[]string{"syncing migration target failed"}, FailureControlPlane, CauseSync},
	{[]string{"failed to adjust resources on migration target"}, FailureControlPlane, CauseSync},
	{[]string{"failed to handle post sync migration proxy"}, FailureControlPlane, CauseSync},
	{[]string{"failed to handle migration proxy"}, FailureControlPlane, CauseSync},
	{[]string{"source node reported migration failed"}, FailureDataPlane, CauseReported},
}

// KnownTexts lists the words of KubeVirt, libvirt and the API server from which something is concluded, in no order: what hides
// names in a text must leave them as they are, and likewise the reasons of Kubernetes Events (tracker.EventReasons).
func KnownTexts() []string {
	texts := []string{textTriggered, textInProgress, textNotMigratable, textTargetPod, causeBudget, textBudget, textManyBudget, "migration uid"}
	for _, row := range slices.Concat(reasonTexts, eventTexts) {
		texts = append(texts, row.parts...)
	}
	return append(texts, notMigratable...)
}

// failure is a verdict with its ground.
type failure struct {
	class    FailureClass
	cause    FailureReason
	evidence string
}

// matchText finds the first row that the text matches.
func matchText(rows []failureText, text string) (failureText, bool) {
	text = strings.ToLower(text)
	for _, row := range rows {
		all := true
		for _, part := range row.parts {
			all = all && strings.Contains(text, part)
		}
		if all {
			return row, true
		}
	}
	return failureText{}, false
}

// classifyFailures sets the class of each failed or aborted migration.
func classifyFailures(lives []*life, migrations []*migration, facts []Fact) {
	onVMI := vmiEvents(facts)
	for _, m := range migrations {
		switch {
		case m.Outcome == OutcomeFailed || m.Outcome == OutcomeAborted:
			f := m.classifyFailure(vmiMessages(onVMI, m), lifeOf(lives, m.VMIUID))
			m.FailureClass, m.FailureReason, m.FailureEvidence = f.class, f.cause, f.evidence
		case m.Outcome == "" && m.gone != nil:
			m.FailureReason, m.FailureEvidence = CauseEndNotSeen, "the VMIM was gone from a later list"
		}
	}
}

// vmiEvent is an Event on a VMI.
type vmiEvent struct {
	*KubeEventDetail
	at     time.Time
	naming bool // it names a migration
}

// vmiEvents returns the Events on the VMI among facts.
func vmiEvents(facts []Fact) []vmiEvent {
	var out []vmiEvent
	for i := range facts {
		if d, ok := facts[i].Detail.(*KubeEventDetail); ok && d.About == string(ObjectVMI) {
			out = append(out, vmiEvent{d, facts[i].OccurredAt, strings.Contains(d.Message, "migration uid ")})
		}
	}
	return out
}

// vmiMessages returns those Events that can speak of the migration: those that name it, and those within its time.
func vmiMessages(events []vmiEvent, m *migration) []KubeEventDetail {
	const slack = 2 * time.Second
	var out []KubeEventDetail
	for _, e := range events {
		within := !e.naming && !e.at.Before(m.CreatedAt) && !e.at.After(m.FinishedAt.Add(slack))
		if within || strings.Contains(e.Message, m.UID) {
			out = append(out, *e.KubeEventDetail)
		}
	}
	return out
}

// classifyFailure judges a migration that ended badly, by the precedence of reference kubevirt-signals §6: abort, post-copy,
// the state's own reason, Events, the phase in which it ended with the state of the target pod.
func (m *migration) classifyFailure(onVMI []KubeEventDetail, l *life) failure {
	if m.Outcome == OutcomeAborted {
		return m.classifyAbort(l)
	}
	if m.result.Failed && m.result.Mode == modePostCopy {
		return failure{FailurePostCopy, CausePostCopy, "mode PostCopy and failed"}
	}
	if text := m.result.FailureReason; text != "" {
		if row, ok := matchText(reasonTexts, text); ok {
			return failure{row.class, m.splitAbort(row.cause), "failureReason"}
		}
		return failure{FailureDataPlane, CauseReported, "failureReason of a form not known here"}
	}
	if f, ok := m.eventFailure(onVMI); ok {
		return f
	}
	return m.failureByPhase()
}

// classifyAbort says what ended the migration: the deletion of its VMI, or somebody who deleted the migration itself.
func (m *migration) classifyAbort(l *life) failure {
	evidence := "abortRequested"
	if m.deletion != nil {
		evidence = "deletionTimestamp before the end, in phase " + cmp.Or(m.deletion.Phase, "unset")
	}
	switch {
	case m.endedWithVMI(l):
		return failure{FailureAborted, CauseVMIGone, "the VMI was deleted at " + FormatClock(l.deletedAt)}
	case l != nil && !l.endedAt.IsZero() && !l.endedAt.After(m.FinishedAt):
		return failure{FailureAborted, CauseVMIGone, evidence + "; the VMI had ended"}
	}
	return failure{FailureAborted, CauseUserAbort, evidence}
}

// splitAbort distinguishes stuck from too slow where v1.9 says the same of both: a transfer that ran as long as its completion
// timeout, which grows with the guest's memory, was too slow; one that ran only as long as its progress timeout can
// merely have been stuck. It is an estimate, and where neither time had passed the cause stays that the monitor named
// up: the exact one stands only in the log of virt-launcher.
func (m *migration) splitAbort(cause FailureReason) FailureReason {
	r := m.result
	if cause != CauseMonitorAbort || r.StartedAt.IsZero() || r.EndedAt.IsZero() {
		return cause
	}
	const gib = 1 << 30
	ran := r.EndedAt.Sub(r.StartedAt)
	completion := time.Duration(float64(r.CompletionTimeoutPerGiB) * float64(r.GuestMemory) / gib * float64(time.Second))
	switch {
	case completion > 0 && ran >= completion:
		return CauseTooSlow
	case r.ProgressTimeout > 0 && ran >= time.Duration(r.ProgressTimeout)*time.Second:
		return CauseNoProgress
	}
	return cause
}

// eventFailure finds the row of the table that any Event matches, those on the migration first. That a pod had no node
// at some time is no cause once it got one.
func (m *migration) eventFailure(onVMI []KubeEventDetail) (failure, bool) {
	_, scheduled := m.targetScheduling()
	for _, row := range eventTexts {
		if row.cause == CauseUnschedulable && scheduled {
			continue
		}
		for _, d := range slices.Concat(m.events, onVMI) {
			if _, ok := matchText([]failureText{row}, d.Message); ok {
				return failure{row.class, row.cause, "Event " + d.Reason}, true
			}
		}
	}
	return failure{}, false
}

// targetScheduling reports whether the scheduler found no node for a target pod at some time, and whether it found one in the end.
func (m *migration) targetScheduling() (unschedulable, scheduled bool) {
	for _, p := range m.pods {
		unschedulable = unschedulable || p.Reason == ReasonUnschedulable
		scheduled = scheduled || p.Reason == ReasonScheduled
	}
	return unschedulable, scheduled
}

// failureByPhase judges by how far the migration came and what became of its target pod.
func (m *migration) failureByPhase() failure {
	unschedulable, scheduled := m.targetScheduling()
	started := !m.result.StartedAt.IsZero() && !m.result.StartedAt.Equal(m.result.EndedAt)
	switch {
	case unschedulable && !scheduled:
		return failure{FailureScheduling, CauseUnschedulable, "the target pod never got a node"}
	case !m.RunningAt.IsZero() || started:
		return failure{FailureDataPlane, CauseDuringTransfer, "ended after phase " + PhaseRunning}
	case !m.ScheduledAt.IsZero():
		return failure{FailureControlPlane, CauseBeforeStart, "ended between hand-over and the start of the transfer"}
	case !m.SchedulingAt.IsZero() && len(m.pods) > 0 && !scheduled:
		return failure{FailureScheduling, CauseUnschedulable, "the target pod never got a node"}
	case !m.PendingAt.IsZero():
		return failure{FailureControlPlane, CauseBeforeHandOver, "ended before the target pod was ready"}
	}
	return failure{FailureUnknown, CauseNothingSaid, "no object and no Event says why"}
}
