package chaos_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestT13SlowStore has the database take half a second for a commit, then five, then hold a lock, then leave a connection without an answer:
// batches grow, the lag shows in the metrics, what was seen is stored in the end, and nothing stays behind.
//
// T13 of the chaos matrix (docs/chaos.md): a database that commits slowly, holds a lock, or does not answer.
func TestT13SlowStore(t *testing.T) {
	t.Parallel()
	r := newSeededRand(t)
	const between = 50 * time.Millisecond // two transitions, while commits are slow
	each := chooseCount(300, 3000)        // transitions while the database stands still
	commits := chooseCount(4, 60)
	parts := []struct {
		name  string
		wait  time.Duration
		lasts time.Duration
	}{
		{"at once", 0, 4 * time.Second},
		{"500 ms for a commit", 500 * time.Millisecond, time.Duration(2*commits) * 500 * time.Millisecond},
		{"5 s for a commit", 5 * time.Second, time.Duration(commits) * 5 * time.Second},
	}
	all := 3 * each
	for _, part := range parts {
		all += int(part.lasts / between)
	}
	database := storetest.NewURL(t)
	p := startProxy(t, database)
	c := startCluster(t, newTrace(r, each/10, all))
	e := newEvictrail(t, c, p.databaseURL(), "evictrail-0")
	e.start()
	e.awaitReady()
	var calm load
	for _, part := range parts {
		p.injectFault(slowCommits(part.wait))
		before, lag := e.readLoad(), 0.0
		for range part.lasts / between {
			c.releaseTransitions(1)
			lag = max(lag, e.storeLagSeconds())
			time.Sleep(between)
		}
		p.clearFaults()
		awaitStored(t, database, c.released)
		now := e.readLoad()
		done := now.since(before)
		t.Logf("T13: %-28s %4.0f facts a batch, lag up to %.1f s, %.0f goroutines, %.0f files", part.name, done.batch, lag, now.goroutines, now.files)
		if part.wait == 0 {
			calm = done
			continue
		}
		require.Greater(t, lag, part.wait.Seconds()/2, "the lag shows")
		require.Greater(t, done.batch, calm.batch, "batches grow")
	}
	standsStill := func(name string, fail func() (heal func())) {
		heal := fail()
		c.releaseTransitions(each)
		longest := chooseCount(2, 60)
		awaitCondition(t, time.Hour, "the lag shows", func() bool { return e.storeLagSeconds() > float64(longest) })
		began := time.Now()
		heal()
		awaitStored(t, database, c.released)
		t.Logf("T13: %-28s stored %.1f s after its end", name, time.Since(began).Seconds())
	}
	standsStill("a lock is held", func() func() {
		conn, err := pgx.Connect(t.Context(), database)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE evictrail.subjects")
		require.NoError(t, err)
		return func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }
	})
	standsStill("a connection has no answer", func() func() {
		var silent atomic.Pointer[link]
		p.injectFault(func(m *message) bool {
			if m.isRequestFor(storesFacts) {
				silent.CompareAndSwap(nil, m.link)
			}
			if m.link == silent.Load() {
				<-t.Context().Done() // neither side hears of the other, nor of its end
			}
			return true
		})
		return func() {} // that connection never has one again
	})
	p.clearFaults()
	c.releaseTransitions(len(c.truth))
	awaitStored(t, database, len(c.truth))
	requireTruth(t, database, c.truth)
	awaitCondition(t, 3*time.Minute, "nothing stays behind", func() bool {
		last := e.readLoad()
		return last.goroutines <= calm.goroutines+10 && last.files <= calm.files+10
	})
	last := e.readLoad()
	t.Logf("T13: %-28s %.0f goroutines, %.0f files, %d connections, %d MiB at most", "in the end", last.goroutines, last.files, p.countLinks(), e.peakMemory()>>20)
	require.NoError(t, e.Stop())
	requireRederived(t, database)
}

// load is what evictrail has done, and holds.
type load struct{ stored, batches, batch, goroutines, files float64 }

// since returns what was done since.
func (l load) since(before load) load {
	l.stored, l.batches = l.stored-before.stored, l.batches-before.batches
	l.batch = l.stored / max(1, l.batches)
	return l
}

func (e *evictrail) readLoad() load {
	e.t.Helper()
	l := load{
		stored: e.sumMetric("evictrail_facts_total", `stage="committed"`), batches: e.sumMetric("evictrail_store_write_duration_seconds_count", `op="append"`),
		goroutines: e.sumMetric("go_goroutines", ""), files: e.sumMetric("process_open_fds", ""),
	}
	return l.since(load{})
}

// storeLagSeconds is for how long the oldest fact has waited to be stored, in seconds.
func (e *evictrail) storeLagSeconds() float64 {
	e.t.Helper()
	oldest := e.sumMetric("evictrail_spool_oldest_event_timestamp_seconds", "")
	if oldest == 0 {
		return 0
	}
	return float64(time.Now().UnixMilli())/1000 - oldest
}
