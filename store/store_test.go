package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestMain(m *testing.M) {
	storetest.ShortHistories()
	storetest.Main(m)
}

// start is when incidents begin.
var start = storetest.Start

func TestAppend(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 1)
	news, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts))
	rows := storetest.Dump(t, s)
	require.Len(t, rows["events"], len(facts)+2, "the facts, and that a backoff began and was over")
	require.Len(t, rows["cooldown_decisions"], 2)
	require.Len(t, rows["evacuations"], 1)
	require.Contains(t, rows["evacuations"][0], `"outcome": "migrated"`)
	require.Contains(t, rows["evacuations"][0], `"failed_attempts": 1`)
	require.Len(t, rows["migrations"], 2)
	require.Len(t, rows["migration_phases"], 4)
	require.Len(t, rows["placements"], 2)

	news, err = s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.Empty(t, news, "the same facts again")
	require.Equal(t, rows, storetest.Dump(t, s))
}

func TestAppendInAnyOrderAndSize(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	facts := storetest.Incident("c1", 3)
	want := storetest.DumpOf(t, "c1", facts)
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		s := storetest.New(t)
		shuffled := append(slices.Clone(facts), facts[:len(facts)/3]...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for len(shuffled) > 0 {
			n := min(len(shuffled), 1+r.IntN(9))
			_, err := s.Append(t.Context(), "c1", shuffled[:n])
			require.NoError(t, err)
			shuffled = shuffled[n:]
		}
		require.Equal(t, want, storetest.Dump(t, s))
	}
}

func TestRederivedRowsAreTheSame(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, cluster := range []string{"c1", "c2"} {
		_, err := s.Append(t.Context(), cluster, storetest.Incident(cluster, 5))
		require.NoError(t, err)
	}
	want := storetest.Dump(t, s)
	_, err := s.DB.Exec(t.Context(), "DELETE FROM evictrail.evacuations; UPDATE evictrail.migrations SET attempt = 9 WHERE attempt IS NOT NULL; DELETE FROM evictrail.timeline")
	require.NoError(t, err)
	require.NotEqual(t, want, storetest.Dump(t, s))
	for _, cluster := range []string{"c1", "c2"} {
		n, err := s.Rederive(t.Context(), cluster)
		require.NoError(t, err)
		require.Equal(t, 9, n, "five VMs, their two nodes, the rules and the cluster as a whole")
	}
	require.Equal(t, want, storetest.Dump(t, s))
}

func TestTwoWritersAtOnce(t *testing.T) {
	t.Parallel()
	facts := storetest.Incident("c1", 8)
	alone := storetest.New(t)
	_, err := alone.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	want := storetest.Dump(t, alone)

	s := storetest.New(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for writer := range 4 {
		wg.Go(func() {
			// A replica sees the same changes, a little later on its own clock.
			mine := slices.Clone(facts)
			for i := range mine {
				if mine[i].Clock == trail.ClockObserver && writer > 0 {
					mine[i].OccurredAt = mine[i].OccurredAt.Add(time.Duration(writer) * time.Millisecond)
				}
			}
			r := rand.New(rand.NewPCG(uint64(writer), 1))
			for len(mine) > 0 {
				n := min(len(mine), 1+r.IntN(12))
				news, err := s.Append(context.WithoutCancel(t.Context()), "c1", mine[:n])
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				total += len(news.Facts)
				mu.Unlock()
				mine = mine[n:]
			}
		})
	}
	wg.Wait()
	require.Equal(t, len(facts), total, "each fact was new to exactly one writer")
	got := storetest.Dump(t, s)
	for view := range want {
		require.Len(t, got[view], len(want[view]), view)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 2))
	require.NoError(t, err)
	tr := tracker.New("c1")
	require.NoError(t, s.Resume(t.Context(), "c1", tr.Resume))
	require.Equal(t, map[trail.ObjectKind]int{trail.ObjectVMI: 2, trail.ObjectMigration: 4, trail.ObjectKubeVirt: 1}, tr.Held(),
		"the node has said nothing that is worth a fact")
	mark := tracker.VMIObservation{
		Meta: tracker.Meta{UID: "uid-db-0", Namespace: "shop", Name: "db-0", ResourceVersion: "9999"}, Seen: tracker.Seen{At: start.Add(time.Hour), Listed: true},
		Node: "n2", Phase: "Running",
	}
	require.Empty(t, tr.Observe(mark), "the same state, listed again after a restart, is no change")
	mark.ResourceVersion, mark.Mark = "10000", "n2"
	require.Len(t, tr.Observe(mark), 1)

	at, err := s.LastAlive(t.Context(), "c1")
	require.NoError(t, err)
	require.False(t, at.IsZero())
	never, err := s.LastAlive(t.Context(), "c9")
	require.NoError(t, err)
	require.True(t, never.IsZero())
}

func TestBadTextIsKept(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr := tracker.New("c1")
	facts := tr.Observe(tracker.KubeEventObservation{
		Meta: tracker.Meta{UID: "e1", Name: "e1", ResourceVersion: "5"}, Seen: tracker.Seen{At: start}, Count: 1, Type: "Warning", Reason: "SyncFailed",
		Message: "nul \x00 and \u001b[31m", About: tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "shop", Name: "db", UID: "v1"},
	})
	facts = append(facts, tr.Observe(tracker.VMIObservation{
		Meta: tracker.Meta{UID: "v1", Namespace: "shop", Name: "db", ResourceVersion: "6"}, Seen: tracker.Seen{At: start}, Node: "worker\x001", Phase: "Running",
	})...)
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	rows := storetest.Dump(t, s)
	require.Len(t, rows["timeline"], 2)
	require.Len(t, rows["placements"], 1)
	require.Contains(t, rows["placements"][0], "\"node\": \"worker\uFFFD1\"", "Postgres has no place for NUL in a text")
}

func TestFarTimesGoToTheDefaultPartition(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 1)
	facts[0].OccurredAt = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	facts[1].OccurredAt = time.Date(2026, 8, 31, 23, 59, 59, 0, time.UTC)
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.NoError(t, s.EnsureMonths(t.Context(), start))
	rows, err := s.DB.Query(t.Context(), "SELECT relname FROM pg_class WHERE relname LIKE 'events_%' AND relkind = 'r' ORDER BY 1")
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"events_2026_08", "events_2026_11", "events_2026_12", "events_default"}, names)
	var stray int
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT count(*) FROM evictrail.events_default").Scan(&stray))
	require.Equal(t, 1, stray)
}

// TestLateCordonBehindABlock sees a node's cordon late, after a counter of the descheduler named the node: the mark before
// both is seen in the light of the cordon all the same.
func TestLateCordonBehindABlock(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr := tracker.New("c1")
	at := func(seconds int) tracker.Seen {
		return tracker.Seen{At: start.Add(time.Duration(seconds) * time.Second)}
	}
	see := func(o tracker.Observation) {
		_, err := s.Append(t.Context(), "c1", tr.Observe(o))
		require.NoError(t, err)
	}
	vmi := func(rv, mark string, seen tracker.Seen) tracker.VMIObservation {
		return tracker.VMIObservation{
			Seen: seen, Meta: tracker.Meta{UID: "v1", Namespace: "shop", Name: "db", ResourceVersion: rv, CreatedAt: start}, Node: "n1", Phase: "Running", Mark: mark,
		}
	}
	see(vmi("10", "", at(1)))
	see(vmi("11", "n1", at(10)))
	see(tracker.ScrapeObservation{Seen: at(40), Target: "d", StartedAt: start, Blocks: []tracker.BlockCount{{Reason: "cooldown", Node: "n1", Namespace: "shop", Count: 1}}})
	late := at(60)
	late.Listed = true
	see(tracker.NodeObservation{Seen: late, Meta: tracker.Meta{UID: "n", Name: "n1", ResourceVersion: "9"}, Unschedulable: true})
	live := storetest.Dump(t, s)
	require.Contains(t, live["evacuations"][0], `"trigger": "drain"`)
	_, err := s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, live, storetest.Dump(t, s))
}

// TestTimeAloneChangesRows derives a stuck evacuation again when only time has passed: the loop opens at the moment at which its
// condition became true, and a backoff runs out.
func TestTimeAloneChangesRows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr := tracker.New("c1")
	var facts []trail.Fact
	rv := 10
	meta := func(uid, name string, created time.Time) tracker.Meta {
		rv++
		return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(rv), CreatedAt: created}
	}
	see := func(o tracker.Observation) { facts = append(facts, tr.Observe(o)...) }
	see(tracker.VMIObservation{Seen: tracker.Seen{At: start}, Meta: meta("v1", "db", start), Node: "n1", Phase: "Running", Strategy: "LiveMigrate"})
	see(tracker.VMIObservation{Seen: tracker.Seen{At: start}, Meta: meta("v1", "db", start), Node: "n1", Phase: "Running", Strategy: "LiveMigrate", Mark: "n1"})
	for i := range 3 {
		at := start.Add(time.Duration(i+1) * time.Minute)
		name := fmt.Sprintf("kubevirt-evacuation-%d", i)
		see(tracker.MigrationObservation{
			Seen: tracker.Seen{At: at}, Meta: meta(name, name, at.Add(-10*time.Second)), VMI: "db", Evacuation: true, EvacuationNode: "n1", Phase: "Failed",
			PhaseTimes: []trail.PhaseTime{{Phase: "Scheduling", At: at.Add(-9 * time.Second)}, {Phase: "Failed", At: at}},
		})
	}
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	before := storetest.Dump(t, s)
	require.Empty(t, before["loops"])
	require.Len(t, before["cooldowns_now"], 1)
	sink := s.For("c1", "r1")
	require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
	news, err := sink.CatchUpTo(t.Context(), start.Add(9*time.Minute+59*time.Second))
	require.NoError(t, err)
	require.Empty(t, news.Loops)
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.loops"))
	require.NoError(t, s.For("c1", "r2").Alive(t.Context(), start.Add(10*time.Minute+7*time.Second), nil))
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.loops"), "a follower derives nothing")
	_, news, err = sink.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, news.Loops, 1)
	require.True(t, news.Loops[0].Began())
	after := storetest.Dump(t, s)
	require.Len(t, after["loops"], 1)
	require.Contains(t, after["loops"][0], `"opened_at": "2026-11-21T00:10:00+00:00"`)
	require.Empty(t, after["cooldowns_now"])
	n, _, err := s.DeriveDue(t.Context(), "c1", start.Add(10*time.Minute+7*time.Second))
	require.NoError(t, err)
	require.Zero(t, n, "nothing is due twice")
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, after, storetest.Dump(t, s))
}

// TestThresholds sets other thresholds: what was derived by the old ones is derived again, and a loop that is none by the
// new ones stays as refuted.
func TestThresholds(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	require.NoError(t, s.Judge(t.Context(), "c1", trail.DefaultThresholds()))
	last, err := s.LastAlive(t.Context(), "c1")
	require.NoError(t, err)
	require.Zero(t, last)
	strict := trail.DefaultThresholds()
	strict.Failures, strict.FailingFor = 1, time.Second
	require.NoError(t, s.Judge(t.Context(), "c1", strict))
	_, err = s.Append(t.Context(), "c1", storetest.Incident("c1", 1))
	require.NoError(t, err)
	require.Contains(t, strings.Join(storetest.Dump(t, s)["loops"], ""), "endless_retry")
	require.NoError(t, s.Judge(t.Context(), "c1", trail.DefaultThresholds()))
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	require.Empty(t, storetest.Dump(t, s)["loops"])
	rows, err := s.ListJSON(t.Context(), trail.ViewLoops, trail.Query{})
	require.NoError(t, err)
	require.Len(t, rows.Rows, 1)
	require.Contains(t, string(rows.Rows[0]), `"closed_by": "refuted"`)
}
