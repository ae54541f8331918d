package tracker

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Observation is one thing that a collector saw: an object (VMIObservation, PodObservation, MigrationObservation,
// NodeObservation, KubeVirtObservation, MigrationPolicyObservation, PolicyObservation, KubeEventObservation, EvictionRequestObservation,
// EvictionObservation), a call of the API server (RequestObservation), the metrics of the descheduler (ScrapeObservation), how loaded the nodes of a migration were
// (LoadObservation), the end of a list (ListObservation) or a hole in what it can see (GapObservation).
type Observation interface{ SeenAt() time.Time }

// Seen says how and when an observation reached us.
type Seen struct {
	At     time.Time // our clock, UTC
	Listed bool      // from a list, not from a live watch: what changed may have changed long before
	Gone   bool      // the object was deleted; what is said of it is its last state
}

// SeenAt returns when the observation reached us, by our clock, UTC.
func (s Seen) SeenAt() time.Time { return s.At }

// Meta is what every Kubernetes object says of itself.
type Meta struct {
	UID             string
	Namespace       string
	Name            string
	ResourceVersion string
	CreatedAt       time.Time
	DeletionAt      time.Time // zero while nobody asked for the deletion
}

// Condition is one entry of an object's status.conditions.
type Condition struct {
	Type      string
	Status    string
	Reason    string
	Message   string
	ChangedAt time.Time // lastTransitionTime; zero on VMIMs and on LiveMigratable, where KubeVirt leaves it out
}

// MigrationState is status.migrationState of a VMI, or its copy on the VMIM that it belongs to. It speaks of the
// migration UID that it names, which on a VMI may be an earlier one.
//
// Source: kubevirt staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineInstanceMigrationState.
type MigrationState struct {
	UID                     string
	SourceNode              string
	TargetNode              string
	SourcePod               string
	TargetPod               string
	StartedAt               time.Time
	EndedAt                 time.Time
	Mode                    string
	Completed               bool // true on failures too: read Failed first
	Failed                  bool
	FailureReason           string
	AbortRequested          bool
	AbortStatus             string
	Policy                  string
	CompletionTimeoutPerGiB int64 // seconds; zero where the effective configuration does not say
	ProgressTimeout         int64 // seconds; zero where the effective configuration does not say
	GuestMemory             int64 // bytes; zero where the object does not say: VMIMs do not
	AllowAutoConverge       bool  // as the effective configuration says
	AllowPostCopy           bool  // as the effective configuration says
}

// ListObservation closes a list: every object of the kind that exists at ResourceVersion was observed just before.
type ListObservation struct {
	Seen
	Kind            trail.ObjectKind
	ResourceVersion string
	Present         map[string]struct{} // the UIDs that were in the list
}

// GapObservation reports a hole in what a source could see.
type GapObservation struct {
	Seen
	trail.GapReport
}

// withPlausibleState returns an observation whose migration state has plausible times, others being zero: what of a state is new is decided by its text, and
// not each time has one.
func withPlausibleState(o Observation) Observation {
	switch o := o.(type) {
	case VMIObservation:
		o.State = o.State.dropImplausibleTimes(o.At)
		return o
	case MigrationObservation:
		o.State = o.State.dropImplausibleTimes(o.At)
		return o
	}
	return o
}

func (s *MigrationState) dropImplausibleTimes(seen time.Time) *MigrationState {
	if s == nil {
		return nil
	}
	out := *s
	trail.ClearImplausible(seen, &out.StartedAt, &out.EndedAt)
	return &out
}

func findCondition(conditions []Condition, typ string) (Condition, bool) {
	for _, c := range conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return Condition{Type: typ}, false
}
