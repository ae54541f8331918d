package chaos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// What is promised of an outage of the database.
const (
	mostMemory = 256 << 20 // bytes
	drained    = 10 * time.Minute
)

// TestT1DatabaseAway has the database go, and as much happen during that time as in an hour with 50 transitions a second, and then 2,000 a second for a
// minute; evictrail is killed during that time, and starts without the database. When that is back everything is stored, once.
//
// T1 of the chaos matrix (docs/chaos.md): the database is away while transitions come, and evictrail is killed while it is.
func TestT1DatabaseAway(t *testing.T) { //nolint:paralleltest // timed decides
	runParallelUnlessLong(t)
	hour, burst := chooseCount(3000, 180_000), chooseCount(2000, 120_000)
	calm := chooseCount(300, 2000)
	database := storetest.NewURL(t)
	p := startProxy(t, database)
	c := startCluster(t, newTrace(newSeededRand(t), chooseCount(200, 5000), calm+hour+burst))
	e := newEvictrail(t, c, p.databaseURL(), "evictrail-0")
	e.start()
	e.awaitReady()
	c.releaseTransitions(calm)
	awaitStored(t, database, calm)

	p.goOffline()
	began := time.Now()
	a := chooseCount(10, 100) // transitions at once: also the short form has a hundred batches in each process
	for c.released < calm+hour+burst {
		pace := 200 * time.Microsecond // an hour in some minutes
		if c.released > calm+hour {
			pace = 500 * time.Microsecond
		}
		c.releaseTransitions(a)
		time.Sleep(time.Duration(a) * pace)
		if c.released-a < calm+hour && c.released >= calm+hour {
			e.Kill()
			e.start()
			e.awaitReady()
		}
	}
	awaitCondition(t, 3*time.Minute, "it says that the database is away", func() bool { return e.sumMetric("evictrail_store_up", "") == 0 })
	waiting := e.sumMetric("evictrail_spool_bytes", "")
	away := time.Since(began)
	p.clearFaults()
	back := time.Now()
	c.releaseTransitions(len(c.truth))
	awaitStored(t, database, len(c.truth))
	drain := time.Since(back)
	t.Logf("T1: %d transitions while the database was away for %s, and a kill: %.0f KiB of facts waited; drained within %s, %d MiB at most",
		hour+burst, away.Round(time.Second), waiting/1024, drain.Round(time.Second), e.peakMemory()>>20)
	require.Positive(t, waiting)
	require.NoError(t, e.Stop())
	requireTruth(t, database, c.truth)
	requireRederived(t, database)
	require.Less(t, e.peakMemory(), int64(mostMemory))
	require.Less(t, drain, drained) // last: a busy machine alone makes this one fail
}
