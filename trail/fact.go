package trail

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// FactID identifies a fact for ever: the first 16 bytes of a SHA-256 over its natural key, marked as a UUID of
// version 8 (RFC 9562). The same fact, seen by another replica or after a restart, has the same ID.
type FactID [16]byte

// String returns the ID in UUID notation.
func (id FactID) String() string {
	h := hex.EncodeToString(id[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// MarshalText returns the ID in UUID notation.
func (id FactID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads UUID notation.
func (id *FactID) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(text), "-", ""))
	if err != nil || len(raw) != len(id) {
		return fmt.Errorf("fact ID %q: expected a UUID", text)
	}
	copy(id[:], raw)
	return nil
}

// hashID hashes the parts of a natural key, each preceded by its length so that no two keys collide by joining.
func hashID(parts ...string) FactID {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	var id FactID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// NaturalID returns the ID of the fact: that of its cluster, kind, object, aspect and value. A thing that can happen again has more in its key, which distinguishes it
// from the same at another time: the resourceVersion at which it showed, a time that the object names, or the epoch; it is empty for what happens once.
func (f *Fact) NaturalID(occurrence string) FactID {
	return hashID(f.Cluster, string(f.Kind), string(f.Object.Kind), f.Object.UID, f.What, f.Value, occurrence)
}

// Digest returns a short name for a content, equal for equal contents: 12 hexadecimal digits and a hyphen.
func Digest(text string) string { return hashID(text).String()[:13] }

// formatTime writes a time as keys of identities have it.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeResolution is that of the times of facts: what Postgres keeps, so that a fact read back is the fact that was stored.
const TimeResolution = time.Microsecond

// Clock says whose clock stamped Fact.OccurredAt. Clocks of different owners must not be compared below a second.
type Clock string

// The clocks of a cluster (reference: kubevirt-signals §10.7).
const (
	ClockAPIServer      Clock = "apiserver"       // creationTimestamp, deletionTimestamp: 1 s resolution; audit events: 1 µs
	ClockVirtController Clock = "virt_controller" // phaseTransitionTimestamps, condition times; 1 s resolution
	ClockSourceNode     Clock = "source_node"     // migrationState start and end; 1 s resolution
	ClockEmitter        Clock = "emitter"         // who emitted a Kubernetes Event, set a node's condition or taint (1 s resolution), or reports about itself in its metrics
	ClockObserver       Clock = "observer"        // ours: the object carries no time for this change
)

// ObjectKind names the sort of object that an observation or fact is about.
type ObjectKind string

// The kinds of objects observed.
const (
	ObjectVMI             ObjectKind = "VirtualMachineInstance"
	ObjectMigration       ObjectKind = "VirtualMachineInstanceMigration"
	ObjectPod             ObjectKind = "Pod"
	ObjectNode            ObjectKind = "Node"
	ObjectKubeVirt        ObjectKind = "KubeVirt"
	ObjectKubeEvent       ObjectKind = "Event"
	ObjectPolicy          ObjectKind = "DeschedulerPolicy"
	ObjectMigrationPolicy ObjectKind = "MigrationPolicy"
	ObjectEvictionRequest ObjectKind = "EvictionRequest" // of lifecycle.k8s.io: a requester wants a pod evicted
	ObjectEviction        ObjectKind = "Eviction"        // of lifecycle.k8s.io: how the eviction of a pod goes that requesters want
	ObjectSource          ObjectKind = "Source"          // one of our own sources: a watch, or evictrail itself
	ObjectRequest         ObjectKind = "Request"         // a call of the API server
	ObjectDescheduler     ObjectKind = "Descheduler"     // a descheduler whose metrics are scraped
	ObjectNodeLoad        ObjectKind = "NodeLoad"        // the load of the nodes of a migration, by whose UID it goes
)

// Remembered reports whether the state of such objects outlives a restart: the facts of the others carry in their identity what they say.
func (k ObjectKind) Remembered() bool {
	return k != ObjectKubeEvent && k != ObjectSource && k != ObjectRequest && k != ObjectNodeLoad
}

// The aspects of objects (Fact.What) that facts are derived by. The others are names that the Tracker alone has to know again.
const (
	WhatLabels = "labels" // a node: its place, type and pool
	WhatGone   = "gone"   // every kind of object: it exists no more
	WhatCordon = "cordon" // of a node; its value is "true" while it is unschedulable
	WhatTaint  = "taint/" // of a node, and the key of the taint, a colon and its effect
)

// EffectNoSchedule is the effect that KubeVirt's drain taint carries.
const EffectNoSchedule = "NoSchedule"

// Object is the object on which a fact showed.
type Object struct {
	Kind            ObjectKind
	UID             string // for a Source and a Descheduler: its name; for a NodeLoad: that of the migration; for a Request: who saw it, a colon, and the ID that the API server assigned
	ResourceVersion string // at which the change showed; empty for a Source, a NodeLoad and a Request; for a Descheduler the time of the scrape, in microseconds of Unix
}

// factShare is about how many bytes a fact takes beside its texts: its fixed fields, and a detail of common size.
const factShare = 640

// Size returns about how many bytes the fact takes in memory.
func (f *Fact) Size() int {
	return factShare + len(f.Subject.Name) + len(f.Object.UID) + len(f.What) + len(f.Value) + len(f.VMIUID) + len(f.Migration) +
		len(f.MigrationUID) + len(f.Evidence) + detailSize(f.Detail)
}

// detailSize returns the bytes of the texts of a detail that can be long.
func detailSize(d Detail) int {
	switch d := d.(type) {
	case *KubeEventDetail:
		return len(d.Name) + len(d.Message) + len(d.Component)
	case *ConditionDetail:
		return len(d.Message)
	case *ResponderDetail:
		return len(d.Responder) + len(d.Message)
	case *PodDetail:
		return len(d.Message)
	case *ResultDetail:
		return len(d.FailureReason)
	case *RequestDetail:
		return len(d.User) + len(d.Agent) + len(d.Message) + len(d.StatedReason)
	case *ConfigDetail:
		return len(d.Policy)
	}
	return 0
}

// Fact is one thing that was seen: stored once, never changed, without links to other facts.
//
// What and Value are the natural key in the open: What names the aspect of the object ("mark", "phase/Running"),
// Value what it became. Folding the facts of an object by What yields the state in which it was last recorded; that is
// how a restart resumes.
type Fact struct {
	ID         FactID
	Cluster    string
	Kind       Kind
	Reason     Reason
	Subject    Subject
	Object     Object
	What       string
	Value      string
	OccurredAt time.Time // the cluster's time of the change, UTC; Clock says which
	Clock      Clock
	ObservedAt time.Time // our time of the first sight, UTC
	Late       bool      // it came from a list: the change may be older than its sight

	Namespace    string
	VMI          string
	VMIUID       string // empty where the object names its VMI by name only
	Node         string
	Migration    string
	MigrationUID string

	Evidence string // the field of the object that says so
	Detail   Detail // typed per kind; nil where the kind has none
}

// State returns of a fact what a Tracker resumes by: which object it is, and the aspect that was recorded.
func (f Fact) State() Fact {
	s := Fact{
		Cluster: f.Cluster, Subject: f.Subject, Object: f.Object, What: f.What, Value: f.Value, Namespace: f.Namespace, VMI: f.VMI, VMIUID: f.VMIUID,
	}
	switch f.Object.Kind {
	case ObjectMigration:
		s.Migration = f.Migration
	case ObjectNode:
		s.Node = f.Node
	case ObjectPod:
		if d, ok := f.Detail.(*PodDetail); ok {
			s.Kind, s.Detail = f.Kind, &PodDetail{Pod: d.Pod}
		}
	case ObjectVMI, ObjectKubeVirt, ObjectMigrationPolicy, ObjectEvictionRequest, ObjectEviction, ObjectKubeEvent, ObjectPolicy, ObjectSource, ObjectRequest, ObjectDescheduler, ObjectNodeLoad:
	}
	return s
}

// Since returns from when on a fact is about a VM: it may say when that began which it shows. Zero where a list showed it, as the time is unknown.
func (f *Fact) Since() time.Time {
	if f.Late && f.Object.Kind != ObjectRequest { // a request bears its own time, however late it comes
		return time.Time{}
	}
	since := f.OccurredAt
	back := func(times ...time.Time) {
		for _, t := range times {
			if !t.IsZero() && t.Before(since) {
				since = t
			}
		}
	}
	switch d := f.Detail.(type) {
	case *VMIDetail:
		if back(d.MigrationEnd); f.Reason == ReasonFound || f.Reason == ReasonStarted {
			back(d.CreatedAt)
		}
	case *ResultDetail:
		back(d.StartedAt, d.EndedAt)
	default:
	}
	return since
}

// Detail is what a fact of its kind knows beyond the common columns. Each type is stored as a JSON object.
type Detail interface{ isDetail() }

// DecodeDetail reads the stored JSON of a fact of this kind by a function such as json.Unmarshal. Empty input returns nil.
func DecodeDetail(kind Kind, raw []byte, unmarshal func([]byte, any) error) (Detail, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := newDetail(kind)
	if d == nil {
		return nil, fmt.Errorf("decode detail of %s: this kind has none", kind)
	}
	if err := unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("decode detail of %s: %w", kind, err)
	}
	return d, nil
}

// newDetail returns an empty detail for the kind, nil where the kind has none.
func newDetail(kind Kind) Detail {
	switch kind {
	case KindEvacuationMarked, KindEvacuationUnmarked:
		return &MarkDetail{}
	case KindMigrationSeen:
		return &SeenDetail{}
	case KindMigrationResult, KindMigrationCompleted:
		return &ResultDetail{}
	case KindMigrationDeletionAsked, KindMigrationGone:
		return &EndDetail{}
	case KindMigrationCondition, KindVMICondition, KindNodeNotReady, KindNodeReady, KindEvictionCondition:
		return &ConditionDetail{}
	case KindVMIPlaced, KindVMIDeletionAsked, KindVMIEnded:
		return &VMIDetail{}
	case KindLauncherPod:
		return &PodDetail{}
	case KindKubernetesEvent:
		return &KubeEventDetail{}
	case KindConfigSeen:
		return &ConfigDetail{}
	case KindEvictionRequested, KindActionRequested:
		return &RequestDetail{}
	case KindEvictionIntent:
		return &IntentDetail{}
	case KindEvictionProgress:
		return &ResponderDetail{}
	case KindGapOpened, KindGapClosed:
		return &GapDetail{}
	case KindBlocksObserved:
		return &BlocksDetail{}
	case KindDeschedulerStarted:
		return &DeschedulerDetail{}
	case KindNodeLoad:
		return &LoadDetail{}
	case KindMigrationTransfer:
		return &TransferDetail{}
	case KindNodeLabels:
		return &LabelsDetail{}
	case KindAnnotationSet, KindAnnotationCleared, KindMigrationPhase, KindLauncherOutdated, KindLauncherCurrent,
		KindNodeCordoned, KindNodeUncordoned, KindNodeTainted, KindNodeUntainted, KindNodeGone,
		KindCooldownDecided, KindLoopOpened, KindLoopClosed, KindDrainStarted, KindDrainEnded:
		return nil
	}
	return nil
}

// SubjectKind says what sort of thing is derived as one.
type SubjectKind string

// The kinds of subjects.
const (
	SubjectVMI       SubjectKind = "vmi"       // a namespace and a VMI name, over all VMI objects that bore it
	SubjectNode      SubjectKind = "node"      // a node name
	SubjectPod       SubjectKind = "pod"       // a namespace and a pod name: the requests about a pod, which name no VMI
	SubjectNamespace SubjectKind = "namespace" // a namespace: the requests about its migrations, which name no VMI either
	SubjectConfig    SubjectKind = "config"    // the rules in force
	SubjectSource    SubjectKind = "source"    // one of our own sources
	SubjectCluster   SubjectKind = "cluster"   // the cluster as a whole: it has no facts of its own
	SubjectUnknown   SubjectKind = "unknown"   // an object whose VMI was never seen
)

// Subject is what a fact belongs to and what is derived again when it arrives. A migration names its VMI by name
// only, so the subject of a VM is its name; VMI UIDs are distinguished when deriving.
type Subject struct {
	Kind SubjectKind
	Name string // "namespace/name" for a VMI and a pod, else the name
}

// VMISubject is the subject of a VMI's name.
func VMISubject(namespace, name string) Subject {
	return Subject{SubjectVMI, namespace + "/" + name}
}

// VM returns the namespace and the name of a VMI or a pod.
func (s Subject) VM() (namespace, name string) {
	namespace, name, _ = strings.Cut(s.Name, "/")
	return namespace, name
}

// String returns the subject as it is stored: kind, colon, name.
func (s Subject) String() string { return string(s.Kind) + ":" + s.Name }

// ParseSubject reads what String wrote.
func ParseSubject(text string) (Subject, error) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return Subject{}, fmt.Errorf("subject %q: expected kind:name", text)
	}
	return Subject{SubjectKind(kind), name}, nil
}

// Recorded is a fact as it lies in the database.
type Recorded struct {
	Fact
	StoredAt time.Time // UTC, by the database's clock
}
