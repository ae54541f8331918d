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
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestLatency has a watch of VMIs deliver changes at a steady rate, each of which says something new, and tells how long after a change was
// due the row that says so was committed, with all that is derived of it.
func TestLatency(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, rate := range []int{200, 1000} {
		var p50, p99 []float64
		for range *rounds {
			all := latencies(t, 50**size, rate, rate**size/5)
			p50, p99 = append(p50, quantile(all, 0.5)), append(p99, quantile(all, 0.99))
		}
		what := fmt.Sprintf("from a change to its row, at %d a second: ", rate)
		add(row{what: what + "p50", unit: "ms", ours: p50}, row{what: what + "p99", unit: "ms", ours: p99})
	}
}

// latencies gives those of the changes, in ms, over so many VMIs.
func latencies(tb testing.TB, objects, rate, changes int) []float64 {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	s, _ := newStore(tb)
	api := newWatched(tb, objects, changes)
	api.telling, api.rate = 1, rate
	sink := &timedSink{ClusterStore: s.For("bench", "bench"), api: api}
	require.NoError(tb, sink.Lead(ctx, "this", trail.DefaultThresholds()))
	defer storetest.KeepUp(tb, sink.ClusterStore)()
	c, done := collect(ctx, tb, api, sink)
	require.NoError(tb, c.Taken(ctx, vmis, fmt.Sprint(listVersion)))
	require.NoError(tb, c.Flush(ctx))
	close(api.begin)
	<-api.drained
	require.NoError(tb, c.Taken(ctx, vmis, api.lastVersion()))
	require.NoError(tb, c.Flush(ctx))
	cancel()
	require.NoError(tb, <-done)
	require.NotEmpty(tb, sink.took)
	return sink.took
}

// timedSink notes how long after its change was due each fact is committed.
type timedSink struct {
	*store.ClusterStore
	api  *apiServer
	mu   sync.Mutex
	took []float64 // ms
}

// Append stores facts and notes when that is done.
func (s *timedSink) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	news, err := s.ClusterStore.Append(ctx, facts)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range news.Facts {
		if version, bad := strconv.Atoi(f.Object.ResourceVersion); bad == nil && version > listVersion {
			s.took = append(s.took, float64(now.Sub(s.api.due(version-listVersion)).Microseconds())/1000)
		}
	}
	return news, err
}

// quantile gives what a share of them does not exceed.
func quantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
