package tracker

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// KubeEventObservation is what is read of a Kubernetes Event (core/v1).
type KubeEventObservation struct {
	Seen
	Meta
	About     Involved
	Reason    string
	Message   string
	Type      string // Normal or Warning
	Component string
	Count     int64
	LastAt    time.Time // lastTimestamp, else eventTime
}

// Involved is the object that a Kubernetes Event is about.
type Involved struct {
	Kind      string
	Namespace string
	Name      string
	UID       string
}

// keptEvents are the Kubernetes Events that say what no object says (reference: kubevirt-signals §7), by the kind of
// their object and their reason.
var keptEvents = map[string]map[string]bool{
	"VirtualMachineInstance": {
		"MigrationBackoff": true, "FailedCreate": true, "NoSuitableNodesForHostModelMigration": true,
		"FailedMigration": true, "Migrated": true, "Migrating": true, "SyncFailed": true, "Stopped": true,
		"SuccessfulEvict": true, "FailedEvict": true, "SuccessfulChangeAbortion": true, "FailedChangeAbortion": true,
		"BackupAbortedForMigration": true, "BackupAbortFailed": true,
	},
	"VirtualMachineInstanceMigration": {
		"FailedMigration": true, "SuccessfulDelete": true, "FailedDelete": true, "FailedCreate": true,
		"migrationTargetPodUnschedulable": true, "UtilityVolumeMigrationPending": true, "FailedHandOver": true,
		"SuccessfulAbortMigration": true, "FailedAbortMigration": true,
		"BackupAbortedForMigration": true, "BackupAbortFailed": true,
	},
}

// EventReasons lists the reasons of the Kubernetes Events that are recorded, each once, in their order.
func EventReasons() []string {
	var reasons []string
	for _, kept := range keptEvents {
		reasons = slices.AppendSeq(reasons, maps.Keys(kept))
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// waitingLimit bounds the Events that wait for the VMIM that they are about, in bytes.
const waitingLimit = 2 << 20

// waitingEvents holds Events about VMIMs that were not seen yet: an Event names its VMIM but not the VMI, and the two watches have no common
// order. They are in memory only: after a restart the list of Events returns them, as long as they live. When there are too many, the first
// one of the namespace that has most is displaced, so that no namespace pushes out the Events of others.
type waitingEvents struct {
	events []KubeEventObservation // in the order of their arrival
	bytes  int                    // of all
	of     map[string]int         // bytes, by the namespace of the involved object; none is zero

	displaced uint64 // Events that were displaced so far
}

func (w *waitingEvents) add(o KubeEventObservation) {
	if w.of == nil {
		w.of = map[string]int{}
	}
	w.events = append(w.events, o)
	w.bytes += o.estimateSize()
	w.of[o.About.Namespace] += o.estimateSize()
}

// has reports whether an Event waits at this count.
func (w *waitingEvents) has(o KubeEventObservation) bool {
	return slices.ContainsFunc(w.events, func(e KubeEventObservation) bool { return e.UID == o.UID && e.Count == o.Count })
}

// removeMatching takes out the Events for which is holds, in the order of their arrival.
func (w *waitingEvents) removeMatching(is func(KubeEventObservation) bool) []KubeEventObservation {
	var out []KubeEventObservation
	w.events = slices.DeleteFunc(w.events, func(o KubeEventObservation) bool {
		if !is(o) {
			return false
		}
		out = append(out, o)
		w.bytes -= o.estimateSize()
		if w.of[o.About.Namespace] -= o.estimateSize(); w.of[o.About.Namespace] == 0 {
			delete(w.of, o.About.Namespace)
		}
		return true
	})
	return out
}

// removeFirst takes out the first Event of the namespace that holds most.
func (w *waitingEvents) removeFirst() KubeEventObservation {
	largest, most := "", 0
	for namespace, bytes := range w.of {
		if bytes > most || bytes == most && namespace < largest {
			largest, most = namespace, bytes
		}
	}
	found := false
	return w.removeMatching(func(o KubeEventObservation) bool {
		first := !found && o.About.Namespace == largest
		found = found || first
		return first
	})[0]
}

// estimateSize returns about how many bytes the observation takes in memory.
func (o *KubeEventObservation) estimateSize() int {
	const fields = 512
	return fields + len(o.UID) + len(o.Namespace) + len(o.Name) + len(o.Reason) + len(o.Message) + len(o.Type) + len(o.Component) +
		len(o.About.Kind) + len(o.About.Namespace) + len(o.About.Name) + len(o.About.UID)
}

func (t *Tracker) observeKubeEvent(o KubeEventObservation) []trail.Fact {
	if !keptEvents[o.About.Kind][o.Reason] {
		return nil
	}
	if o.Gone {
		facts := t.recordUnattributed(t.waiting.removeMatching(func(w KubeEventObservation) bool { return w.UID == o.UID }))
		delete(t.objects, objectKey{trail.ObjectKubeEvent, o.UID})
		return facts
	}
	if !t.isKnownEvent(o) && !t.shares.admitEvent(o.About.Namespace, o.At) {
		return nil
	}
	if o.About.Kind == string(trail.ObjectVMI) {
		return t.recordKubeEvent(o, trail.VMISubject(o.About.Namespace, o.About.Name), o.About.Name, o.About.UID)
	}
	if m := t.objects[objectKey{trail.ObjectMigration, o.About.UID}]; m != nil {
		return t.recordKubeEvent(o, m.subject, m.vmi, "")
	}
	return t.awaitMigration(o)
}

// isKnownEvent reports whether an Event was seen at this count before: it adds nothing, or waits already.
func (t *Tracker) isKnownEvent(o KubeEventObservation) bool {
	if e := t.objects[objectKey{trail.ObjectKubeEvent, o.UID}]; e != nil {
		count, _ := e.aspectValue("count")
		return count == strconv.FormatInt(o.Count, 10)
	}
	return t.waiting.has(o)
}

// awaitMigration has an Event wait for its VMIM, and returns the facts of those that it displaces.
func (t *Tracker) awaitMigration(o KubeEventObservation) []trail.Fact {
	if t.waiting.has(o) {
		return nil // a list returned it again
	}
	t.waiting.add(o)
	var facts []trail.Fact
	for t.waiting.bytes > waitingLimit {
		t.waiting.displaced++
		facts = append(facts, t.recordUnattributed([]KubeEventObservation{t.waiting.removeFirst()})...)
	}
	return facts
}

// DisplacedEvents counts the Kubernetes Events that were recorded without their VM because too many waited for migrations that were not seen.
func (t *Tracker) DisplacedEvents() uint64 { return t.waiting.displaced }

// recordUnattributed records Events whose VMIM was never seen under a subject of their own.
func (t *Tracker) recordUnattributed(events []KubeEventObservation) []trail.Fact {
	var facts []trail.Fact
	for _, o := range events {
		facts = append(facts, t.recordKubeEvent(o, trail.Subject{Kind: trail.SubjectUnknown, Name: o.About.Namespace + "/" + o.About.Name}, "", "")...)
	}
	return facts
}

// releaseWaiting returns the facts of the Events that waited for this VMIM.
func (t *Tracker) releaseWaiting(m MigrationObservation) []trail.Fact {
	var facts []trail.Fact
	for _, o := range t.waiting.removeMatching(func(o KubeEventObservation) bool { return o.About.UID == m.UID }) {
		facts = append(facts, t.recordKubeEvent(o, trail.VMISubject(m.Namespace, m.VMI), m.VMI, "")...)
	}
	return facts
}

// recordKubeEvent records a Kubernetes Event once for each count that it reached: repeated Events are updated in place, so
// it is the count that says something happened again.
func (t *Tracker) recordKubeEvent(o KubeEventObservation, subject trail.Subject, vmi, vmiUID string) []trail.Fact {
	r := t.openRecorder(trail.ObjectKubeEvent, o.Meta, o.Seen, subject)
	if r == nil || !r.changeAspect("count", strconv.FormatInt(o.Count, 10)) {
		return nil
	}
	r.object.namespace, r.object.vmi, r.object.vmiUID = o.About.Namespace, vmi, vmiUID
	f := r.recordOnce(trail.KindKubernetesEvent, trail.ReasonEmitted, "count", strconv.FormatInt(o.Count, 10)).
		withEvidence("Event " + o.Reason).withTime(clockTime{o.LastAt, trail.ClockEmitter})
	if o.About.Kind == string(trail.ObjectMigration) {
		f.Migration, f.MigrationUID = o.About.Name, o.About.UID
	}
	f.withDetail(&trail.KubeEventDetail{
		About: o.About.Kind, Name: o.About.Name, Reason: o.Reason, Message: o.Message, Type: o.Type,
		Component: o.Component, Count: o.Count,
	})
	return r.facts
}
