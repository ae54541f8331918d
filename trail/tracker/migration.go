package tracker

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// MigrationObservation is what is read of a VirtualMachineInstanceMigration (VMIM).
type MigrationObservation struct {
	Seen
	Meta
	VMI            string // spec.vmiName
	Phase          string // as KubeVirt spells it; empty until the controller has seen the object
	PhaseTimes     []trail.PhaseTime
	Conditions     []Condition
	State          *MigrationState // copied from the VMI after the end; nil when the attempt never reached hand-over
	EvacuationNode string          // annotation kubevirt.io/evacuationMigration
	Evacuation     bool            // the annotation is there
	WorkloadUpdate bool            // annotation kubevirt.io/workloadUpdateMigration is there
	VolumeUpdate   bool            // label kubevirt.io/volume-update-migration is there
	Priority       string          // spec.priority; only virt-controller may set it
	NodeSelector   map[string]string
	SendTo         string // spec.sendTo.migrationID: the source half of a decentralized migration
	Receive        string // spec.receive.migrationID: the target half
}

// phaseWhat keeps one copy of the aspect name of each known phase, as every migration held has several.
var phaseWhat = func() map[string]string {
	m := map[string]string{}
	for _, p := range trail.Phases() {
		m[p] = "phase/" + p
	}
	return m
}()

func (t *Tracker) observeMigration(o MigrationObservation) []trail.Fact {
	r := t.openRecorder(trail.ObjectMigration, o.Meta, o.Seen, trail.VMISubject(o.Namespace, o.VMI))
	if r == nil {
		return nil
	}
	r.object.vmi = o.VMI
	if r.crossed && o.lacksPhaseOf(r.object) {
		r.forgetState()
	}
	first := r.addAspect(whatSeen, "true")
	if first {
		r.recordMigrationSeen(o)
	}
	r.recordMigrationDeletion(o)
	r.recordPhases(o)
	r.recordMigrationConditions(o)
	if o.State != nil && (o.State.UID == "" || o.State.UID == o.UID) {
		state := *o.State
		state.UID = o.UID
		if !state.isEmpty() {
			r.recordResult(&state, "status.migrationState")
		}
	}
	if o.Gone {
		r.recordMigrationGone()
	}
	r.nameMigration(o.Name, o.UID)
	if first {
		r.facts = append(r.facts, t.releaseWaiting(o)...)
	}
	return r.facts
}

// recordMigrationConditions records the conditions of a VMIM as they come and go.
func (r *recorder) recordMigrationConditions(o MigrationObservation) {
	for _, c := range o.Conditions {
		r.recordCondition(trail.KindMigrationCondition, whatCondition+c.Type, c.Type, c, true, trail.ClockVirtController)
	}
	for _, a := range slices.Clone(r.object.state) {
		typ, is := strings.CutPrefix(a.what, whatCondition)
		if _, still := findCondition(o.Conditions, typ); is && !still && a.value != "" && !o.Gone {
			r.recordCondition(trail.KindMigrationCondition, a.what, typ, Condition{Type: typ}, false, trail.ClockVirtController)
		}
	}
}

// nameMigration writes the names of the VMIM on the facts made so far.
func (r *recorder) nameMigration(name, uid string) {
	for i := range r.facts {
		r.facts[i].Migration, r.facts[i].MigrationUID = name, uid
	}
}

func (r *recorder) recordMigrationSeen(o MigrationObservation) {
	reason := trail.ReasonPlain
	switch {
	case o.SendTo != "" || o.Receive != "":
		reason = trail.ReasonDecentralized
	case o.Evacuation:
		reason = trail.ReasonEvacuation
	case o.VolumeUpdate:
		reason = trail.ReasonVolumeUpdate
	case o.WorkloadUpdate:
		reason = trail.ReasonWorkloadUpdate
	case len(o.NodeSelector) > 0:
		reason = trail.ReasonNamedNode
	}
	f := r.recordOnce(trail.KindMigrationSeen, reason, whatSeen, "true").withEvidence("metadata, spec").withTime(clockTime{o.CreatedAt, trail.ClockAPIServer})
	f.Node = o.EvacuationNode
	f.withDetail(&trail.SeenDetail{
		Evacuation: o.Evacuation, EvacuationNode: o.EvacuationNode, WorkloadUpdate: o.WorkloadUpdate,
		VolumeUpdate: o.VolumeUpdate, Priority: o.Priority, NodeSelector: o.NodeSelector, SendTo: o.SendTo, Receive: o.Receive,
	})
}

// recordPhases records each phase once, from the object's own list of transitions: watches may skip phases, the list does
// not. A phase without an entry there is taken at our own time.
func (r *recorder) recordPhases(o MigrationObservation) {
	for _, p := range o.PhaseTimes {
		r.recordPhase(p.Phase, "status.phaseTransitionTimestamps", clockTime{p.At, trail.ClockVirtController})
	}
	r.recordPhase(o.Phase, "status.phase", clockTime{})
}

// lacksPhaseOf reports whether the object has not reached a phase that was recorded of it.
func (o MigrationObservation) lacksPhaseOf(recorded *object) bool {
	for _, a := range recorded.state {
		phase, is := strings.CutPrefix(a.what, "phase/")
		if is && phase != o.Phase && !slices.ContainsFunc(o.PhaseTimes, func(p trail.PhaseTime) bool { return p.Phase == phase }) {
			return true
		}
	}
	return false
}

func (r *recorder) recordPhase(phase, evidence string, when clockTime) {
	what, known := phaseWhat[phase]
	if !known {
		what = "phase/" + phase
	}
	if phase != "" && r.addAspect(what, phase) {
		r.recordOnce(trail.KindMigrationPhase, phaseReason(phase), what, phase).withEvidence(evidence).withTime(when)
	}
}

func phaseReason(phase string) trail.Reason {
	switch phase {
	case trail.PhaseSucceeded:
		return trail.ReasonSucceeded
	case trail.PhaseFailed:
		return trail.ReasonFailed
	}
	return trail.ReasonPhaseReached
}

// recordMigrationDeletion records who-knows-who's wish to delete the VMIM, with the phase in which it met it: the deletion of
// a final VMIM is KubeVirt's clean-up, any other is an abort. It is recorded before the phases of the same sight.
func (r *recorder) recordMigrationDeletion(o MigrationObservation) {
	if o.DeletionAt.IsZero() || !r.addAspect(whatDeletion, "true") {
		return
	}
	_, succeeded := r.object.aspectValue(phaseWhat[trail.PhaseSucceeded])
	_, failed := r.object.aspectValue(phaseWhat[trail.PhaseFailed])
	final := succeeded || failed
	if !final {
		final = o.endedBefore(o.DeletionAt)
	}
	r.recordOnce(trail.KindMigrationDeletionAsked, trail.ReasonDeletionAsked, whatDeletion, "true").withEvidence("metadata.deletionTimestamp").
		withTime(clockTime{o.DeletionAt, trail.ClockAPIServer}).withDetail(&trail.EndDetail{Phase: o.Phase, Final: final})
}

// endedBefore reports whether the object's own list of transitions has an end before the time. Both have 1 s
// resolution and different clocks; at equality the deletion counts as first, because only a deletion ends what it meets.
func (o MigrationObservation) endedBefore(t time.Time) bool {
	for _, p := range o.PhaseTimes {
		if (p.Phase == trail.PhaseSucceeded || p.Phase == trail.PhaseFailed) && p.At.Before(t) {
			return true
		}
	}
	return false
}

func (r *recorder) recordMigrationGone() {
	if !r.addAspect(trail.WhatGone, "true") {
		return
	}
	d := &trail.EndDetail{}
	for _, p := range []string{
		trail.PhasePending, trail.PhaseScheduling, trail.PhaseScheduled, trail.PhasePreparingTarget, trail.PhaseTargetReady, trail.PhaseRunning, trail.PhaseSucceeded, trail.PhaseFailed,
	} {
		if _, ok := r.object.aspectValue(phaseWhat[p]); ok {
			d.Phase = p
		}
	}
	d.Final = d.Phase == trail.PhaseSucceeded || d.Phase == trail.PhaseFailed
	f := r.recordOnce(trail.KindMigrationGone, r.goneReason(), trail.WhatGone, "true").withEvidence("DELETED").withDetail(d)
	f.Migration, f.MigrationUID = r.object.name, r.id.UID
}

// isEmpty reports whether the state says nothing yet of how the migration went.
func (s MigrationState) isEmpty() bool {
	return s.TargetNode == "" && s.StartedAt.IsZero() && s.EndedAt.IsZero() && !s.Failed && !s.Completed
}

// recordResult records a migration state when it says something new: handed over, started, ended.
func (r *recorder) recordResult(s *MigrationState, evidence string) {
	d := resultDetail(s)
	text, err := json.Marshal(d)
	if err != nil {
		panic("marshal migration state: " + err.Error()) // plain strings, numbers and plausible times: cannot fail
	}
	value := s.UID + " " + trail.Digest(string(text))
	if !r.changeAspect(whatResult, value) {
		return
	}
	reason, when := trail.ReasonHandedOver, clockTime{}
	switch {
	case s.Failed:
		reason, when = trail.ReasonFailed, clockTime{s.EndedAt, trail.ClockSourceNode}
	case !s.EndedAt.IsZero():
		reason, when = trail.ReasonSucceeded, clockTime{s.EndedAt, trail.ClockSourceNode}
	case !s.StartedAt.IsZero():
		reason, when = trail.ReasonStarted, clockTime{s.StartedAt, trail.ClockSourceNode}
	}
	f := r.recordChange(trail.KindMigrationResult, reason, whatResult, value).withEvidence(evidence).withTime(when).withDetail(d)
	f.MigrationUID, f.Node = s.UID, s.SourceNode
}

func resultDetail(s *MigrationState) *trail.ResultDetail {
	return &trail.ResultDetail{
		SourceNode: s.SourceNode, TargetNode: s.TargetNode, SourcePod: s.SourcePod, TargetPod: s.TargetPod,
		StartedAt: s.StartedAt, EndedAt: s.EndedAt, Mode: s.Mode, Completed: s.Completed, Failed: s.Failed,
		FailureReason: s.FailureReason, AbortRequested: s.AbortRequested, AbortStatus: s.AbortStatus, Policy: s.Policy,
		CompletionTimeoutPerGiB: s.CompletionTimeoutPerGiB, ProgressTimeout: s.ProgressTimeout,
		GuestMemory: s.GuestMemory, AllowAutoConverge: s.AllowAutoConverge, AllowPostCopy: s.AllowPostCopy,
	}
}
