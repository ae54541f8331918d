package tracker

import (
	"fmt"
	"iter"
	"sort"

	"github.com/evictrail/evictrail/trail"
)

// Tracker turns observations into facts. It remembers, per object, only what its facts said: the state in which the
// object was last recorded. What an observation adds to that state are the new facts.
//
// It is not safe for concurrent use; the collector's goroutine owns it.
type Tracker struct {
	cluster string
	epoch   trail.Epoch
	objects map[objectKey]*object
	older   map[trail.ObjectKind]string // the highest version recorded of objects that the list under way shows at a lower one
	waiting waitingEvents
	shares  eventShares
}

type objectKey struct {
	kind trail.ObjectKind
	uid  string
}

// object is what is remembered of one object: about 150 bytes and 32 for each aspect.
type object struct {
	subject   trail.Subject
	namespace string
	name      string
	vmi       string
	vmiUID    string
	rv        string
	state     []aspect
}

type aspect struct{ what, value string }

func (o *object) aspectValue(what string) (string, bool) {
	for _, a := range o.state {
		if a.what == what {
			return a.value, true
		}
	}
	return "", false
}

func (o *object) setAspect(what, value string) {
	for i := range o.state {
		if o.state[i].what == what {
			o.state[i].value = value
			return
		}
	}
	o.state = append(o.state, aspect{what, value})
}

// New returns a Tracker of a cluster that knows nothing yet.
func New(cluster string) *Tracker {
	return &Tracker{cluster: cluster, objects: map[objectKey]*object{}, older: map[trail.ObjectKind]string{}}
}

// Resume remembers what a stored fact says, so that what was open before a restart is no change afterwards. At
// most one fact per object and aspect is expected, the latest.
func (t *Tracker) Resume(f trail.Fact) {
	key := objectKey{f.Object.Kind, f.Object.UID}
	o := t.objects[key]
	if o == nil {
		o = &object{subject: f.Subject, namespace: f.Namespace, vmi: f.VMI}
		t.objects[key] = o
	}
	o.fillNames(f)
	o.setAspect(f.What, f.Value)
	if o.rv == "" || trail.NewerVersion(f.Object.ResourceVersion, o.rv) {
		o.rv = f.Object.ResourceVersion
	}
}

// fillNames fills in names that only some facts of an object carry.
func (o *object) fillNames(f trail.Fact) {
	if f.VMIUID != "" {
		o.vmiUID = f.VMIUID
	}
	switch f.Object.Kind {
	case trail.ObjectMigration:
		o.name = f.Migration
	case trail.ObjectNode:
		o.name = f.Node
	case trail.ObjectVMI:
		o.name = f.VMI
	case trail.ObjectPod:
		if d, ok := f.Detail.(*trail.PodDetail); ok {
			o.name = d.Pod
		}
	case trail.ObjectKubeVirt, trail.ObjectMigrationPolicy, trail.ObjectEvictionRequest, trail.ObjectEviction, trail.ObjectKubeEvent, trail.ObjectPolicy,
		trail.ObjectSource, trail.ObjectRequest, trail.ObjectDescheduler, trail.ObjectNodeLoad:
	}
}

// Held counts the objects remembered, per kind.
func (t *Tracker) Held() map[trail.ObjectKind]int {
	n := map[trail.ObjectKind]int{}
	for k := range t.objects {
		n[k.kind]++
	}
	return n
}

// State returns the facts that Resume reads: of each object and aspect the last that was recorded, in no order.
func (t *Tracker) State() iter.Seq[trail.Fact] {
	return func(yield func(trail.Fact) bool) {
		for key, o := range t.objects {
			if !key.kind.Remembered() {
				continue
			}
			for _, a := range o.state {
				f := trail.Fact{
					Cluster: t.cluster, Kind: trail.KindLauncherPod, Subject: o.subject, Object: trail.Object{Kind: key.kind, UID: key.uid, ResourceVersion: o.rv}, What: a.what, Value: a.value,
					Namespace: o.namespace, VMI: o.vmi, VMIUID: o.vmiUID, Node: o.name, Migration: o.name, Detail: &trail.PodDetail{Pod: o.name},
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
func (t *Tracker) Observe(o Observation) []trail.Fact {
	facts := append(t.shares.reportGaps(t.cluster, o.SeenAt()), t.dispatchObservation(withPlausibleState(o))...)
	for i := range facts {
		facts[i].CorrectTimes()
	}
	return facts
}

func (t *Tracker) dispatchObservation(o Observation) []trail.Fact {
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
	case EvictionRequestObservation:
		return t.observeEvictionRequest(o)
	case EvictionObservation:
		return t.observeEviction(o)
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
	case TransferObservation:
		return t.observeTransfer(o)
	case GapObservation:
		return o.Facts(t.cluster, o.At)
	}
	panic(fmt.Sprintf("observation of type %T: the Tracker does not know it", o))
}

// observeList closes the objects of a kind that a list no longer holds. An object that was recorded at a later
// version than the list's is newer than the list, and stays; one of an earlier epoch never is.
func (t *Tracker) observeList(l ListObservation) []trail.Fact {
	l.ResourceVersion = t.epoch.Version(l.ResourceVersion)
	var gone []objectKey
	for key, o := range t.objects {
		if _, present := l.Present[key.uid]; key.kind != l.Kind || present || trail.NewerVersion(o.rv, l.ResourceVersion) {
			continue
		}
		gone = append(gone, key)
	}
	sort.Slice(gone, func(i, j int) bool { return gone[i].uid < gone[j].uid })
	var facts []trail.Fact
	for _, key := range gone {
		facts = append(facts, t.recordGone(key, Seen{At: l.At, Listed: true, Gone: true}, l.ResourceVersion)...)
		delete(t.objects, key)
	}
	return facts
}

// recordGone returns the facts that an object which was remembered exists no more.
func (t *Tracker) recordGone(key objectKey, seen Seen, rv string) []trail.Fact {
	o := t.objects[key]
	r := recorder{t: t, object: o, id: trail.Object{Kind: key.kind, UID: key.uid, ResourceVersion: rv}, seen: seen}
	switch key.kind {
	case trail.ObjectVMI:
		r.recordVMIGone()
	case trail.ObjectMigration:
		r.recordMigrationGone()
	case trail.ObjectPod:
		r.recordPodGone()
	case trail.ObjectNode:
		r.recordNodeGone()
	case trail.ObjectMigrationPolicy:
		r.recordMigrationPolicyGone()
	case trail.ObjectEvictionRequest:
		r.recordEvictionRequestGone()
	case trail.ObjectEviction:
		r.recordEvictionGone()
	case trail.ObjectKubeVirt, trail.ObjectKubeEvent, trail.ObjectPolicy, trail.ObjectSource, trail.ObjectRequest, trail.ObjectDescheduler, trail.ObjectNodeLoad:
	}
	return r.facts
}
