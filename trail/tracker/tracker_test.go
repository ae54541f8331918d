package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// day is the day on which what the tests observe happens.
var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// newResumedTracker returns a tracker that remembers what facts say, the latest of them last.
func newResumedTracker(facts []trail.Fact) *Tracker {
	tr := New("test")
	for _, f := range facts {
		tr.Resume(f)
	}
	return tr
}

// everyKind returns observations of every sort, and more than once of some.
func everyKind(at time.Time) []Observation {
	meta := func(uid, name, rv string) Meta {
		return Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: rv, CreatedAt: at.Add(-time.Hour)}
	}
	seen := Seen{At: at.Add(123456 * time.Nanosecond), Listed: true}
	limit := int64(5)
	state := &MigrationState{UID: "m", SourceNode: "worker-1", TargetNode: "worker-2", StartedAt: at, EndedAt: at.Add(time.Second), Failed: true, FailureReason: "gone \x00 \u2028"}
	return []Observation{
		VMIObservation{
			Seen: seen, Meta: meta("v", "db", "10"), Node: "worker-1", Mark: "worker-1", EvictionSource: "descheduler", Strategy: "LiveMigrate", State: state,
			Conditions: []Condition{{Type: "LiveMigratable", Status: "False", Reason: "DisksNotLiveMigratable", Message: "no", ChangedAt: at}},
		},
		VMIObservation{Seen: Seen{At: at}, Meta: meta("v", "db", "12"), Node: "worker-2"},
		PodObservation{Seen: seen, Meta: meta("p", "virt-launcher-db", "11"), VMI: "db", VMIUID: "v", Node: "worker-1", HasInProgress: true, PreferNoEviction: true},
		MigrationObservation{
			Seen: seen, Meta: meta("m", "mig", "13"), VMI: "db", Phase: "Failed", PhaseTimes: []trail.PhaseTime{{Phase: "Pending", At: at}, {Phase: "Failed", At: at}}, State: state,
			NodeSelector: map[string]string{"a": "b"}, Conditions: []Condition{{Type: "x", Status: "True"}},
		},
		NodeObservation{Seen: seen, Meta: meta("n", "worker-1", "14"), Unschedulable: true, Taints: []Taint{{Key: "kubevirt.io/drain", Effect: "NoSchedule"}}, Ready: &Condition{Status: "Unknown", Reason: "NodeStatusUnknown", ChangedAt: at}},
		KubeVirtObservation{Seen: seen, Meta: meta("k", "kubevirt", "15"), Settings: trail.KubeVirtSettings{Version: "v1.8.0", ParallelPerCluster: &limit}},
		PolicyObservation{Seen: seen, Meta: meta("d", "policy", "16"), Text: "profiles:", Settings: &trail.DeschedulerSettings{Cooldown: &trail.CooldownSettings{Base: time.Minute}}},
		KubeEventObservation{Seen: seen, Meta: meta("e", "event", "17"), Reason: "Migrated", About: Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: "db", UID: "v"}, Count: 3, LastAt: at},
		RequestObservation{Seen: seen, Source: trail.SourceAudit, ID: "a", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-db", AskedAt: at, Detail: trail.RequestDetail{User: "ada", Code: 429}},
		ScrapeObservation{Seen: seen, Target: "descheduler", StartedAt: at.Add(-time.Hour), Blocks: []BlockCount{{Reason: "cooldown", Node: "worker-1", Namespace: "shop", Count: 3}}},
		GapObservation{Seen: seen, GapReport: trail.GapReport{Source: "pods", Key: "9", OpenedAt: at, ClosedAt: at.Add(time.Second), Cause: trail.ReasonExpired}},
	}
}

// TestFactsAreReadAsTheyWereWritten writes facts of every sort.
func TestFactsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	tr := New("c1")
	kinds := map[trail.Kind]bool{}
	for _, o := range everyKind(at) {
		for _, f := range tr.Observe(o) {
			kinds[f.Kind] = true
			text, err := trail.WriteFact(f)
			require.NoError(t, err)
			back, err := trail.ReadFact("c1", text)
			require.NoError(t, err)
			require.Equal(t, f, back, "%s", text)
			require.NotEmpty(t, f.Source())
		}
	}
	require.Greater(t, len(kinds), 15)
}

// TestStateOfATrackerIsWhatItResumes wants one that is made of the state of another to find nothing new, as the other does.
func TestStateOfATrackerIsWhatItResumes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	first, byFacts := New("c1"), New("c1")
	for _, o := range everyKind(at) {
		for _, f := range first.Observe(o) {
			if f.Object.Kind.Remembered() {
				byFacts.Resume(f)
			}
		}
	}
	byState := New("c1")
	for f := range first.State() {
		byState.Resume(f)
	}
	for i, again := range everyKind(at) {
		switch again.(type) {
		case KubeEventObservation, RequestObservation, GapObservation:
			continue // they carry in their identity what they say
		case VMIObservation:
			if i == 0 {
				continue // it is older
			}
		}
		for _, f := range first.Observe(again) {
			require.Fail(t, "recorded again from the same", "%s %s %s", f.Kind, f.What, f.Value)
		}
	}
	for name, other := range map[string]*Tracker{"facts": byFacts, "state": byState} {
		list := ListObservation{Seen: Seen{At: at, Listed: true}, ResourceVersion: "100"}
		for _, kind := range []trail.ObjectKind{trail.ObjectVMI, trail.ObjectPod, trail.ObjectMigration, trail.ObjectNode} {
			list.Kind = kind
			var want, got []trail.FactID
			again := New("c1")
			for f := range first.State() {
				again.Resume(f)
			}
			for _, f := range again.Observe(list) {
				want = append(want, f.ID)
			}
			for _, f := range other.Observe(list) {
				got = append(got, f.ID)
			}
			require.NotEmpty(t, want)
			require.Equal(t, want, got, "%s of %s", kind, name)
		}
	}
}

// TestTheSameVersionIsCompared wants an object to be compared with what is remembered, also where another fact of the same version is
// remembered already: the two may come from different places.
func TestTheSameVersionIsCompared(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	meta := Meta{UID: "v", Namespace: "shop", Name: "db", ResourceVersion: "20"}
	vmi := func(t *Tracker, mark string) []trail.Fact {
		return t.Observe(VMIObservation{Seen: Seen{At: at, Listed: true}, Meta: meta, Node: "worker-1", Mark: mark})
	}
	before := New("c1")
	meta.ResourceVersion = "10"
	marked := vmi(before, "worker-1")
	meta.ResourceVersion = "20"
	blank := vmi(New("c1"), "") // knew nothing of the mark
	both := New("c1")
	for _, f := range append(marked, blank...) {
		both.Resume(f)
	}
	cleared := vmi(both, "")
	require.Len(t, cleared, 1)
	require.Equal(t, trail.KindEvacuationUnmarked, cleared[0].Kind)
	require.Empty(t, vmi(both, ""))
}

// TestAnUnknownObservationIsNotDropped observes something that only looks like an observation.
func TestAnUnknownObservationIsNotDropped(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "observation of type tracker.Seen: the Tracker does not know it", func() { New("c1").Observe(Seen{At: day}) })
}
