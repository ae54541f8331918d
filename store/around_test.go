package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestDerivedAsOfAllFacts records histories with hours between them, some facts of which come late, so that VMs and nodes are derived of what was since
// nothing was open there: by leaders that take turns, a follower, an import or a tool. Whenever everything is derived again, of all facts, nothing changes.
// The short form has one shift of one history.
func TestDerivedAsOfAllFacts(t *testing.T) {
	t.Parallel()
	for _, seeds := range storetest.Sample(storetest.Some([][]uint64{{52, 24, 20}, {116, 216, 316}, {14, 62, 54}, {30, 79, 40}, {456, 515, 275}}, 2)) {
		seeds = storetest.Sample(seeds)
		t.Run(fmt.Sprint(seeds), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seeds[0], 7))
			s := storetest.New(t)
			require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
			leader, follower := s.For("c1", "r1"), s.For("c1", "r2")
			require.NoError(t, leader.Lead(t.Context(), "this", storetest.Brief))
			late := map[int][]trail.Fact{}
			all := slices.Collect(slices.Chunk(storetest.Shifts(r, seeds...), 60))
			for i, facts := range all {
				facts = slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool {
					held := i < len(all)-40 && r.IntN(50) == 0
					if held {
						at := i + 1 + r.IntN(40)
						late[at] = append(late[at], f)
					}
					return held
				})
				facts = append(late[i], facts...)
				at := all[i][len(all[i])-1].ObservedAt
				switch r.IntN(7) {
				case 0:
					require.NoError(t, s.Alive(t.Context(), "c1", at))
					_, err := s.Import(t.Context(), "c1", facts)
					require.NoError(t, err)
					_, err = s.DeriveStale(t.Context(), "c1", nil)
					require.NoError(t, err)
				case 1:
					_, err := follower.Append(t.Context(), facts)
					require.NoError(t, err)
				case 2, 3:
					_, err := leader.Append(t.Context(), facts)
					require.NoError(t, err)
				case 4:
					_, _, err := leader.CatchUp(t.Context(), nil)
					require.NoError(t, err)
					storetest.Record(t, s, facts)
				case 5: // another replica leads
					_, err := leader.Append(t.Context(), facts)
					require.NoError(t, err)
					leader, follower = follower, leader
					require.NoError(t, leader.Lead(t.Context(), "this", storetest.Brief))
				default:
					storetest.Record(t, s, facts)
				}
				if i%25 == 24 || i == len(all)-1 {
					_, _, err := leader.CatchUp(t.Context(), nil)
					require.NoError(t, err)
					require.NoError(t, s.Alive(t.Context(), "c1", at))
					_, _, err = s.DeriveDue(t.Context(), "c1", at)
					require.NoError(t, err)
					rows := storetest.DerivedRows(t, s)
					_, err = s.Rederive(t.Context(), "c1")
					require.NoError(t, err)
					rederived := storetest.DerivedRows(t, s)
					for table := range rederived {
						require.Equal(t, rederived[table], rows[table], "%s after %d batches of %d", table, i+1, len(all))
					}
				}
			}
			for _, table := range []string{"loops", "drains", "drain_blockers", "cooldown_decisions", "consequences", "outages"} {
				t.Log(table, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail."+table+" WHERE subject LIKE 'node:%'"))
			}
		})
	}
}

// TestWhatWasOverStaysAsItIsRecorded has a loop on a node that is over, and hours later a drain of it that begins with a cordon some minutes before it is
// asked of VMs: the rows of the drain are those of all facts, and the loop is not looked at.
func TestWhatWasOverStaysAsItIsRecorded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	tr, rv := tracker.New("c1"), 100
	var at tracker.Seen
	see := func(minute int, o func(tracker.Seen, func(uid, name string) tracker.Meta) tracker.Observation) {
		t.Helper()
		at = tracker.Seen{At: start.Add(time.Duration(minute) * time.Minute)}
		storetest.Record(t, s, tr.Observe(o(at, func(uid, name string) tracker.Meta {
			rv++
			return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(rv), CreatedAt: start}
		})))
	}
	vmi := func(mark string) func(tracker.Seen, func(uid, name string) tracker.Meta) tracker.Observation {
		return func(seen tracker.Seen, meta func(uid, name string) tracker.Meta) tracker.Observation {
			return tracker.VMIObservation{Seen: seen, Meta: meta("v1", "db"), Node: "n1", Phase: "Running", Strategy: trail.StrategyExternal, Mark: mark}
		}
	}
	see(0, vmi(""))
	see(1, func(seen tracker.Seen, meta func(uid, name string) tracker.Meta) tracker.Observation {
		return tracker.PodObservation{Seen: seen, Meta: meta("p1", "virt-launcher-db"), VMI: "db", VMIUID: "v1", Node: "n1", Phase: "Running"}
	})
	see(2, vmi("n1"))
	see(30, vmi(""))
	require.Equal(t, 1, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.loops WHERE closed_by = 'cancelled'"))
	see(300, func(seen tracker.Seen, meta func(uid, name string) tracker.Meta) tracker.Observation {
		return tracker.NodeObservation{Seen: seen, Meta: meta("node", "n1"), Unschedulable: true}
	})
	_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.loops SET summary = 'as it was recorded'")
	require.NoError(t, err)
	see(310, func(seen tracker.Seen, _ func(uid, name string) tracker.Meta) tracker.Observation {
		return tracker.RequestObservation{
			Seen: seen, Source: trail.SourceAudit, ID: "audit", Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-db", AskedAt: seen.At,
			Detail: trail.RequestDetail{User: "alice", Agent: "kubectl/v1", AnsweredAt: seen.At, Code: 429, Message: `Eviction triggered evacuation of VMI "shop/db"`},
		}
	})
	require.Equal(t, 1, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.timeline WHERE kind = 'drain_started' AND at = $1", start.Add(5*time.Hour)))
	see(311, vmi("n1"))
	rows := storetest.DerivedRows(t, s)
	require.Contains(t, rows["loops"][0], "as it was recorded")
	require.Len(t, rows["drains"], 1)
	require.Contains(t, rows["drains"][0], `"started_at": "2026-11-21T05:00:00+00:00"`)
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	rederived := storetest.DerivedRows(t, s)
	require.NotContains(t, rederived["loops"][0], "as it was recorded")
	delete(rows, "loops")
	delete(rederived, "loops")
	require.Equal(t, rederived, rows)
}

// TestWhatWentOnAcrossIsSent has a request that counts as repeated until after the time since which its VM is derived again, which its facts do not say: it stays, as
// it was recorded in full.
func TestWhatWentOnAcrossIsSent(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr, rv := tracker.New("c1"), 100
	meta := func(uid, name string) tracker.Meta {
		rv++
		return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(rv), CreatedAt: start}
	}
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	vmi := func(at int, mark string) {
		storetest.Record(t, s, tr.Observe(tracker.VMIObservation{Seen: tracker.Seen{At: minute(at)}, Meta: meta("v1", "db"), Node: "n1", Phase: "Running", Strategy: trail.StrategyExternal, Mark: mark}))
	}
	asked := func(at int, user string) {
		storetest.Record(t, s, tr.Observe(tracker.RequestObservation{
			Seen: tracker.Seen{At: minute(at)}, Source: trail.SourceAudit, ID: user, Stage: "ResponseComplete", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-db",
			AskedAt: minute(at), Detail: trail.RequestDetail{User: user, AnsweredAt: minute(at), Code: 403, Message: "forbidden"},
		}))
	}
	vmi(0, "")
	storetest.Record(t, s, tr.Observe(tracker.PodObservation{Seen: tracker.Seen{At: minute(0)}, Meta: meta("p1", "virt-launcher-db"), VMI: "db", VMIUID: "v1", Node: "n1", Phase: "Running"}))
	asked(10, "alice")
	asked(100, "bob")
	for user, until := range map[string]int{"alice": 120, "bob": 230} {
		_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.eviction_requests SET last_repeat_at = $1 WHERE requester = $2", minute(until), user)
		require.NoError(t, err)
	}
	vmi(240, "n1")
	require.Equal(t, 2, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.eviction_requests WHERE requester IN ('alice', 'bob')"))
}
