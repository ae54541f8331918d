package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestARequestDerivesWhatItConcerns stores one audit event after everything else: what it is about is derived again.
func TestARequestDerivesWhatItConcerns(t *testing.T) {
	t.Parallel()
	const marked = `Eviction triggered evacuation of VMI "shop/db"`
	for _, c := range []struct {
		name   string
		action trail.Action
		object string
		at     int // second of the request
		answer string
		column string // of whom: view and column
		where  string
	}{
		{"eviction", trail.ActionEvict, "virt-launcher-db", 20, marked, "evacuations.requester", "true"},
		{"eviction, the attempt's requester", trail.ActionEvict, "virt-launcher-db", 20, marked, "migrations.requester", "migration = 'attempt'"},
		{"cancellation", trail.ActionCancel, "db", 40, "", "evacuations.cancelled_by", "true"},
		{"migration by name", trail.ActionCreateMigration, "by-name", 50, "", "migrations.requester", "migration = 'by-name'"},
		{"migration whose name was generated", trail.ActionCreateMigration, "", 50, "", "migrations.requester", "migration = 'by-name'"},
		{"migrate subresource", trail.ActionMigrate, "db", 50, "", "migrations.requester", "migration = 'by-name'"},
		{"abort", trail.ActionDeleteMigration, "by-name", 55, "", "migrations.aborted_by", "migration = 'by-name'"},
		{"cordon", trail.ActionChangeNode, "n1", 10, "", "timeline.sentence", "kind = 'node_cordoned'"},
		{"cordon, in the evidence of the mark", trail.ActionChangeNode, "n1", 10, "", "evacuations.evidence", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			tr, rv := tracker.New("c1"), 100
			at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
			meta := func(uid, name string, created int) tracker.Meta {
				rv++
				return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(rv), CreatedAt: at(created)}
			}
			var facts []trail.Fact
			see := func(o tracker.Observation) { facts = append(facts, tr.Observe(o)...) }
			vmi := func(second int, mark string) {
				see(tracker.VMIObservation{Meta: meta("v1", "db", 0), Seen: tracker.Seen{At: at(second)}, Node: "n1", Phase: "Running", Strategy: "LiveMigrate", Mark: mark})
			}
			vmi(1, "")
			see(tracker.PodObservation{Meta: meta("p1", "virt-launcher-db", 0), Seen: tracker.Seen{At: at(2)}, VMI: "db", VMIUID: "v1", Node: "n1", Phase: "Running"})
			see(tracker.NodeObservation{Meta: meta("node", "n1", 0), Seen: tracker.Seen{At: at(10)}, Unschedulable: true})
			vmi(20, "n1")
			see(tracker.MigrationObservation{Meta: meta("a", "attempt", 21), Seen: tracker.Seen{At: at(21)}, VMI: "db", Evacuation: true, EvacuationNode: "n1"})
			vmi(40, "")
			m := tracker.MigrationObservation{Meta: meta("m", "by-name", 50), Seen: tracker.Seen{At: at(50)}, VMI: "db"}
			see(m)
			m.Meta, m.At, m.Phase = meta("m", "by-name", 50), at(55), trail.PhaseFailed
			m.DeletionAt = at(55)
			see(m)
			_, err := s.Append(t.Context(), "c1", facts)
			require.NoError(t, err)

			_, err = s.Append(t.Context(), "c1", tr.Observe(tracker.RequestObservation{
				Seen: tracker.Seen{At: at(90)}, Source: trail.SourceAudit, ID: "a1", Stage: "ResponseComplete", Action: c.action, Namespace: "shop", Name: c.object, AskedAt: at(c.at),
				Detail: trail.RequestDetail{User: "alice", AnsweredAt: at(c.at).Add(50 * time.Millisecond), Code: 200, Message: c.answer},
			}))
			require.NoError(t, err)
			view, column, _ := strings.Cut(c.column, ".")
			var got *string
			require.NoError(t, s.DB.QueryRow(t.Context(), fmt.Sprintf("SELECT %s FROM evictrail_v1.%s WHERE %s", column, view, c.where)).Scan(&got))
			require.NotNil(t, got)
			require.Contains(t, *got, "alice")
		})
	}
}

// TestSourcesInAnyOrder stores what the watches, the observer and the audit log report in all orders, whole and in
// pieces, the audit log also as an import that is derived later: the rows are the same.
func TestSourcesInAnyOrder(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	scenarios := uint64(storetest.Count(8, 25))
	orders := [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	s := storetest.New(t)
	first := uint64(time.Now().UnixNano())
	t.Logf("seeds from %d", first)
	requests := 0
	for seed := first; seed < first+scenarios; seed++ {
		all := storetest.GenerateSourceFacts(seed)
		sources := [3][]trail.Fact{all.Watched, all.Reviewed, all.Audited}
		want := storeBatches(t, s, slices.Concat(sources[:]...))
		requests += len(want["eviction_requests"])
		for _, order := range orders {
			got := storeBatches(t, s, sources[order[0]], sources[order[1]], sources[order[2]])
			require.Equal(t, want, got, "seed %d, order %v", seed, order)
		}
		for range 3 {
			got := storeBatches(t, s, splitSources(rand.New(rand.NewPCG(seed, 2)), sources)...)
			require.Equal(t, want, got, "seed %d, in pieces", seed)
		}
	}
	require.Positive(t, requests)
}

// TestSourcesAtTheSameTime lets the watches and the audit log be stored by two writers at once, fact by fact: neither
// misses what the other stores at that moment.
func TestSourcesAtTheSameTime(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	first := uint64(time.Now().UnixNano())
	t.Logf("seeds from %d", first)
	for seed := first; seed < first+8; seed++ {
		all := storetest.GenerateSourceFacts(seed)
		want := storeBatches(t, s, all.Watched, all.Reviewed, all.Audited)
		truncateTables(t, s)
		var g errgroup.Group
		for _, facts := range [][]trail.Fact{all.Watched, append(all.Audited, all.Reviewed...)} {
			g.Go(func() error {
				for i := range facts {
					if _, err := s.Append(t.Context(), "c1", facts[i:i+1]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		require.Equal(t, want, anHourOn(t, s), "seed %d", seed)
	}
}

// TestRequestAndItsPodAtTheSameTime lets one writer store a VM with its pod while another stores the request about that
// pod: whichever is first, they find each other.
func TestRequestAndItsPodAtTheSameTime(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const vms = 150
	s := storetest.New(t)
	tr := tracker.New("c1")
	for i := range vms {
		vm := fmt.Sprintf("db-%d", i)
		meta := func(uid, name string, rv int) tracker.Meta {
			return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(rv), CreatedAt: start}
		}
		seen := tracker.Seen{At: start.Add(time.Minute)}
		watched := tr.Observe(tracker.VMIObservation{Meta: meta("v-"+vm, vm, 1), Seen: seen, Node: "n1", Phase: "Running", Strategy: "LiveMigrate", Mark: "n1"})
		watched = append(watched, tr.Observe(tracker.PodObservation{Meta: meta("p-"+vm, "virt-launcher-"+vm, 2), Seen: seen, VMI: vm, VMIUID: "v-" + vm, Node: "n1"})...)
		audited := tr.Observe(tracker.RequestObservation{
			Seen: seen, Source: trail.SourceAudit, ID: vm, Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-" + vm, AskedAt: seen.At,
			Detail: trail.RequestDetail{User: "alice", AnsweredAt: seen.At, Code: 429, Message: `Eviction triggered evacuation of VMI "shop/` + vm + `"`},
		})
		var g errgroup.Group
		for _, facts := range [][]trail.Fact{watched, audited} {
			g.Go(func() error { _, err := s.Append(t.Context(), "c1", facts); return err })
		}
		require.NoError(t, g.Wait())
	}
	var met int
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT count(*) FROM evictrail_v1.evacuations WHERE requester = 'alice'").Scan(&met))
	require.Equal(t, vms, met)
	dumped := storetest.Dump(t, s)
	require.Len(t, dumped["eviction_requests"], vms, "and each is recorded once")
}

// splitSources cuts the facts of each source into pieces, and mixes them.
func splitSources(r *rand.Rand, sources [3][]trail.Fact) [][]trail.Fact {
	var out [][]trail.Fact
	for _, facts := range sources {
		for len(facts) > 0 {
			n := 1 + r.IntN(min(5, len(facts)))
			out = append(out, facts[:n])
			facts = facts[n:]
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func truncateTables(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), "TRUNCATE evictrail.events, evictrail.subjects, evictrail.aspects, evictrail.clusters, evictrail.eviction_requests, evictrail.evacuations, evictrail.migrations, evictrail.placements, "+
		"evictrail.cooldown_decisions, evictrail.loops, evictrail.drains, evictrail.drain_blockers, evictrail.gaps, evictrail.timeline, evictrail.leaders")
	require.NoError(t, err)
}

// storeBatches stores facts in the order given, into nothing, and returns the rows. What is all audit events is imported.
func storeBatches(t *testing.T, s *store.Store, batches ...[]trail.Fact) map[string][]string {
	t.Helper()
	truncateTables(t, s)
	var err error
	for i, batch := range batches {
		audit := !slices.ContainsFunc(batch, func(f trail.Fact) bool {
			return f.Object.Kind != trail.ObjectRequest || f.Clock != trail.ClockAPIServer
		})
		if audit && i%2 == 0 {
			_, err = s.Import(t.Context(), "c1", batch)
		} else {
			_, err = s.Append(t.Context(), "c1", batch)
		}
		require.NoError(t, err)
	}
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	return anHourOn(t, s)
}

// anHourOn returns the rows as they stand an hour after the beginning, no matter who was seen last.
func anHourOn(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	err := s.For("c1", "r1").Alive(t.Context(), start.Add(time.Hour), nil)
	require.NoError(t, err)
	return storetest.Dump(t, s)
}
