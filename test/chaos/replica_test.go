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
//
// T6 of the chaos matrix (docs/chaos.md): several replicas, whose leases are stolen and whose leaders are stopped.
func TestT6Replicas(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	steals, stops := chooseCount(2, 15), chooseCount(1, 3) // of either
	transitions := chooseCount(600, 6000)
	for n := 2; n <= 3; n++ {
		database := storetest.NewURL(t)
		c := startCluster(t, newTrace(r, transitions/10, transitions))
		p := startProxy(t, database)
		var back atomic.Int64 // transactions that went back: for a deadlock, or because a term was over
		p.injectFault(func(m *message) bool {
			if m.isRequestFor("rollback") {
				back.Add(1)
			}
			return true
		})
		all := make([]*evictrail, n)
		for i := range all {
			all[i] = newEvictrail(t, c, p.databaseURL(), "evictrail-"+string(rune('0'+i)), elected...)
			all[i].start()
		}
		for _, e := range all {
			e.awaitReady()
		}
		began := time.Now()
		for i := range steals + stops {
			was := awaitLeader(t, all)
			releaseSomeTransitions(t, c, r)
			terms := loadNumber(t, database, "SELECT max(term) AS n FROM evictrail.leaders") // before the theft: the next one may begin at once
			stopped := i < stops
			if stopped {
				require.NoError(t, was.Pause())
			} else {
				c.leases.stealLeases()
			}
			awaitCondition(t, 3*time.Minute, "another term begins", func() bool {
				c.releaseTransitions(1)
				return loadNumber(t, database, "SELECT max(term) AS n FROM evictrail.leaders") > terms
			})
			if stopped {
				releaseSomeTransitions(t, c, r)
				require.NoError(t, was.Resume())
			}
			awaitCondition(t, 3*time.Minute, "one derives", func() bool { return len(findLeaders(all)) == 1 })
		}
		took := time.Since(began)
		c.releaseTransitions(len(c.truth))
		awaitDerived(t, database, c)
		require.Len(t, findLeaders(all), 1)
		for _, e := range all {
			require.NoError(t, e.Stop())
		}
		refused := int(back.Load()) - loadNumber(t, database, "SELECT deadlocks AS n FROM pg_stat_database WHERE datname = current_database()")
		t.Logf("T6: %d replicas, %d stolen leases and %d stopped leaders in %s, %d terms, %d times refused to a deposed one; %d transitions, each stored once",
			n, steals, stops, took.Round(time.Second), loadNumber(t, database, "SELECT max(term) AS n FROM evictrail.leaders"), refused, len(c.truth))
		require.Positive(t, refused)
		requireTruth(t, database, c.truth)
		requireRederived(t, database)
	}
}

// releaseSomeTransitions has some transitions happen, a few at a time.
func releaseSomeTransitions(t *testing.T, c *cluster, r *rand.Rand) {
	t.Helper()
	for range 5 {
		c.releaseTransitions(1 + r.IntN(5))
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitLeader waits for the replica that derives.
func awaitLeader(t *testing.T, all []*evictrail) *evictrail {
	t.Helper()
	var one *evictrail
	awaitCondition(t, 3*time.Minute, "one derives", func() bool {
		if now := findLeaders(all); len(now) == 1 {
			one = now[0]
		}
		return one != nil
	})
	return one
}

// findLeaders returns the replicas that say that they derive.
func findLeaders(all []*evictrail) []*evictrail {
	var out []*evictrail
	for _, e := range all {
		if e.sumMetric("evictrail_leader", "") == 1 {
			out = append(out, e)
		}
	}
	return out
}
