package read_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// minutes is a history of one cluster, written by its minutes.
type minutes struct {
	tracker *tracker.Tracker
	facts   []trail.Fact
	rv      int
}

func newMinutes() *minutes { return &minutes{tracker: tracker.New("c1"), rv: 100} }

func (m *minutes) addObservation(o tracker.Observation) {
	m.facts = append(m.facts, m.tracker.Observe(o)...)
}

func (m *minutes) nextMeta(uid, name string) tracker.Meta {
	m.rv++
	return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(m.rv), CreatedAt: start}
}

func timeAtMinute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func (m *minutes) kubeVirt(at int, version string) {
	m.addObservation(tracker.KubeVirtObservation{Seen: tracker.Seen{At: timeAtMinute(at)}, Meta: m.nextMeta("kv", "kubevirt"), Settings: trail.KubeVirtSettings{Version: version}})
}

func (m *minutes) observeVM(at int, name, mark string) {
	m.addObservation(tracker.VMIObservation{
		Seen: tracker.Seen{At: timeAtMinute(at)}, Meta: m.nextMeta("uid-"+name, name), Node: "n1", Phase: "Running", Strategy: "LiveMigrate", Mark: mark,
	})
}

func (m *minutes) observeRequest(at int, pod string) {
	m.addObservation(tracker.RequestObservation{
		Seen: tracker.Seen{At: timeAtMinute(at)}, Source: trail.SourceAudit, ID: fmt.Sprintf("%s-%d", pod, at), Stage: "ResponseComplete", Action: trail.ActionEvict,
		Namespace: "shop", Name: pod, AskedAt: timeAtMinute(at), Detail: trail.RequestDetail{User: "alice", AnsweredAt: timeAtMinute(at), Code: 500, Message: "timeout"},
	})
}

func (m *minutes) observeGap(from, to int) {
	m.addObservation(tracker.GapObservation{
		Seen:      tracker.Seen{At: timeAtMinute(to)},
		GapReport: trail.GapReport{Source: "nodes", Key: fmt.Sprint(from), OpenedAt: timeAtMinute(from), ClosedAt: timeAtMinute(to), Cause: trail.ReasonRelisted},
	})
}

// TestSettingsThatComeLate stores settings after the requests and evacuations that they were in force for: each names the same as where they were there
// first, also requests that marked nothing and those about pods that were never seen.
func TestSettingsThatComeLate(t *testing.T) {
	t.Parallel()
	h := newMinutes()
	h.observeVM(1, "db", "")
	h.addObservation(tracker.PodObservation{
		Seen: tracker.Seen{At: timeAtMinute(1)}, Meta: h.nextMeta("p1", "virt-launcher-db"), VMI: "db", VMIUID: "uid-db", Node: "n1", Phase: "Running",
	})
	for _, at := range []int{2, 12, 22, 32} {
		h.observeRequest(at, "virt-launcher-db")
		h.observeRequest(at, "virt-launcher-unknown")
	}
	h.observeVM(15, "db", "n1")
	acts := len(h.facts)
	h.kubeVirt(10, "v1.6.0")
	h.kubeVirt(20, "v1.8.4")
	policy := tracker.MigrationPolicyObservation{Seen: tracker.Seen{At: timeAtMinute(25), Listed: true}, Meta: h.nextMeta("mp", "slow")}
	policy.CreatedAt = timeAtMinute(11)
	h.addObservation(policy)
	policy.Seen = tracker.Seen{At: timeAtMinute(30), Gone: true}
	h.addObservation(policy)
	require.Len(t, h.facts[acts:], 4)
	want := storetest.DumpOf(t, "c1", h.facts)

	for name, order := range map[string][]trail.Fact{"in their order": h.facts[acts:], "the last first": reverseFacts(h.facts[acts:])} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			_, err := s.Append(t.Context(), "c1", h.facts[:acts])
			require.NoError(t, err)
			for _, f := range order {
				_, err := s.Append(t.Context(), "c1", []trail.Fact{f})
				require.NoError(t, err)
			}
			got := storetest.Dump(t, s)
			require.Equal(t, want["eviction_requests"], got["eviction_requests"])
			require.Equal(t, want["evacuations"], got["evacuations"])
			require.Len(t, got["eviction_requests"], 9)

			all, err := s.Settings(t.Context(), trail.SettingsQuery{})
			require.NoError(t, err)
			require.Len(t, all, 1, "those in force")
			require.Equal(t, "v1.8.4", all[0].KubeVirt.Version)
			then, err := s.Settings(t.Context(), trail.SettingsQuery{Cluster: "c1", At: timeAtMinute(12)})
			require.NoError(t, err)
			require.Len(t, then, 1)
			require.Equal(t, "slow", then[0].MigrationPolicies[0].Name)
			again, err := s.Settings(t.Context(), trail.SettingsQuery{Fingerprint: then[0].Policy})
			require.NoError(t, err)
			require.Equal(t, then, again)
			hidden, err := s.SeenBy(trail.Only("c1", "shop")).Settings(t.Context(), trail.SettingsQuery{})
			require.NoError(t, err)
			require.Empty(t, hidden, "they are the cluster's")
		})
	}
}

func reverseFacts(facts []trail.Fact) []trail.Fact {
	facts = slices.Clone(facts)
	slices.Reverse(facts)
	return facts
}

// TestAnswersNameGaps asks about an evacuation that has been open for five hours, and about a VM that never moved: gaps since what is shown began
// are named, those before are not; where nothing is shown of the past, those of the last hour.
func TestAnswersNameGaps(t *testing.T) {
	t.Parallel()
	h := newMinutes()
	h.kubeVirt(0, "v1.8.4")
	h.observeVM(1, "db", "")
	h.observeGap(2, 3)
	h.observeVM(10, "db", "n1")
	h.observeVM(12, "web", "")
	h.observeGap(20, 25)
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", h.facts)
	require.NoError(t, err)
	at := timeAtMinute(300)
	err = s.For("c1", "a").Alive(t.Context(), at, nil)
	require.NoError(t, err)

	named := func(gaps []trail.Gap) []time.Time {
		var out []time.Time
		for _, g := range gaps {
			out = append(out, g.OpenedAt.UTC())
		}
		return out
	}
	ask := func(of trail.Subject) trail.Question { return trail.Question{Cluster: "c1", Of: of, At: at} }
	why, err := s.Why(t.Context(), ask(trail.VMISubject("shop", "db")))
	require.NoError(t, err)
	require.Equal(t, []time.Time{timeAtMinute(20)}, named(why.NotObserved))
	not, err := s.WhyNot(t.Context(), ask(trail.VMISubject("shop", "db")))
	require.NoError(t, err)
	require.Equal(t, []time.Time{timeAtMinute(20)}, named(not.NotObserved), "it said nothing of a gap that was over an hour ago")
	node, err := s.WhyNot(t.Context(), ask(trail.Subject{Kind: trail.SubjectNode, Name: "n1"}))
	require.NoError(t, err)
	require.Equal(t, []time.Time{timeAtMinute(20)}, named(node.NotObserved))
	quiet, err := s.Why(t.Context(), ask(trail.VMISubject("shop", "web")))
	require.NoError(t, err)
	require.Equal(t, []time.Time{timeAtMinute(20)}, named(quiet.NotObserved), "an eviction may have come and gone unseen while it is there")
	free, err := s.WhyNot(t.Context(), ask(trail.VMISubject("shop", "web")))
	require.NoError(t, err)
	require.Empty(t, free.NotObserved, "that nothing is in its way is said of now")
}

// TestForecastNamesGaps forecasts the drain of a node of a cluster that nobody watches any more, and that was not seen for a while
// in the last hour.
func TestForecastNamesGaps(t *testing.T) {
	t.Parallel()
	h := newMinutes()
	h.kubeVirt(0, "v1.8.4")
	h.observeGap(2, 3)
	h.observeVM(10, "db", "")
	h.observeGap(40, 45)
	s := storetest.New(t)
	storetest.Record(t, s, h.facts)
	require.NoError(t, s.For("c1", "a").Alive(t.Context(), timeAtMinute(90), nil))
	d, err := s.DrainForecast(t.Context(), trail.Question{Cluster: "c1", Of: trail.Subject{Kind: trail.SubjectNode, Name: "n1"}})
	require.NoError(t, err)
	require.Equal(t, timeAtMinute(90), d.At)
	require.Len(t, d.NotObserved, 1)
	require.Equal(t, timeAtMinute(40), d.NotObserved[0].OpenedAt.UTC())
	require.Equal(t, trail.RecorderNotRecording, d.Recorder.State)
}
