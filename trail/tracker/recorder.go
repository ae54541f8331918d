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

// forget forgets what was recorded of the object in earlier epochs, where it went back behind something that happens once: it is recorded again.
func (r *recorder) forget() { r.object.state = nil }

// take begins an observation of an object: nil where it is older than what was taken before. One of the same version is compared: a
// deletion may carry the version of the last change, and what is remembered may come from several places, of which none knew all.
func (t *Tracker) take(kind trail.ObjectKind, m Meta, seen Seen, subject trail.Subject) *recorder {
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

// became tells whether an aspect has another value than was recorded, and remembers it. An aspect that was never
// recorded has the value "".
func (r *recorder) became(what, value string) bool {
	old, known := r.object.get(what)
	if old == value {
		return false
	}
	if known || value != "" {
		r.object.set(what, value)
	}
	return true
}

// once tells whether an aspect is recorded for the first time.
func (r *recorder) once(what, value string) bool {
	if _, known := r.object.get(what); known {
		return false
	}
	r.object.set(what, value)
	return true
}

// change is the fact of a change that can happen again: its natural key holds the resourceVersion.
func (r *recorder) change(kind trail.Kind, reason trail.Reason, what, value string) draft {
	return r.add(kind, reason, what, value, r.id.ResourceVersion)
}

// event is the fact of a thing that happens once to an object, and to one that is restored from a backup once in each epoch.
func (r *recorder) event(kind trail.Kind, reason trail.Reason, what, value string) draft {
	key := ""
	if what != whatCompleted {
		key = r.epochKey()
	}
	return r.add(kind, reason, what, value, key)
}

// dated is the fact of a change that the object itself dates: its natural key holds that time, so that the change is the same fact at whichever
// resourceVersion it is first seen. Without a time it is a change like others.
func (r *recorder) dated(kind trail.Kind, reason trail.Reason, what, value string, when timeOf) draft {
	if when.at.IsZero() {
		return r.change(kind, reason, what, value)
	}
	return r.add(kind, reason, what, value, r.epochKey()+"at/"+when.at.UTC().Format(time.RFC3339)).at(when)
}

// epochKey is the part of a natural key that tells what happened to an object that is restored from a backup in each epoch apart.
func (r *recorder) epochKey() string {
	if r.t.epoch == 0 || !isRestored(r.id.Kind) {
		return ""
	}
	return "epoch/" + strconv.FormatUint(uint64(r.t.epoch), 10)
}

// isRestored reports whether a restore of etcd brings an object of a kind back to an earlier state that is recorded by its steps.
func isRestored(k trail.ObjectKind) bool {
	return k == trail.ObjectVMI || k == trail.ObjectMigration || k == trail.ObjectPod || k == trail.ObjectNode || k == trail.ObjectMigrationPolicy
}

// goneReason is why an object exists no more.
func (r *recorder) goneReason() trail.Reason {
	switch {
	case !r.seen.Listed:
		return trail.ReasonDeleted
	case trail.EpochOf(r.object.rv) < r.t.epoch:
		return trail.ReasonNotRestored
	}
	return trail.ReasonDeletedUnseen
}

// timeOf is a time with the clock that it was read from.
type timeOf struct {
	at    time.Time
	clock trail.Clock
}

func (r *recorder) add(kind trail.Kind, reason trail.Reason, what, value, occurrence string) draft {
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

// at stamps a fact with a time of the cluster; without one it keeps our own.
func (f draft) at(when timeOf) draft {
	if !when.at.IsZero() {
		f.OccurredAt, f.Clock = when.at.UTC().Truncate(trail.TimeResolution), when.clock
	}
	return f
}

// from names the field that says so.
func (f draft) from(evidence string) draft {
	f.Evidence = evidence
	return f
}

// with adds the typed detail.
func (f draft) with(d trail.Detail) draft {
	f.Detail = d
	return f
}
