package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// strangeTexts are longest as decoders leave them: messages 1 KiB, names 512 bytes.
var strangeTexts = []string{
	"", "\x00", "\\u0000", "a\xffb", "\u202e\x1b[2J", "'; DROP TABLE evictrail.events; --", strings.Repeat("x", 1024), strings.Repeat("\u20ac", 300), "vmi:shop/db:1", "NaN", "-1", "9223372036854775807",
}

// FuzzStream sends observations of every kind with any texts, times and numbers through Tracker and spool into a database, in a term and with all that follows. All
// is stored or refused; what is refused is set aside; nothing fails to be derived; and a fact behind it is stored.
func FuzzStream(f *testing.F) {
	year := func(y int) int64 { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Unix() }
	for i, at := range []int64{year(0), year(1), year(-1), year(-4713), year(1969), year(2015), year(2026), year(2028), year(9999), year(10_000), year(294_277), -1 << 62, 1<<62 - 1} { // the first is defect D1
		for kind := range byte(6) {
			f.Add(kind, strangeTexts[i%len(strangeTexts)], strangeTexts[(i+int(kind))%len(strangeTexts)], at, year(2026), int64(i)<<58)
		}
	}
	s := storetest.New(f)
	leader := s.For("c1", "r1")
	require.NoError(f, leader.Lead(f.Context(), "this", trail.DefaultThresholds()))
	q, err := spool.Open(spool.Options{Dir: f.TempDir(), Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return time.Now().UTC() }})
	require.NoError(f, err)
	f.Cleanup(func() { _ = q.Close() })
	var count atomic.Int64
	f.Fuzz(func(t *testing.T, kind byte, name, text string, at, other, n int64) {
		name, text = name[:min(len(name), 512)], text[:min(len(text), 1024)]
		vm := fmt.Sprintf("db-%d%s", count.Add(1), name)
		now := time.Now().UTC()
		tr := tracker.New("c1")
		var facts []trail.Fact
		for _, o := range makeStrangeObservations(kind, vm, text, time.Unix(at, 0), time.Unix(other, 0), n, now) {
			facts = append(facts, tr.Observe(o)...)
		}
		facts = append(facts, tr.Observe(tracker.NodeObservation{
			Seen: tracker.Seen{At: now}, Meta: tracker.Meta{UID: vm, Name: fmt.Sprintf("control-%d", count.Load()), ResourceVersion: "1"}, Unschedulable: true,
		})...)
		control := facts[len(facts)-1]
		require.Equal(t, trail.KindNodeCordoned, control.Kind)
		for _, f := range facts {
			require.True(t, trail.Plausible(f.OccurredAt, f.ObservedAt), f)
		}
		require.NoError(t, q.Append(t.Context(), facts))
		q.AppendSign(now, nil)
		for done := false; !done; {
			some, sign, err := q.Next(t.Context())
			require.NoError(t, err)
			if done = sign != nil; !done {
				storeAll(t, leader, q, some)
			}
			q.Confirm()
		}
		_, _, err := leader.KeepUp(t.Context())
		require.NoError(t, err)
		failed, err := s.DeriveFailures(t.Context(), 1)
		require.NoError(t, err)
		require.Empty(t, failed)
		var stored bool
		require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM evictrail.events WHERE id = $1)", control.ID.String()).Scan(&stored))
		require.True(t, stored, "the fact behind it")
	})
}

// storeAll stores facts as Storing does: what is refused alone is set aside.
func storeAll(t *testing.T, leader *store.ClusterStore, q *spool.Spool, facts []trail.Fact) {
	t.Helper()
	_, err := leader.Append(t.Context(), facts)
	switch {
	case err == nil:
	case !errors.Is(err, trail.ErrRefused):
		t.Fatalf("neither stored nor refused: %v", err)
	case len(facts) == 1:
		q.SetAside(facts, err)
	default:
		for some := range slices.Chunk(facts, (len(facts)+1)/2) {
			storeAll(t, leader, q, some)
		}
	}
}

// makeStrangeObservations makes observations of a VM and of what is around it.
func makeStrangeObservations(kind byte, vm, text string, at, other time.Time, n int64, now time.Time) []tracker.Observation {
	seen := tracker.Seen{At: now, Listed: n%2 == 0, Gone: n%7 == 3}
	meta := tracker.Meta{UID: vm + text, Namespace: "shop", Name: vm, ResourceVersion: fmt.Sprint(n), CreatedAt: at, DeletionAt: other}
	state := &tracker.MigrationState{
		UID: "m" + vm, SourceNode: "n1", TargetNode: "n2" + text, StartedAt: at, EndedAt: other, Mode: text, Completed: true, Failed: n%3 == 0, FailureReason: text,
		CompletionTimeoutPerGiB: n, ProgressTimeout: n, GuestMemory: n,
	}
	conditions := []tracker.Condition{{Type: trail.ConditionEvictionRequested, Status: "True", Reason: text, Message: text, ChangedAt: at}, {Type: trail.ConditionPaused, Status: text, ChangedAt: other}}
	phases := []trail.PhaseTime{{Phase: trail.PhasePending, At: at}, {Phase: trail.PhaseScheduling, At: other}, {Phase: trail.PhaseFailed, At: at}, {Phase: text, At: other}}
	placed := tracker.VMIObservation{Seen: seen, Meta: meta, Node: "n1", Phase: "Running", Strategy: text, Mark: "n1", EvictionSource: text, Conditions: conditions, PhaseTimes: phases, State: state}
	switch kind % 6 {
	case 0:
		about := tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: vm, UID: text}
		return []tracker.Observation{placed, tracker.KubeEventObservation{Seen: seen, Meta: meta, About: about, Reason: "FailedMigration", Message: text, Type: text, Component: text, Count: n, LastAt: at}}
	case 1:
		moved := placed
		moved.Node, moved.Mark, moved.ResourceVersion = "n2", "", meta.ResourceVersion+"1"
		return []tracker.Observation{placed, moved}
	case 2:
		return []tracker.Observation{placed, tracker.MigrationObservation{
			Seen: seen, Meta: meta, VMI: vm, Phase: trail.PhaseFailed, PhaseTimes: phases, Conditions: conditions, State: state, EvacuationNode: "n1", Evacuation: true, Priority: text,
			NodeSelector: map[string]string{text: text}, SendTo: text,
		}}
	case 3:
		return []tracker.Observation{tracker.PodObservation{
			Seen: seen, Meta: meta, VMI: vm, VMIUID: text, Node: "n1", Phase: text, MigrationUID: text, EvictionInProgress: text, HasInProgress: true, Unschedulable: text,
			Disruption: tracker.Condition{Type: "DisruptionTarget", Status: "True", Reason: text, Message: text, ChangedAt: at},
		}}
	case 4:
		return []tracker.Observation{placed, tracker.RequestObservation{
			Seen: seen, Source: trail.SourceAudit, ID: vm, Stage: "ResponseComplete", Action: []trail.Action{trail.ActionMigrate, trail.ActionEvict}[n&1], Namespace: "shop", Name: vm, AskedAt: at,
			Detail: trail.RequestDetail{User: text, Agent: text, AnsweredAt: other, Code: int(n), Status: text, Message: text, StatedReason: text},
		}}
	default:
		return []tracker.Observation{tracker.ScrapeObservation{Seen: seen, Target: vm, Version: text, StartedAt: at, Plugin: true, Blocks: []tracker.BlockCount{{Reason: text, Node: "n1", Namespace: text, Count: float64(n)}}}}
	}
}
