package trail

import (
	"slices"
	"strings"
	"time"
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
	Conditions     []Condition
	PhaseTimes     []PhaseTime
	State          *MigrationState // of the last migration handed over, which need not be the one under way
}

// The aspects of a VMI that are recorded.
const (
	whatNode      = "node"
	whatMark      = "mark"
	whatSource    = "annotation/kubevirt.io/eviction-source"
	whatEnded     = "ended"
	whatDeletion  = "deletion" // of a VMI or a VMIM: it was asked for
	whatCompleted = "completed"
	whatResult    = "result"
	whatCondition = "condition/"
)

// The eviction strategies of a VMI. An empty one is None.
const (
	strategyNone       = "None"
	strategyMigrate    = "LiveMigrate"
	strategyIfPossible = "LiveMigrateIfPossible"
	StrategyExternal   = "External" // leaves moving the VM to its owner
)

// The condition types of a VMI that are recorded (reference: kubevirt-signals §5.4).
const (
	ConditionLiveMigratable    = "LiveMigratable"
	ConditionEvictionRequested = "EvictionRequested"
	ConditionPaused            = "Paused"
	ConditionMigrationRequired = "MigrationRequired"
	ConditionHotVCPUChange     = "HotVCPUChange"
	ConditionHotMemoryChange   = "HotMemoryChange"
	ConditionVolumesChange     = "VolumesChange"
	ConditionDecentralized     = "DecentralizedLiveMigrationFailure"
)

// conditionWhat maps each recorded condition type of a VMI to its aspect.
var conditionWhat = map[string]string{
	ConditionLiveMigratable:    whatCondition + ConditionLiveMigratable,
	ConditionEvictionRequested: whatCondition + ConditionEvictionRequested,
	ConditionPaused:            whatCondition + ConditionPaused,
	ConditionMigrationRequired: whatCondition + ConditionMigrationRequired,
	ConditionHotVCPUChange:     whatCondition + ConditionHotVCPUChange,
	ConditionHotMemoryChange:   whatCondition + ConditionHotMemoryChange,
	ConditionVolumesChange:     whatCondition + ConditionVolumesChange,
	ConditionDecentralized:     whatCondition + ConditionDecentralized,
}

// recordedConditions is the order in which the conditions of one observation become facts.
var recordedConditions = []string{
	ConditionLiveMigratable, ConditionEvictionRequested, ConditionPaused, ConditionMigrationRequired,
	ConditionHotVCPUChange, ConditionHotMemoryChange, ConditionVolumesChange, ConditionDecentralized,
}

// MarkDetail is what is known of a mark at the instant it was set or cleared.
type MarkDetail struct {
	Strategy  string `json:"strategy,omitempty"`
	Source    string `json:"source,omitempty"`    // the eviction-source annotation at that instant
	Inherited bool   `json:"inherited,omitempty"` // the annotation was there before the mark: it may be stale
	GuestNode string `json:"guest_node,omitempty"`
}

func (*MarkDetail) detail() {}

// ConditionDetail is a condition as it was seen.
type ConditionDetail struct {
	Type    string `json:"type"`
	Status  string `json:"status,omitempty"` // empty when the condition was removed
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (*ConditionDetail) detail() {}

// VMIDetail is what a placement or an end of a VMI knows beyond its node.
type VMIDetail struct {
	CreatedAt    time.Time `json:"created_at,omitzero"`
	MigrationUID string    `json:"migration_uid,omitempty"` // the migration that brought the guest here, where the VMI says so
	MigrationEnd time.Time `json:"migration_end,omitzero"`  // its endTimestamp, on the source node's clock
	Phase        string    `json:"phase,omitempty"`
	Strategy     string    `json:"strategy,omitempty"`
}

func (*VMIDetail) detail() {}

func (t *Tracker) observeVMI(o VMIObservation) []Fact {
	r := t.take(ObjectVMI, o.Meta, o.Seen, VMISubject(o.Namespace, o.Name))
	if r == nil {
		return nil
	}
	r.object.vmi, r.object.vmiUID = o.Name, o.UID
	_, ended := r.object.get(whatEnded)
	_, deleted := r.object.get(whatDeletion)
	if r.crossed && (ended && o.Phase != "Succeeded" && o.Phase != "Failed" || deleted && o.DeletionAt.IsZero()) {
		r.forget()
	}
	at, _ := r.object.get(whatNode)
	r.vmiResult(o)
	r.vmiPlaced(o)
	r.vmiMark(o, at != "" && at != o.Node)
	r.vmiConditions(o)
	r.vmiDeletionAsked(o)
	r.vmiEnded(o)
	if o.Gone {
		r.vmiGone()
	}
	return r.facts
}

// vmiPlaced records on which node the guest runs. The API gives nodeName no time of its own, so that our clock is the
// best there is, but for a guest that was started there and never moved. In a new epoch it is recorded once more: whatever was recorded of its end was undone.
func (r *recorder) vmiPlaced(o VMIObservation) {
	_, known := r.object.get(whatNode)
	moved := r.became(whatNode, o.Node)
	if o.Node == "" || !moved && !r.crossed {
		return
	}
	reason, when, detail := ReasonFound, timeOf{}, &VMIDetail{CreatedAt: o.CreatedAt, Strategy: o.Strategy}
	switch {
	case !moved:
	case o.State != nil && o.State.TargetNode == o.Node && !o.State.Failed && !o.State.EndedAt.IsZero():
		reason = ReasonMigrated
		detail.MigrationUID, detail.MigrationEnd = o.State.UID, o.State.EndedAt
	case known:
		reason = ReasonMoved
	case o.State == nil:
		reason, when = ReasonStarted, o.phaseTime("Running", "Scheduled")
	}
	r.change(KindVMIPlaced, reason, whatNode, o.Node).from("status.nodeName").with(detail).at(when).Node = o.Node
}

// vmiMark records the mark and the annotation that says who asked for it, as they were at the same instant. An
// annotation that was there before the mark is inherited, unless the guest has moved since: that clears it.
func (r *recorder) vmiMark(o VMIObservation, moved bool) {
	before, _ := r.object.get(whatSource)
	old, _ := r.object.get(whatMark)
	if r.became(whatMark, o.Mark) {
		detail := &MarkDetail{Strategy: o.Strategy, Source: o.EvictionSource, GuestNode: o.Node}
		if o.Mark != "" {
			detail.Inherited = o.EvictionSource != "" && before == o.EvictionSource && !moved
			r.marked(o, detail)
		} else {
			r.unmarked(o, old, detail)
		}
	}
	if r.became(whatSource, o.EvictionSource) {
		kind, reason := KindAnnotationSet, ReasonEvictionSource
		if o.EvictionSource == "" {
			kind = KindAnnotationCleared
		}
		r.change(kind, reason, whatSource, o.EvictionSource).from("metadata.annotations[kubevirt.io/eviction-source]").Node = o.Node
	}
}

func (r *recorder) marked(o VMIObservation, detail *MarkDetail) {
	reason := ReasonRequesterUnnamed
	switch {
	case detail.Inherited:
		reason = ReasonDeschedulerInherited
	case strings.EqualFold(o.EvictionSource, "descheduler"):
		reason = ReasonDescheduler
	}
	f := r.change(KindEvacuationMarked, reason, whatMark, o.Mark).from("status.evacuationNodeName").with(detail)
	f.Node = o.Mark
	if c, ok := o.condition(ConditionEvictionRequested); ok && o.Listed {
		f.at(timeOf{c.ChangedAt, ClockVirtController})
	}
}

func (r *recorder) unmarked(o VMIObservation, old string, detail *MarkDetail) {
	reason := ReasonCleared
	if o.Node != old {
		reason = ReasonMigrated
	}
	r.change(KindEvacuationUnmarked, reason, whatMark, "").from("status.evacuationNodeName").with(detail).Node = old
}

// vmiConditions records the conditions that explain why a VMI moves or cannot. LiveMigratable is expected to be
// True and is re-created on every change, so only False is a state of its own; the others are expected to be absent.
func (r *recorder) vmiConditions(o VMIObservation) {
	for _, typ := range recordedConditions {
		c, present := o.condition(typ)
		if quiet := typ == ConditionLiveMigratable && c.Status == "True"; quiet {
			c, present = Condition{Type: typ}, false
		}
		r.condition(KindVMICondition, conditionWhat[typ], typ, c, present)
	}
}

// condition records that a condition appeared, changed or went away.
func (r *recorder) condition(kind Kind, what, typ string, c Condition, present bool) {
	value := ""
	if present {
		value = c.Status + ":" + c.Reason
	}
	if !r.became(what, value) {
		return
	}
	reason := ReasonConditionSet
	if !present {
		reason = ReasonConditionRemoved
	}
	detail := &ConditionDetail{Type: typ, Status: c.Status, Reason: c.Reason, Message: c.Message}
	f := r.change(kind, reason, what, value).from("status.conditions[" + typ + "]").with(detail)
	if present {
		f.at(timeOf{c.ChangedAt, ClockVirtController})
	}
}

// vmiResult records what the VMI says of its last migration, and its end as the descheduler's cooldown counts it.
func (r *recorder) vmiResult(o VMIObservation) {
	if o.State == nil || o.State.UID == "" {
		return
	}
	r.result(o.State, "status.migrationState")
	value := o.State.UID + "@" + o.State.EndedAt.UTC().Format(time.RFC3339)
	if o.State.EndedAt.IsZero() || !r.became(whatCompleted, value) {
		return
	}
	reason := ReasonSucceeded
	if o.State.Failed {
		reason = ReasonFailed
	}
	f := r.event(KindMigrationCompleted, reason, whatCompleted, value).
		from("status.migrationState.endTimestamp").at(timeOf{o.State.EndedAt, ClockSourceNode}).with(resultDetail(o.State))
	f.MigrationUID = o.State.UID
}

// vmiDeletionAsked records that the VMI was deleted while its guest ran. KubeVirt then takes its pods down, those of migrations, too,
// so that a migration under way ends, and its evacuation controller makes no other. The deletion of a VMI whose guest has ended is
// KubeVirt's clean-up.
//
// Source: kubevirt pkg/virt-controller/watch/vmi/lifecycle.go, sync; watch/drain/evacuation/evacuation.go.
func (r *recorder) vmiDeletionAsked(o VMIObservation) {
	_, ended := r.object.get(whatEnded)
	if o.DeletionAt.IsZero() || ended || o.endedBy(o.DeletionAt) || !r.once(whatDeletion, "true") {
		return
	}
	f := r.event(KindVMIDeletionAsked, ReasonDeletionAsked, whatDeletion, "true").from("metadata.deletionTimestamp").
		at(timeOf{o.DeletionAt, ClockAPIServer}).with(&VMIDetail{CreatedAt: o.CreatedAt, Phase: o.Phase})
	f.Node = o.Node
}

// endedBy reports whether the guest had ended at a time, by the object's own list of transitions: a guest that is asked to go takes a
// moment, so that an end in the same second came first.
func (o VMIObservation) endedBy(t time.Time) bool {
	return slices.ContainsFunc(o.PhaseTimes, func(p PhaseTime) bool {
		return (p.Phase == "Succeeded" || p.Phase == "Failed") && !p.At.After(t)
	})
}

func (r *recorder) vmiEnded(o VMIObservation) {
	var reason Reason
	switch o.Phase {
	case "Succeeded":
		reason = ReasonGuestStopped
	case "Failed":
		reason = ReasonGuestFailed
	default:
		return
	}
	if r.once(whatEnded, o.Phase) {
		f := r.event(KindVMIEnded, reason, whatEnded, o.Phase).from("status.phase").at(o.phaseTime(o.Phase))
		f.Node = o.Node
		f.with(&VMIDetail{CreatedAt: o.CreatedAt, Phase: o.Phase})
	}
}

func (r *recorder) vmiGone() {
	if !r.once(WhatGone, "true") {
		return
	}
	f := r.event(KindVMIEnded, r.goneReason(), WhatGone, "true").from("DELETED")
	f.Node, _ = r.object.get(whatNode)
}

// condition finds a condition by its type.
func (o VMIObservation) condition(typ string) (Condition, bool) {
	return findCondition(o.Conditions, typ)
}

func findCondition(conditions []Condition, typ string) (Condition, bool) {
	for _, c := range conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return Condition{Type: typ}, false
}

// phaseTime gives the time of the first of the phases that the VMI has a time for.
func (o VMIObservation) phaseTime(phases ...string) timeOf {
	for _, phase := range phases {
		for _, p := range o.PhaseTimes {
			if p.Phase == phase {
				return timeOf{p.At, ClockVirtController}
			}
		}
	}
	return timeOf{}
}
