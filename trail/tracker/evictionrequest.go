package tracker

import (
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// EvictionRequestObservation is what is read of an EvictionRequest about a virt-launcher pod: what one requester
// wants of the pod.
type EvictionRequestObservation struct {
	Seen
	Meta
	Pod, PodUID string
	EvictionIntent
	Conditions []Condition
}

// EvictionObservation is what is read of the Eviction of a virt-launcher pod: who wants it, and how far the
// responders are.
type EvictionObservation struct {
	Seen
	Meta
	Pod, PodUID string
	Requesters  []EvictionIntent
	Responders  []EvictionResponder
	Conditions  []Condition
}

// EvictionIntent is what a requester wants: Eviction, or Withdrawn.
type EvictionIntent struct{ Requester, Intent string }

// EvictionResponder is a responder of an Eviction: its state, and what it reports itself. Times are zero where they
// are not set.
type EvictionResponder struct {
	Name        string
	Priority    int32
	State       string
	Message     string
	StartedAt   time.Time
	HeartbeatAt time.Time
	ExpectedAt  time.Time
	CompletedAt time.Time
}

// The aspects of an EvictionRequest and of an Eviction that are recorded.
const (
	whatIntent  = "intent/"  // and the requester
	whatState   = "state/"   // and the responder
	whatMessage = "message/" // and the responder, a slash, and the digest of the text
)

// mostMessages bounds the messages of a responder that are recorded: the imperative evictor counts its attempts in
// each, and tries for ever.
const mostMessages = 20

// observeEvictionRequest records what a requester wants. As with a call of pods/eviction, it belongs to the name of
// the pod.
func (t *Tracker) observeEvictionRequest(o EvictionRequestObservation) []trail.Fact {
	r := t.openRecorder(trail.ObjectEvictionRequest, o.Meta, o.Seen, podSubject(o.Namespace, o.Pod))
	if r == nil {
		return nil
	}
	_, known := r.object.aspectValue(whatIntent + o.Requester)
	f := r.recordIntent(o.EvictionIntent, o.PodUID, "spec.intent")
	if f.Fact != nil && !known && o.Intent == trail.IntentEviction {
		f.ID = f.NaturalID(r.epochKey()) // it was made so, no matter who sees it when
		f.withTime(clockTime{o.CreatedAt, trail.ClockAPIServer})
	}
	r.recordEvictionConditions(o.Conditions)
	if o.Gone {
		r.recordEvictionRequestGone()
	}
	return r.facts
}

// observeEviction records what the controller and the responders write into an Eviction. A heartbeat alone is no fact.
func (t *Tracker) observeEviction(o EvictionObservation) []trail.Fact {
	r := t.openRecorder(trail.ObjectEviction, o.Meta, o.Seen, podSubject(o.Namespace, o.Pod))
	if r == nil {
		return nil
	}
	for _, intent := range o.Requesters {
		r.recordIntent(intent, o.PodUID, "status.requesters["+intent.Requester+"].intent")
	}
	for _, responder := range o.Responders {
		r.recordResponder(responder, o.PodUID)
	}
	r.recordEvictionConditions(o.Conditions)
	if o.Gone {
		r.recordEvictionGone()
	}
	return r.facts
}

// recordIntent records what a requester wants where that is new. Without a fact it returns none.
func (r *recorder) recordIntent(in EvictionIntent, podUID, evidence string) draft {
	what := whatIntent + in.Requester
	if in.Requester == "" || !r.changeAspect(what, in.Intent) {
		return draft{}
	}
	reason := trail.ReasonOther
	switch in.Intent {
	case trail.IntentEviction:
		reason = trail.ReasonEvictionWanted
	case trail.IntentWithdrawn:
		reason = trail.ReasonWithdrawn
	}
	return r.recordChange(trail.KindEvictionIntent, reason, what, in.Intent).withEvidence(evidence).
		withDetail(&trail.IntentDetail{Name: r.object.name, PodUID: podUID, Requester: in.Requester, Intent: in.Intent})
}

// stateReasons has the reason of the fact for each state of a responder.
//
// Source: k8s.io/api lifecycle/v1alpha1, ResponderStateType.
var stateReasons = map[string]trail.Reason{
	"Inactive":    trail.ReasonResponderInactive,
	"Active":      trail.ReasonResponderActive,
	"Interrupted": trail.ReasonResponderInterrupted,
	"Canceled":    trail.ReasonResponderCanceled,
	"Completed":   trail.ReasonResponderCompleted,
}

// recordResponder records the state of a responder and its message where they are new. Only two states have times of
// their own: Active and Completed.
func (r *recorder) recordResponder(o EvictionResponder, podUID string) {
	detail := trail.ResponderDetail{
		PodUID:      podUID,
		Responder:   o.Name,
		Priority:    o.Priority,
		State:       o.State,
		Message:     o.Message,
		StartedAt:   o.StartedAt,
		HeartbeatAt: o.HeartbeatAt,
		ExpectedAt:  o.ExpectedAt,
		CompletedAt: o.CompletedAt,
	}
	r.recordMessage(o, detail)
	what := whatState + o.Name
	if o.Name == "" || !r.changeAspect(what, o.State) {
		return
	}
	reason, known := stateReasons[o.State]
	when := clockTime{clock: trail.ClockEmitter}
	switch {
	case !known:
		reason = trail.ReasonOther
	case reason == trail.ReasonResponderActive:
		when.at = o.StartedAt
	case reason == trail.ReasonResponderCompleted:
		when.at = o.CompletedAt
	}
	r.recordDated(trail.KindEvictionProgress, reason, what, o.State, when).
		withEvidence("status.targetResponders[" + o.Name + "].state").
		withDetail(&detail)
}

// recordMessage records the message of a responder, each text once and not more than mostMessages.
func (r *recorder) recordMessage(o EvictionResponder, detail trail.ResponderDetail) {
	prefix, recorded := whatMessage+o.Name+"/", 0
	for _, a := range r.object.state {
		if strings.HasPrefix(a.what, prefix) {
			recorded++
		}
	}
	what := prefix + trail.Digest(o.Message)
	if o.Name == "" || o.Message == "" || recorded >= mostMessages || !r.addAspect(what, "true") {
		return
	}
	detail.Last = recorded+1 == mostMessages
	r.recordOnce(trail.KindEvictionProgress, trail.ReasonResponderReports, what, "true").
		withEvidence("status.responders[" + o.Name + "].message").
		withTime(clockTime{o.HeartbeatAt, trail.ClockEmitter}).
		withDetail(&detail)
}

// recordEvictionConditions records the conditions that say how an eviction ended, and that it goes on.
func (r *recorder) recordEvictionConditions(all []Condition) {
	for _, typ := range []string{trail.ConditionTargetEvicted, trail.ConditionFailed} {
		c, present := findCondition(all, typ)
		r.recordCondition(trail.KindEvictionCondition, whatCondition+typ, typ, c, present, trail.ClockEmitter)
	}
}

// recordEvictionRequestGone records that an EvictionRequest exists no more, which withdraws it.
func (r *recorder) recordEvictionRequestGone() {
	if !r.addAspect(trail.WhatGone, "true") {
		return
	}
	d := trail.IntentDetail{Name: r.object.name}
	for _, a := range r.object.state {
		if requester, is := strings.CutPrefix(a.what, whatIntent); is {
			d.Requester, d.Intent = requester, a.value
		}
	}
	r.recordOnce(trail.KindEvictionIntent, r.goneReason(), trail.WhatGone, "true").
		withEvidence("DELETED").
		withDetail(&d)
}

// recordEvictionGone records that an Eviction exists no more: its controller deletes it some time after its end.
func (r *recorder) recordEvictionGone() {
	if r.addAspect(trail.WhatGone, "true") {
		r.recordOnce(trail.KindEvictionProgress, r.goneReason(), trail.WhatGone, "true").withEvidence("DELETED")
	}
}

// podSubject is what is said of a pod by its name belongs to, as its VM is not known there.
func podSubject(namespace, name string) trail.Subject {
	return trail.Subject{Kind: trail.SubjectPod, Name: namespace + "/" + name}
}
