package trail

import (
	"strconv"
	"time"
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

// KubeEventDetail is a Kubernetes Event as it came.
type KubeEventDetail struct {
	About     string `json:"about"` // kind of the involved object
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	Type      string `json:"type,omitempty"`
	Component string `json:"component,omitempty"`
	Count     int64  `json:"count"`
}

func (*KubeEventDetail) detail() {}

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

// waitingLimit bounds the Events that wait for the VMIM that they speak of.
const waitingLimit = 1000

// waitingEvents holds Events about VMIMs that were not seen yet: an Event names its VMIM but not the VMI, and the
// two watches have no common order. What waits longest gives way when there are too many, under a subject of its own.
type waitingEvents struct {
	events []KubeEventObservation
}

func (t *Tracker) observeKubeEvent(o KubeEventObservation) []Fact {
	if !keptEvents[o.About.Kind][o.Reason] || o.Gone {
		delete(t.objects, objectKey{ObjectKubeEvent, o.UID})
		return nil
	}
	if o.About.Kind == string(ObjectVMI) {
		return t.kubeEvent(o, VMISubject(o.About.Namespace, o.About.Name), o.About.Name, o.About.UID)
	}
	if m := t.objects[objectKey{ObjectMigration, o.About.UID}]; m != nil {
		return t.kubeEvent(o, m.subject, m.vmi, "")
	}
	return t.await(o)
}

func (t *Tracker) await(o KubeEventObservation) []Fact {
	t.waiting.events = append(t.waiting.events, o)
	if len(t.waiting.events) <= waitingLimit {
		return nil
	}
	oldest := t.waiting.events[0]
	t.waiting.events = append(t.waiting.events[:0:0], t.waiting.events[1:]...)
	return t.kubeEvent(oldest, Subject{SubjectUnknown, oldest.About.Namespace + "/" + oldest.About.Name}, "", "")
}

// released gives the facts of the Events that waited for this VMIM.
func (t *Tracker) released(m MigrationObservation) []Fact {
	var facts []Fact
	still := t.waiting.events[:0]
	for _, o := range t.waiting.events {
		if o.About.UID != m.UID {
			still = append(still, o)
			continue
		}
		facts = append(facts, t.kubeEvent(o, VMISubject(m.Namespace, m.VMI), m.VMI, "")...)
	}
	t.waiting.events = still
	return facts
}

// kubeEvent records a Kubernetes Event once for each count that it reached: repeated Events are updated in place, so
// it is the count that says something happened again.
func (t *Tracker) kubeEvent(o KubeEventObservation, subject Subject, vmi, vmiUID string) []Fact {
	r := t.take(ObjectKubeEvent, o.Meta, o.Seen, subject)
	if r == nil || !r.became("count", strconv.FormatInt(o.Count, 10)) {
		return nil
	}
	r.object.namespace, r.object.vmi, r.object.vmiUID = o.About.Namespace, vmi, vmiUID
	f := r.event(KindKubernetesEvent, ReasonEmitted, "count", strconv.FormatInt(o.Count, 10)).
		from("Event " + o.Reason).at(timeOf{o.LastAt, ClockEmitter})
	if o.About.Kind == string(ObjectMigration) {
		f.Migration, f.MigrationUID = o.About.Name, o.About.UID
	}
	f.with(&KubeEventDetail{
		About: o.About.Kind, Name: o.About.Name, Reason: o.Reason, Message: o.Message, Type: o.Type,
		Component: o.Component, Count: o.Count,
	})
	return r.facts
}
