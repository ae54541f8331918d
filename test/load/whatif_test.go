package load_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail/whatif"
)

// TestWhatIf replays everything that is recorded of the large cluster, under one policy, three and twelve, and reports how long each took and how
// much memory was in use at most beside what was before.
func TestWhatIf(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	s, _ := openDatabase(t)
	seen, err := s.LastAlive(t.Context(), large)
	require.NoError(t, err)
	three := whatif.Question{}
	sweep, err := whatif.ParseSweep("base=5m..60m/5m", whatif.Policy{})
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		whatif.Question
	}{
		{"one policy", whatif.Question{Policies: []whatif.Policy{{TryOnce: true}}}},
		{"one policy, a cooldown", whatif.Question{Policies: sweep.Policies[2:3]}},
		{"three policies", three},
		{"twelve policies, a sweep", whatif.Question{Sweep: &sweep}},
	} {
		q := c.Question
		q.Cluster, q.Since, q.Until = large, seen.AddDate(0, 0, -whatif.MostDays), seen.Add(time.Minute)
		most, stop := inUse()
		began := time.Now()
		a, err := s.WhatIf(t.Context(), q)
		took := time.Since(began)
		stop()
		require.NoError(t, err)
		require.Positive(t, a.Recorded.Evictions)
		require.Len(t, a.Policies, len(q.All()))
		t.Logf("%s: %s, %d MiB; %+v; %d migrations saved, %d evictions held back", c.name, took.Round(time.Millisecond), most()>>20, a.Recorded, a.Policies[0].MigrationsSaved, a.Policies[0].HeldBack)
	}
}

// inUse watches how much memory the process has in use beside what it has now, until it is stopped.
func inUse() (most func() uint64, stop func()) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var peak atomic.Uint64
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				if m.HeapAlloc > before {
					peak.Store(max(peak.Load(), m.HeapAlloc-before))
				}
			}
		}
	}()
	return peak.Load, func() { close(done); <-gone }
}
