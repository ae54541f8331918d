package tracker

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// RequestObservation is one call of the API server as an audit event or an admission review has it: an eviction of
// a virt-launcher pod, or something else that moves VMs or keeps them from moving.
type RequestObservation struct {
	Seen
	Source    trail.RequestSource
	ID        string // auditID, or the UID of the admission request
	Stage     string // of the audit event: ResponseComplete or Panic; empty for a review
	Action    trail.Action
	Namespace string // of the object; empty for a Node
	Name      string // of the pod, migration, VM or node; empty where the API server had yet to generate it
	AskedAt   time.Time
	Detail    trail.RequestDetail
}

// lateAfter is how long after its answer an audit event may arrive and still count as reported in time: the API server
// sends batches of 30 s and tries for some minutes.
const lateAfter = 10 * time.Minute

// observeRequest records a request. It has no state: a request arrives whole, and its natural key is the ID that the
// API server assigned. Everything about a pod belongs to the pod's name, as an audit event knows no VMI; what concerns
// migrations belongs to their namespace, as names may be generated later.
func (t *Tracker) observeRequest(o RequestObservation) []trail.Fact {
	kind, reason := trail.KindActionRequested, actionReasons[o.Action]
	if o.Action == trail.ActionEvict {
		kind, reason = trail.KindEvictionRequested, trail.Reason(o.Detail.Answer())
	}
	detail := o.Detail
	detail.Source, detail.Action, detail.Name = o.Source, o.Action, o.Name
	if detail.Code < 0 || detail.Code > 999 { // it is no code of HTTP
		detail.Code = 0
	}
	detail.AnsweredAt = detail.AnsweredAt.UTC().Truncate(trail.TimeResolution)
	r := &recorder{
		t: t, seen: o.Seen,
		object: &object{subject: o.buildSubject(), namespace: o.Namespace},
		id:     trail.Object{Kind: trail.ObjectRequest, UID: string(o.Source) + ":" + o.ID},
	}
	f := r.recordOnce(kind, reason, string(o.Action), o.Stage).withDetail(&detail)
	f.Evidence = string(o.Source) + " " + o.ID
	if o.Source == trail.SourceAudit {
		f.withTime(clockTime{o.AskedAt, trail.ClockAPIServer})
		f.Late = o.At.Sub(detail.AnsweredAt) > lateAfter
	}
	o.fillNames(f, &detail)
	return r.facts
}

// fillNames writes the names of the request's object on its fact.
func (o RequestObservation) fillNames(f draft, detail *trail.RequestDetail) {
	switch o.Action {
	case trail.ActionEvict:
		f.VMI = detail.VMIName()
	case trail.ActionMigrate, trail.ActionCancel:
		f.VMI = o.Name
	case trail.ActionCreateMigration, trail.ActionDeleteMigration:
		f.Migration = o.Name
	case trail.ActionChangeNode:
		f.Node = o.Name
	}
}

func (o RequestObservation) buildSubject() trail.Subject {
	switch o.Action {
	case trail.ActionMigrate, trail.ActionCancel:
		return trail.VMISubject(o.Namespace, o.Name)
	case trail.ActionCreateMigration, trail.ActionDeleteMigration:
		return trail.Subject{Kind: trail.SubjectNamespace, Name: o.Namespace}
	case trail.ActionChangeNode:
		return trail.Subject{Kind: trail.SubjectNode, Name: o.Name}
	case trail.ActionEvict:
	}
	return podSubject(o.Namespace, o.Name)
}

// actionReasons has the reason of the fact for each action that is no eviction.
var actionReasons = map[trail.Action]trail.Reason{
	trail.ActionCreateMigration: trail.ReasonMigrationCreated,
	trail.ActionDeleteMigration: trail.ReasonMigrationDeleted,
	trail.ActionMigrate:         trail.ReasonMigrateCalled,
	trail.ActionCancel:          trail.ReasonCancelCalled,
	trail.ActionChangeNode:      trail.ReasonNodeChanged,
}
