package tracker

import (
	"slices"

	"github.com/evictrail/evictrail/trail"
)

// BeginEpoch has the Tracker record in an epoch. What it remembers of epochs before is compared by its content: see observeList and openRecorder.
func (t *Tracker) BeginEpoch(epoch trail.Epoch) { t.epoch = epoch }

// Epoch returns the epoch in which the Tracker records.
func (t *Tracker) Epoch() trail.Epoch { return t.epoch }

// Latest is an object, and at which resourceVersion it was recorded.
type Latest struct{ Version, UID, Namespace, Name string }

// Recent are the objects of one kind that changed last and are there, the latest first. They are few: in a cluster that went back those that changed after its
// backup are older or gone, and one that is older proves it.
type Recent []Latest

// mostRecent is how many objects are remembered as changed last.
const mostRecent = 8

// With returns the objects with one more, or with its later version.
func (r Recent) With(l Latest) Recent {
	if len(r) == mostRecent && trail.NewerVersion(r[mostRecent-1].Version, l.Version) {
		return r // most objects of a long list
	}
	out := r.Without(l.UID)
	i, _ := slices.BinarySearchFunc(out, l, func(x, l Latest) int {
		if trail.NewerVersion(x.Version, l.Version) {
			return -1
		}
		return 1
	})
	out = slices.Insert(out, i, l)
	return out[:min(len(out), mostRecent)]
}

// Without returns the objects without the one of a UID.
func (r Recent) Without(uid string) Recent {
	i := slices.IndexFunc(r, func(l Latest) bool { return l.UID == uid })
	if i < 0 {
		return slices.Clone(r)
	}
	return slices.Concat(r[:i], r[i+1:])
}

// Recent returns, of the objects of each kind that are there, those that were recorded at the highest resourceVersions in this epoch.
func (t *Tracker) Recent() map[trail.ObjectKind]Recent {
	recent := map[trail.ObjectKind]Recent{}
	for key, o := range t.objects {
		epoch, version := trail.SplitVersion(o.rv)
		if epoch == t.epoch && version != "" {
			recent[key.kind] = recent[key.kind].With(Latest{version, key.uid, o.namespace, o.name})
		}
	}
	return recent
}

// noteOlder notes that a list showed an object at a lower version than was recorded.
func (t *Tracker) noteOlder(kind trail.ObjectKind, recorded string) {
	if old, known := t.older[kind]; !known || trail.NewerVersion(recorded, old) {
		t.older[kind] = recorded
	}
}

// WentBack reports whether a list, whose objects were observed just before, proves that the cluster has gone back: it shows an object at a lower
// resourceVersion than was recorded, though it is not older itself. It returns that version.
func (t *Tracker) WentBack(l ListObservation) (recorded string, proven bool) {
	recorded, known := t.older[l.Kind]
	delete(t.older, l.Kind)
	if !known || trail.NewerVersion(recorded, t.epoch.Version(l.ResourceVersion)) {
		return "", false
	}
	_, recorded = trail.SplitVersion(recorded)
	return recorded, true
}
