package tracker

import (
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// recorder collects the facts of one observation of one object.
type recorder struct {
	t      *Tracker
	object *object
	id     trail.Object
	seen   Seen
	facts  []trail.Fact

	crossed bool // it is the first sight of the object in this epoch, and it was recorded in an earlier one
}

// forgetState forgets what earlier epochs recorded of the object, where it went back behind something that happens once: it is recorded again.
func (r *recorder) forgetState() { r.object.state = nil }

// openRecorder begins an observation of an object. It returns nil where that is older than what was observed before. One of the same version is compared: a
// deletion may carry the version of the last change, and what is remembered may come from several places, of which none knew all.
func (t *Tracker) openRecorder(kind trail.ObjectKind, m Meta, seen Seen, subject trail.Subject) *recorder {
	key := objectKey{kind, m.UID}
	m.ResourceVersion = t.epoch.Version(m.ResourceVersion)
	o, known := t.objects[key]
	if known && m.ResourceVersion != o.rv && !trail.NewerVersion(m.ResourceVersion, o.rv) {
		if seen.Listed {
			t.noteOlder(kind, o.rv)
		}
		return nil
	}
	crossed := known && trail.EpochOf(o.rv) < t.epoch
	if !known {
		o = &object{subject: subject, namespace: m.Namespace, name: m.Name}
		t.objects[key] = o
	}
	o.name = m.Name
	o.rv = m.ResourceVersion
	if seen.Gone {
		delete(t.objects, key)
	}
	return &recorder{t: t, object: o, id: trail.Object{Kind: kind, UID: m.UID, ResourceVersion: m.ResourceVersion}, seen: seen, crossed: crossed}
}

// changeAspect remembers the value of an aspect, and reports whether another one was recorded. An aspect that was never
// recorded has the value "".
func (r *recorder) changeAspect(what, value string) bool {
	old, known := r.object.aspectValue(what)
	if old == value {
		return false
	}
	if known || value != "" {
		r.object.setAspect(what, value)
	}
	return true
}

// addAspect remembers an aspect of which nothing was recorded, and reports whether it did.
func (r *recorder) addAspect(what, value string) bool {
	if _, known := r.object.aspectValue(what); known {
		return false
	}
	r.object.setAspect(what, value)
	return true
}

// recordChange appends the fact of a change that can happen again: its natural key holds the resourceVersion.
func (r *recorder) recordChange(kind trail.Kind, reason trail.Reason, what, value string) draft {
	return r.appendFact(kind, reason, what, value, r.id.ResourceVersion)
}

// recordOnce appends the fact of a thing that happens once to an object, and to one that is restored from a backup once in each epoch.
func (r *recorder) recordOnce(kind trail.Kind, reason trail.Reason, what, value string) draft {
	key := ""
	if what != whatCompleted {
		key = r.epochKey()
	}
	return r.appendFact(kind, reason, what, value, key)
}

// recordDated appends the fact of a change that the object itself dates: its natural key holds that time, so that the change is the same fact at whichever
// resourceVersion it is first seen. Without a time it is a change like others.
func (r *recorder) recordDated(kind trail.Kind, reason trail.Reason, what, value string, when clockTime) draft {
	if when.at.IsZero() {
		return r.recordChange(kind, reason, what, value)
	}
	return r.appendFact(kind, reason, what, value, r.epochKey()+"at/"+when.at.UTC().Format(time.RFC3339)).withTime(when)
}

// epochKey returns the part of a natural key by which what happens once to an object happens once in each epoch: a backup may be restored.
func (r *recorder) epochKey() string {
	if r.t.epoch == 0 || !isRestored(r.id.Kind) {
		return ""
	}
	return "epoch/" + strconv.FormatUint(uint64(r.t.epoch), 10)
}

// isRestored reports whether a restore of etcd brings an object of a kind back to an earlier state that is recorded by its steps.
func isRestored(k trail.ObjectKind) bool {
	switch k {
	case trail.ObjectVMI, trail.ObjectMigration, trail.ObjectPod, trail.ObjectNode, trail.ObjectMigrationPolicy, trail.ObjectEvictionRequest, trail.ObjectEviction:
		return true
	case trail.ObjectKubeVirt, trail.ObjectKubeEvent, trail.ObjectPolicy, trail.ObjectSource, trail.ObjectRequest, trail.ObjectDescheduler, trail.ObjectNodeLoad:
	}
	return false
}

// goneReason returns why an object exists no more.
func (r *recorder) goneReason() trail.Reason {
	switch {
	case !r.seen.Listed:
		return trail.ReasonDeleted
	case trail.EpochOf(r.object.rv) < r.t.epoch:
		return trail.ReasonNotRestored
	}
	return trail.ReasonDeletedUnseen
}

// clockTime is a time with the clock that it was read from.
type clockTime struct {
	at    time.Time
	clock trail.Clock
}

// appendFact appends a fact whose natural key has occurrence in it (Fact.NaturalID), at our time.
func (r *recorder) appendFact(kind trail.Kind, reason trail.Reason, what, value, occurrence string) draft {
	f := trail.Fact{
		Cluster:    r.t.cluster,
		Kind:       kind,
		Reason:     reason,
		Subject:    r.object.subject,
		Object:     r.id,
		What:       what,
		Value:      value,
		OccurredAt: r.seen.At.Truncate(trail.TimeResolution),
		Clock:      trail.ClockObserver,
		ObservedAt: r.seen.At.Truncate(trail.TimeResolution),
		Late:       r.seen.Listed,
		Namespace:  r.object.namespace,
		VMI:        r.object.vmi,
		VMIUID:     r.object.vmiUID,
	}
	f.ID = f.NaturalID(occurrence)
	r.facts = append(r.facts, f)
	return draft{&r.facts[len(r.facts)-1]}
}

// draft is a fact that is being written.
type draft struct{ *trail.Fact }

// withTime stamps a fact with a time of the cluster; without one it keeps our own.
func (f draft) withTime(when clockTime) draft {
	if !when.at.IsZero() {
		f.OccurredAt, f.Clock = when.at.UTC().Truncate(trail.TimeResolution), when.clock
	}
	return f
}

// withEvidence names the field that says so.
func (f draft) withEvidence(evidence string) draft {
	f.Evidence = evidence
	return f
}

// withDetail adds the typed detail.
func (f draft) withDetail(d trail.Detail) draft {
	f.Detail = d
	return f
}
