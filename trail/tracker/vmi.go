package tracker

import (
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// VMIObservation is what is read of a VirtualMachineInstance.
type VMIObservation struct {
	Seen
	Meta
	Node           string
	Phase          string
	Strategy       string // spec.evictionStrategy; empty when unset
	Mark           string // status.evacuationNodeName; empty when not marked
	EvictionSource string // annotation kubevirt.io/eviction-source; empty when absent
	Outdated       bool   // label kubevirt.io/outdatedLauncherImage is there
	Conditions     []Condition
	PhaseTimes     []trail.PhaseTime
	State          *MigrationState // of the last migration handed over, which need not be the one under way
}

// The aspects of a VMI that are recorded.
const (
	whatNode      = "node"
	whatMark      = "mark"
	whatSource    = "annotation/kubevirt.io/eviction-source"
	whatOutdated  = "label/kubevirt.io/outdatedLauncherImage"
	whatEnded     = "ended"
	whatDeletion  = "deletion" // of a VMI or a VMIM: it was asked for
	whatCompleted = "completed"
	whatResult    = "result"
	whatCondition = "condition/"
)

// conditionWhat maps each recorded condition type of a VMI to its aspect.
var conditionWhat = map[string]string{
	trail.ConditionLiveMigratable:    whatCondition + trail.ConditionLiveMigratable,
	trail.ConditionEvictionRequested: whatCondition + trail.ConditionEvictionRequested,
	trail.ConditionPaused:            whatCondition + trail.ConditionPaused,
	trail.ConditionMigrationRequired: whatCondition + trail.ConditionMigrationRequired,
	trail.ConditionHotVCPUChange:     whatCondition + trail.ConditionHotVCPUChange,
	trail.ConditionHotMemoryChange:   whatCondition + trail.ConditionHotMemoryChange,
	trail.ConditionVolumesChange:     whatCondition + trail.ConditionVolumesChange,
	trail.ConditionDecentralized:     whatCondition + trail.ConditionDecentralized,
}

// recordedConditions is the order in which the conditions of one observation become facts.
var recordedConditions = []string{
	trail.ConditionLiveMigratable, trail.ConditionEvictionRequested, trail.ConditionPaused, trail.ConditionMigrationRequired,
	trail.ConditionHotVCPUChange, trail.ConditionHotMemoryChange, trail.ConditionVolumesChange, trail.ConditionDecentralized,
}

func (t *Tracker) observeVMI(o VMIObservation) []trail.Fact {
	r := t.openRecorder(trail.ObjectVMI, o.Meta, o.Seen, trail.VMISubject(o.Namespace, o.Name))
	if r == nil {
		return nil
	}
	r.object.vmi, r.object.vmiUID = o.Name, o.UID
	_, ended := r.object.aspectValue(whatEnded)
	_, deleted := r.object.aspectValue(whatDeletion)
	if r.crossed && (ended && o.Phase != "Succeeded" && o.Phase != "Failed" || deleted && o.DeletionAt.IsZero()) {
		r.forgetState()
	}
	at, _ := r.object.aspectValue(whatNode)
	r.recordVMIResult(o)
	r.recordPlacement(o)
	r.recordMark(o, at != "" && at != o.Node)
	r.recordOutdated(o)
	r.recordVMIConditions(o)
	r.recordVMIDeletion(o)
	r.recordVMIEnd(o)
	if o.Gone {
		r.recordVMIGone()
	}
	return r.facts
}

// recordPlacement records on which node the guest runs. The API has no time for nodeName, so that our clock is the
// best there is, but for a guest that was started there and never moved. In a new epoch it is recorded once more: whatever was recorded of its end was undone.
func (r *recorder) recordPlacement(o VMIObservation) {
	_, known := r.object.aspectValue(whatNode)
	moved := r.changeAspect(whatNode, o.Node)
	if o.Node == "" || !moved && !r.crossed {
		return
	}
	reason, when, detail := trail.ReasonFound, clockTime{}, &trail.VMIDetail{CreatedAt: o.CreatedAt, Strategy: o.Strategy}
	switch {
	case !moved:
	case o.State != nil && o.State.TargetNode == o.Node && !o.State.Failed && !o.State.EndedAt.IsZero():
		reason = trail.ReasonMigrated
		detail.MigrationUID, detail.MigrationEnd = o.State.UID, o.State.EndedAt
	case known:
		reason = trail.ReasonMoved
	case o.State == nil:
		reason, when = trail.ReasonStarted, o.phaseTime("Running", "Scheduled")
	}
	r.recordChange(trail.KindVMIPlaced, reason, whatNode, o.Node).withEvidence("status.nodeName").withDetail(detail).withTime(when).Node = o.Node
}

// recordMark records the mark and the annotation that says who asked for it, as they were at the same instant. An
// annotation that was there before the mark is inherited, unless the guest has moved since: that clears it.
func (r *recorder) recordMark(o VMIObservation, moved bool) {
	before, _ := r.object.aspectValue(whatSource)
	old, _ := r.object.aspectValue(whatMark)
	if r.changeAspect(whatMark, o.Mark) {
		detail := &trail.MarkDetail{Strategy: o.Strategy, Source: o.EvictionSource, GuestNode: o.Node}
		if o.Mark != "" {
			detail.Inherited = o.EvictionSource != "" && before == o.EvictionSource && !moved
			r.recordMarkSet(o, detail)
		} else {
			r.recordMarkCleared(o, old, detail)
		}
	}
	if r.changeAspect(whatSource, o.EvictionSource) {
		kind, reason := trail.KindAnnotationSet, trail.ReasonEvictionSource
		if o.EvictionSource == "" {
			kind = trail.KindAnnotationCleared
		}
		r.recordChange(kind, reason, whatSource, o.EvictionSource).withEvidence("metadata.annotations[kubevirt.io/eviction-source]").Node = o.Node
	}
}

func (r *recorder) recordMarkSet(o VMIObservation, detail *trail.MarkDetail) {
	reason := trail.ReasonRequesterUnnamed
	switch {
	case detail.Inherited:
		reason = trail.ReasonDeschedulerInherited
	case strings.EqualFold(o.EvictionSource, "descheduler"):
		reason = trail.ReasonDescheduler
	}
	f := r.recordChange(trail.KindEvacuationMarked, reason, whatMark, o.Mark).withEvidence("status.evacuationNodeName").withDetail(detail)
	f.Node = o.Mark
	if c, ok := o.conditionByType(trail.ConditionEvictionRequested); ok && o.Listed {
		f.withTime(clockTime{c.ChangedAt, trail.ClockVirtController})
	}
}

func (r *recorder) recordMarkCleared(o VMIObservation, old string, detail *trail.MarkDetail) {
	reason := trail.ReasonCleared
	if o.Node != old {
		reason = trail.ReasonMigrated
	}
	r.recordChange(trail.KindEvacuationUnmarked, reason, whatMark, "").withEvidence("status.evacuationNodeName").withDetail(detail).Node = old
}

// recordOutdated records that the virt-launcher of a guest became outdated, or that it is current again. The label has no time of its
// own. Of a guest that has ended KubeVirt takes it off, which says nothing.
//
// Source: kubevirt pkg/virt-controller/watch/vmi/lifecycle.go, setLauncherContainerInfo; pkg/virt-handler/migration-target.go,
// ackMigrationCompletion: the label goes and nodeName changes in one update.
func (r *recorder) recordOutdated(o VMIObservation) {
	if o.Gone || o.Phase == "Succeeded" || o.Phase == "Failed" {
		return
	}
	value := ""
	if o.Outdated {
		value = "true"
	}
	if !r.changeAspect(whatOutdated, value) {
		return
	}
	kind, reason := trail.KindLauncherOutdated, trail.ReasonLabelSet
	if !o.Outdated {
		kind, reason = trail.KindLauncherCurrent, trail.ReasonLabelRemoved
	}
	r.recordChange(kind, reason, whatOutdated, value).withEvidence("metadata.labels[kubevirt.io/outdatedLauncherImage]").Node = o.Node
}

// recordVMIConditions records the conditions that explain why a VMI moves or cannot. LiveMigratable is expected to be
// True and is re-created on every change, so only False is a state of its own; the others are expected to be absent.
func (r *recorder) recordVMIConditions(o VMIObservation) {
	for _, typ := range recordedConditions {
		c, present := o.conditionByType(typ)
		if quiet := typ == trail.ConditionLiveMigratable && c.Status == "True"; quiet {
			c, present = Condition{Type: typ}, false
		}
		r.recordCondition(trail.KindVMICondition, conditionWhat[typ], typ, c, present, trail.ClockVirtController)
	}
}

// recordCondition records that a condition appeared, changed or went away. Its time is of the clock.
func (r *recorder) recordCondition(kind trail.Kind, what, typ string, c Condition, present bool, clock trail.Clock) {
	value := ""
	if present {
		value = c.Status + ":" + c.Reason
	}
	if !r.changeAspect(what, value) {
		return
	}
	reason := trail.ReasonConditionSet
	if !present {
		reason = trail.ReasonConditionRemoved
	}
	detail := &trail.ConditionDetail{Type: typ, Status: c.Status, Reason: c.Reason, Message: c.Message}
	f := r.recordChange(kind, reason, what, value).withEvidence("status.conditions[" + typ + "]").withDetail(detail)
	if present {
		f.withTime(clockTime{c.ChangedAt, clock})
	}
}

// recordVMIResult records what the VMI says of its last migration, and its end as the descheduler's cooldown counts it.
func (r *recorder) recordVMIResult(o VMIObservation) {
	if o.State == nil || o.State.UID == "" {
		return
	}
	r.recordResult(o.State, "status.migrationState")
	value := o.State.UID + "@" + o.State.EndedAt.UTC().Format(time.RFC3339)
	if o.State.EndedAt.IsZero() || !r.changeAspect(whatCompleted, value) {
		return
	}
	reason := trail.ReasonSucceeded
	if o.State.Failed {
		reason = trail.ReasonFailed
	}
	f := r.recordOnce(trail.KindMigrationCompleted, reason, whatCompleted, value).
		withEvidence("status.migrationState.endTimestamp").withTime(clockTime{o.State.EndedAt, trail.ClockSourceNode}).withDetail(resultDetail(o.State))
	f.MigrationUID = o.State.UID
}

// recordVMIDeletion records that the VMI was deleted while its guest ran. KubeVirt then takes its pods down, those of migrations, too,
// so that a migration under way ends, and its evacuation controller makes no other. The deletion of a VMI whose guest has ended is
// KubeVirt's clean-up.
//
// Source: kubevirt pkg/virt-controller/watch/vmi/lifecycle.go, sync; watch/drain/evacuation/evacuation.go.
func (r *recorder) recordVMIDeletion(o VMIObservation) {
	_, ended := r.object.aspectValue(whatEnded)
	if o.DeletionAt.IsZero() || ended || o.endedBy(o.DeletionAt) || !r.addAspect(whatDeletion, "true") {
		return
	}
	f := r.recordOnce(trail.KindVMIDeletionAsked, trail.ReasonDeletionAsked, whatDeletion, "true").withEvidence("metadata.deletionTimestamp").
		withTime(clockTime{o.DeletionAt, trail.ClockAPIServer}).withDetail(&trail.VMIDetail{CreatedAt: o.CreatedAt, Phase: o.Phase})
	f.Node = o.Node
}

// endedBy reports whether the guest had ended at a time, by the object's own list of transitions: a guest that is asked to go takes a
// moment, so that an end in the same second came first.
func (o VMIObservation) endedBy(t time.Time) bool {
	return slices.ContainsFunc(o.PhaseTimes, func(p trail.PhaseTime) bool {
		return (p.Phase == "Succeeded" || p.Phase == "Failed") && !p.At.After(t)
	})
}

func (r *recorder) recordVMIEnd(o VMIObservation) {
	var reason trail.Reason
	switch o.Phase {
	case "Succeeded":
		reason = trail.ReasonGuestStopped
	case "Failed":
		reason = trail.ReasonGuestFailed
	default:
		return
	}
	if r.addAspect(whatEnded, o.Phase) {
		f := r.recordOnce(trail.KindVMIEnded, reason, whatEnded, o.Phase).withEvidence("status.phase").withTime(o.phaseTime(o.Phase))
		f.Node = o.Node
		f.withDetail(&trail.VMIDetail{CreatedAt: o.CreatedAt, Phase: o.Phase})
	}
}

func (r *recorder) recordVMIGone() {
	if !r.addAspect(trail.WhatGone, "true") {
		return
	}
	f := r.recordOnce(trail.KindVMIEnded, r.goneReason(), trail.WhatGone, "true").withEvidence("DELETED")
	f.Node, _ = r.object.aspectValue(whatNode)
}

// conditionByType finds a condition by its type.
func (o VMIObservation) conditionByType(typ string) (Condition, bool) {
	return findCondition(o.Conditions, typ)
}

// phaseTime returns the time of the first of the phases that the VMI has a time for.
func (o VMIObservation) phaseTime(phases ...string) clockTime {
	for _, phase := range phases {
		for _, p := range o.PhaseTimes {
			if p.Phase == phase {
				return clockTime{p.At, trail.ClockVirtController}
			}
		}
	}
	return clockTime{}
}
