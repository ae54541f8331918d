package sim

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestRowsKeepNoFacts has anyone who keeps derived rows keep nothing else of what they were derived of: no request, no migration.
func TestRowsKeepNoFacts(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	gone := func(struct{}) { left.Add(-1) }
	rows := func() (rows []trail.Derived) {
		var facts []trail.Fact
		tr := tracker.New("c1")
		run := New(4)
		for _, o := range run.Observations {
			facts = append(facts, tr.Observe(o)...)
		}
		for i := range facts {
			switch d := facts[i].Detail.(type) {
			case *trail.RequestDetail:
				left.Add(1)
				runtime.AddCleanup(d, gone, struct{}{})
			case *trail.SeenDetail:
				left.Add(1)
				runtime.AddCleanup(d, gone, struct{}{})
			}
		}
		env := trail.NewEnv(facts)
		for s, its := range trail.BySubject(facts) {
			rows = append(rows, trail.Derive(s, its, env, run.End))
		}
		return rows
	}()
	require.Greater(t, left.Load(), int64(100))
	for began := time.Now(); left.Load() > 0 && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	require.Zero(t, left.Load())
	runtime.KeepAlive(rows)
}
