package trail

import (
	"fmt"
	"iter"
	"sort"
	"strconv"
	"time"
)

// Tracker turns observations into facts. It remembers, per object, only what its facts said: the state in which the
// object was last recorded. What an observation adds to that state are the new facts.
//
// It is not safe for concurrent use; the collector's goroutine owns it.
type Tracker struct {
	cluster string
	epoch   Epoch
	objects map[objectKey]*object
	older   map[ObjectKind]string // the highest version recorded of objects that the list under way shows at a lower one
	waiting waitingEvents
	shares  eventShares
}

type objectKey struct {
	kind ObjectKind
	uid  string
}

// object is what is remembered of one object: about 150 bytes and 32 for each aspect.
type object struct {
	subject   Subject
	namespace string
	name      string
	vmi       string
	vmiUID    string
	rv        string
	state     []aspect
}

type aspect struct{ what, value string }

func (o *object) get(what string) (string, bool) {
	for _, a := range o.state {
		if a.what == what {
			return a.value, true
		}
	}
	return "", false
}

func (o *object) set(what, value string) {
	for i := range o.state {
		if o.state[i].what == what {
			o.state[i].value = value
			return
		}
	}
	o.state = append(o.state, aspect{what, value})
}

// NewTracker makes a tracker that knows nothing yet.
func NewTracker(cluster string) *Tracker {
	return &Tracker{cluster: cluster, objects: map[objectKey]*object{}, older: map[ObjectKind]string{}}
}

// Resume takes a stored fact into the state, so that what was open before a restart is no change afterwards. At
// most one fact per object and aspect is expected, the latest.
func (t *Tracker) Resume(f Fact) {
	key := objectKey{f.Object.Kind, f.Object.UID}
	o := t.objects[key]
	if o == nil {
		o = &object{subject: f.Subject, namespace: f.Namespace, vmi: f.VMI}
		t.objects[key] = o
	}
	o.identify(f)
	o.set(f.What, f.Value)
	if o.rv == "" || NewerVersion(f.Object.ResourceVersion, o.rv) {
		o.rv = f.Object.ResourceVersion
	}
}

// identify fills in names that only some facts of an object carry.
func (o *object) identify(f Fact) {
	if f.VMIUID != "" {
		o.vmiUID = f.VMIUID
	}
	switch f.Object.Kind {
	case ObjectMigration:
		o.name = f.Migration
	case ObjectNode:
		o.name = f.Node
	case ObjectVMI:
		o.name = f.VMI
	case ObjectPod:
		if d, ok := f.Detail.(*PodDetail); ok {
			o.name = d.Pod
		}
	case ObjectKubeVirt, ObjectMigrationPolicy, ObjectKubeEvent, ObjectPolicy, ObjectSource, ObjectRequest, ObjectDescheduler, ObjectNodeLoad:
	}
}

// Held counts the objects remembered, per kind.
func (t *Tracker) Held() map[ObjectKind]int {
	n := map[ObjectKind]int{}
	for k := range t.objects {
		n[k.kind]++
	}
	return n
}

// State returns the facts that Resume reads: of each object and aspect the last that was recorded, in no order.
func (t *Tracker) State() iter.Seq[Fact] {
	return func(yield func(Fact) bool) {
		for key, o := range t.objects {
			if !key.kind.Remembered() {
				continue
			}
			for _, a := range o.state {
				f := Fact{
					Cluster: t.cluster, Kind: KindLauncherPod, Subject: o.subject, Object: Object{Kind: key.kind, UID: key.uid, ResourceVersion: o.rv}, What: a.what, Value: a.value,
					Namespace: o.namespace, VMI: o.vmi, VMIUID: o.vmiUID, Node: o.name, Migration: o.name, Detail: &PodDetail{Pod: o.name},
				}
				if !yield(f.State()) {
					return
				}
			}
		}
	}
}

// Observe returns the facts that an observation adds, in the order in which they should be read; none where it is
// older than what was seen before. The caller only stores them. Their times are plausible, see Fact.CorrectTimes.
func (t *Tracker) Observe(o Observation) []Fact {
	facts := append(t.shares.gaps(t.cluster, o.SeenAt()), t.observe(withPlausibleState(o))...)
	for i := range facts {
		facts[i].CorrectTimes()
	}
	return facts
}

func (t *Tracker) observe(o Observation) []Fact {
	switch o := o.(type) {
	case VMIObservation:
		return t.observeVMI(o)
	case PodObservation:
		return t.observePod(o)
	case MigrationObservation:
		return t.observeMigration(o)
	case NodeObservation:
		return t.observeNode(o)
	case KubeVirtObservation:
		return t.observeKubeVirt(o)
	case PolicyObservation:
		return t.observePolicy(o)
	case MigrationPolicyObservation:
		return t.observeMigrationPolicy(o)
	case KubeEventObservation:
		return t.observeKubeEvent(o)
	case ListObservation:
		return t.observeList(o)
	case RequestObservation:
		return t.observeRequest(o)
	case ScrapeObservation:
		return t.observeScrape(o)
	case LoadObservation:
		return t.observeLoad(o)
	case GapObservation:
		return o.Facts(t.cluster, o.At)
	}
	panic(fmt.Sprintf("observation of type %T: the Tracker does not know it", o))
}

// observeList closes the objects of a kind that a list no longer holds. An object that was recorded at a later
// version than the list's is newer than the list, and stays; one of an earlier epoch never is.
func (t *Tracker) observeList(l ListObservation) []Fact {
	l.ResourceVersion = t.epoch.Version(l.ResourceVersion)
	var gone []objectKey
	for key, o := range t.objects {
		if _, present := l.Present[key.uid]; key.kind != l.Kind || present || NewerVersion(o.rv, l.ResourceVersion) {
			continue
		}
		gone = append(gone, key)
	}
	sort.Slice(gone, func(i, j int) bool { return gone[i].uid < gone[j].uid })
	var facts []Fact
	for _, key := range gone {
		facts = append(facts, t.gone(key, Seen{At: l.At, Listed: true, Gone: true}, l.ResourceVersion)...)
		delete(t.objects, key)
	}
	return facts
}

// gone makes the fact that an object which was remembered exists no more.
func (t *Tracker) gone(key objectKey, seen Seen, rv string) []Fact {
	o := t.objects[key]
	r := recorder{t: t, object: o, id: Object{Kind: key.kind, UID: key.uid, ResourceVersion: rv}, seen: seen}
	switch key.kind {
	case ObjectVMI:
		r.vmiGone()
	case ObjectMigration:
		r.migrationGone()
	case ObjectPod:
		r.podGone()
	case ObjectNode:
		r.nodeGone()
	case ObjectMigrationPolicy:
		r.migrationPolicyGone()
	case ObjectKubeVirt, ObjectKubeEvent, ObjectPolicy, ObjectSource, ObjectRequest, ObjectDescheduler, ObjectNodeLoad:
	}
	return r.facts
}

// recorder collects the facts of one observation of one object.
type recorder struct {
	t      *Tracker
	object *object
	id     Object
	seen   Seen
	facts  []Fact

	crossed bool // it is the first sight of the object in this epoch, and it was recorded in an earlier one
}

// forget forgets what was recorded of the object in earlier epochs, where it went back behind something that happens once: it is recorded again.
func (r *recorder) forget() { r.object.state = nil }

// take begins an observation of an object: nil where it is older than what was taken before. One of the same version is compared: a
// deletion may carry the version of the last change, and what is remembered may come from several places, of which none knew all.
func (t *Tracker) take(kind ObjectKind, m Meta, seen Seen, subject Subject) *recorder {
	key := objectKey{kind, m.UID}
	m.ResourceVersion = t.epoch.Version(m.ResourceVersion)
	o, known := t.objects[key]
	if known && m.ResourceVersion != o.rv && !NewerVersion(m.ResourceVersion, o.rv) {
		if seen.Listed {
			t.noteOlder(kind, o.rv)
		}
		return nil
	}
	crossed := known && EpochOf(o.rv) < t.epoch
	if !known {
		o = &object{subject: subject, namespace: m.Namespace, name: m.Name}
		t.objects[key] = o
	}
	o.name = m.Name
	o.rv = m.ResourceVersion
	if seen.Gone {
		delete(t.objects, key)
	}
	return &recorder{t: t, object: o, id: Object{Kind: kind, UID: m.UID, ResourceVersion: m.ResourceVersion}, seen: seen, crossed: crossed}
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
func (r *recorder) change(kind Kind, reason Reason, what, value string) draft {
	return r.add(kind, reason, what, value, r.id.ResourceVersion)
}

// event is the fact of a thing that happens once to an object, and to one that is restored from a backup once in each epoch.
func (r *recorder) event(kind Kind, reason Reason, what, value string) draft {
	key := ""
	if what != whatCompleted {
		key = r.epochKey()
	}
	return r.add(kind, reason, what, value, key)
}

// dated is the fact of a change that the object itself dates: its natural key holds that time, so that the change is the same fact at whichever
// resourceVersion it is first seen. Without a time it is a change like others.
func (r *recorder) dated(kind Kind, reason Reason, what, value string, when timeOf) draft {
	if when.at.IsZero() {
		return r.change(kind, reason, what, value)
	}
	return r.add(kind, reason, what, value, r.epochKey()+"at/"+when.at.UTC().Format(time.RFC3339)).at(when)
}

// epochKey is the part of a natural key that tells what happened to an object that is restored from a backup in each epoch apart.
func (r *recorder) epochKey() string {
	if r.t.epoch == 0 || !r.id.Kind.isRestored() {
		return ""
	}
	return "epoch/" + strconv.FormatUint(uint64(r.t.epoch), 10)
}

// isRestored reports whether a restore of etcd brings such an object back to an earlier state that is recorded by its steps.
func (k ObjectKind) isRestored() bool {
	return k == ObjectVMI || k == ObjectMigration || k == ObjectPod || k == ObjectNode || k == ObjectMigrationPolicy
}

// goneReason is why an object exists no more.
func (r *recorder) goneReason() Reason {
	switch {
	case !r.seen.Listed:
		return ReasonDeleted
	case EpochOf(r.object.rv) < r.t.epoch:
		return ReasonNotRestored
	}
	return ReasonDeletedUnseen
}

// timeOf is a time with the clock that it was read from.
type timeOf struct {
	at    time.Time
	clock Clock
}

func (r *recorder) add(kind Kind, reason Reason, what, value, occurrence string) draft {
	f := Fact{
		Cluster:    r.t.cluster,
		Kind:       kind,
		Reason:     reason,
		Subject:    r.object.subject,
		Object:     r.id,
		What:       what,
		Value:      value,
		OccurredAt: r.seen.At.Truncate(TimeResolution),
		Clock:      ClockObserver,
		ObservedAt: r.seen.At.Truncate(TimeResolution),
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
type draft struct{ *Fact }

// at stamps a fact with a time of the cluster; without one it keeps our own.
func (f draft) at(when timeOf) draft {
	if !when.at.IsZero() {
		f.OccurredAt, f.Clock = when.at.UTC().Truncate(TimeResolution), when.clock
	}
	return f
}

// from names the field that says so.
func (f draft) from(evidence string) draft {
	f.Evidence = evidence
	return f
}

// with adds the typed detail.
func (f draft) with(d Detail) draft {
	f.Detail = d
	return f
}
