package bench_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

// TestLatency has a watch of VMIs deliver changes at a steady rate, each of which says something new, and adds to the table how long after a change was
// due the fact that says so was committed, and all that is derived of it.
func TestLatency(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, rate := range []int{200, 1000} {
		var p50, p99, rows50, rows99 []float64
		for range *rounds {
			recorded, derived := measureLatencies(t, 50**size, rate, rate**size/5)
			p50, p99 = append(p50, computeQuantile(recorded, 0.5)), append(p99, computeQuantile(recorded, 0.99))
			rows50, rows99 = append(rows50, computeQuantile(derived, 0.5)), append(rows99, computeQuantile(derived, 0.99))
		}
		fact, rows := fmt.Sprintf("from a change to its fact, at %d a second: ", rate), fmt.Sprintf("from a change to its rows, at %d a second: ", rate)
		addRows(
			row{what: fact + "p50", unit: "ms", ours: p50}, row{what: fact + "p99", unit: "ms", ours: p99},
			row{what: rows + "p50", unit: "ms", ours: rows50}, row{what: rows + "p99", unit: "ms", ours: rows99},
		)
	}
}

// measureLatencies returns how long after they were due so many changes of so many VMIs were recorded, and how long after that their rows were written, in ms.
func measureLatencies(tb testing.TB, objects, rate, changes int) (recorded, derived []float64) {
	tb.Helper()
	sink := runLeader(tb, objects, rate, changes)
	require.NotEmpty(tb, sink.recorded)
	require.Len(tb, sink.derived, len(sink.recorded))
	return sink.recorded, sink.derived
}

// runLeader has a leader take in a list of VMIs and then changes of them at a rate until all are recorded and derived.
func runLeader(tb testing.TB, objects, rate, changes int) *timedSink {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	s, _ := newStore(tb)
	api := newWatched(tb, objects, changes)
	api.telling, api.rate = 1, rate
	sink := &timedSink{ClusterStore: s.For("bench", "bench"), api: api}
	require.NoError(tb, sink.Lead(ctx, "this", trail.DefaultThresholds()))
	recording, stop := context.WithCancel(ctx)
	var deriving sync.WaitGroup
	deriving.Go(func() { sink.keepUp(recording, tb) })
	c, done := startCollector(ctx, tb, api, sink)
	require.NoError(tb, c.Taken(ctx, vmis, fmt.Sprint(listVersion)))
	require.NoError(tb, c.Flush(ctx))
	close(api.begin)
	<-api.drained
	require.NoError(tb, c.Taken(ctx, vmis, api.lastVersion()))
	require.NoError(tb, c.Flush(ctx))
	stop()
	deriving.Wait()
	cancel()
	require.NoError(tb, <-done)
	return sink
}

// timedSink notes how long after its change was due each fact is committed, and all that is derived of it.
type timedSink struct {
	*store.ClusterStore
	api               *apiServer
	mu                sync.Mutex
	waiting           []time.Time // when the changes were due that are recorded and not derived
	recorded, derived []float64   // ms
}

// Append stores facts and notes when that is done.
func (s *timedSink) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	news, err := s.ClusterStore.Append(ctx, facts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range news.Facts {
		if version, bad := strconv.Atoi(f.Object.ResourceVersion); bad == nil && version > listVersion {
			due := s.api.dueTime(version - listVersion)
			s.recorded, s.waiting = append(s.recorded, millisecondsSince(due)), append(s.waiting, due)
		}
	}
	return news, err
}

// keepUp derives as a leader does until ctx ends and nothing is left.
func (s *timedSink) keepUp(ctx context.Context, tb testing.TB) {
	tb.Helper()
	for last := false; ; {
		s.mu.Lock()
		before := len(s.waiting)
		s.mu.Unlock()
		_, rest, err := s.KeepUp(tb.Context())
		if err != nil {
			tb.Errorf("derive: %v", err)
			return
		}
		if rest == 0 {
			continue
		}
		s.mu.Lock()
		for _, due := range s.waiting[:before] {
			s.derived = append(s.derived, millisecondsSince(due))
		}
		s.waiting = s.waiting[before:]
		s.mu.Unlock()
		if last {
			return
		}
		last = s.Rest(ctx, rest) != nil // what was recorded since is derived, too
	}
}

func millisecondsSince(since time.Time) float64 {
	return float64(time.Since(since).Microseconds()) / 1000
}

// computeQuantile returns what a share of them does not exceed.
func computeQuantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
