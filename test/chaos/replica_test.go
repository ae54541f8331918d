package chaos_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// elected are the flags of one of several replicas.
var elected = []string{"--leader-elect", "--leader-lease", namespace + "/evictrail"}

// TestT6Replicas runs two replicas, and then three. The one that derives is stopped until another does, and then goes on; and its lease is given to another,
// while it goes on until it finds out: each transition is stored once, what a deposed leader derives is refused, and in the end one derives.
func TestT6Replicas(t *testing.T) {
	t.Parallel()
	r := chance(t)
	steals, stops := count(2, 15), count(1, 3) // of either
	transitions := count(600, 6000)
	for n := 2; n <= 3; n++ {
		database := storetest.NewURL(t)
		c := startCluster(t, newTrace(r, transitions/10, transitions))
		p := startProxy(t, database)
		var back atomic.Int64 // transactions that went back: for a deadlock, or because a term was over
		p.inject(func(m *message) bool {
			if m.runs("rollback") {
				back.Add(1)
			}
			return true
		})
		all := make([]*evictrail, n)
		for i := range all {
			all[i] = newEvictrail(t, c, p.url(), "evictrail-"+string(rune('0'+i)), elected...)
			all[i].start()
		}
		for _, e := range all {
			e.await()
		}
		began := time.Now()
		for i := range steals + stops {
			was := leading(t, all)
			happens(t, c, r)
			stopped := i < stops
			if stopped {
				require.NoError(t, was.Pause())
			} else {
				c.leases.steal()
			}
			terms := number(t, database, "SELECT max(term) AS n FROM evictrail.leaders")
			await(t, 3*time.Minute, "another term begins", func() bool {
				c.tell(1)
				return number(t, database, "SELECT max(term) AS n FROM evictrail.leaders") > terms
			})
			if stopped {
				happens(t, c, r)
				require.NoError(t, was.Resume())
			}
			await(t, 3*time.Minute, "one derives", func() bool { return len(leaders(all)) == 1 })
		}
		took := time.Since(began)
		c.tell(len(c.truth))
		awaitDerived(t, database, c)
		require.Len(t, leaders(all), 1)
		for _, e := range all {
			require.NoError(t, e.Stop())
		}
		refused := int(back.Load()) - number(t, database, "SELECT deadlocks AS n FROM pg_stat_database WHERE datname = current_database()")
		t.Logf("T6: %d replicas, %d stolen leases and %d stopped leaders in %s, %d terms, %d times refused to a deposed one; %d transitions, each stored once",
			n, steals, stops, took.Round(time.Second), number(t, database, "SELECT max(term) AS n FROM evictrail.leaders"), refused, len(c.truth))
		require.Positive(t, refused)
		requireTruth(t, database, c.truth)
		requireDerivedAnew(t, database)
	}
}

// happens has some transitions happen, a few at a time.
func happens(t *testing.T, c *cluster, r *rand.Rand) {
	t.Helper()
	for range 5 {
		c.tell(1 + r.IntN(5))
		time.Sleep(10 * time.Millisecond)
	}
}

// leading waits for the replica that derives.
func leading(t *testing.T, all []*evictrail) *evictrail {
	t.Helper()
	var one *evictrail
	await(t, 3*time.Minute, "one derives", func() bool {
		if now := leaders(all); len(now) == 1 {
			one = now[0]
		}
		return one != nil
	})
	return one
}

// leaders returns the replicas that say that they derive.
func leaders(all []*evictrail) []*evictrail {
	var out []*evictrail
	for _, e := range all {
		if e.metric("evictrail_leader", "") == 1 {
			out = append(out, e)
		}
	}
	return out
}
