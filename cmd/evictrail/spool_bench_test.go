package main

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// BenchmarkOneFact takes one fact at a time from its sight to its row, with nothing else to do: straight into the database, and through the
// spool.
func BenchmarkOneFact(b *testing.B) {
	db, err := store.Open(b.Context(), storetest.NewURL(b), "")
	require.NoError(b, err)
	b.Cleanup(db.Close)
	sink := db.For("c1", "r")
	require.NoError(b, sink.Lead(b.Context(), "this", trail.DefaultThresholds()))
	tr, version := tracker.New("c1"), 0
	next := func() []trail.Fact {
		version++
		name := fmt.Sprint("db-", version)             // each of a VM of its own, so that there is no more to derive each time
		namespace := fmt.Sprint("shop-", version/1000) // few of each namespace: an hour's Events of one are bounded
		return tr.Observe(tracker.KubeEventObservation{
			Seen: tracker.Seen{At: nowUTC()}, Meta: tracker.Meta{UID: name, Namespace: namespace, Name: name, ResourceVersion: fmt.Sprint(version)},
			About: tracker.Involved{Kind: string(trail.ObjectVMI), Namespace: namespace, Name: name, UID: "u-" + name}, Reason: "SyncFailed", Count: 1, LastAt: nowUTC(),
		})
	}
	b.Run("straight", func(b *testing.B) {
		for b.Loop() {
			_, err := sink.Append(b.Context(), next())
			require.NoError(b, err)
		}
	})
	b.Run("spool", func(b *testing.B) {
		s, err := spool.Open(spool.Options{Dir: b.TempDir(), Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: nowUTC})
		require.NoError(b, err)
		storing := collector.Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: nowUTC}
		stopping, done := make(chan struct{}), make(chan struct{})
		go func() { storing.Drain(b.Context(), s, stopping); close(done) }()
		var kept time.Duration
		n := 0
		for b.Loop() {
			began := time.Now()
			require.NoError(b, s.Append(b.Context(), next()))
			kept += time.Since(began)
			n++
			require.NoError(b, s.WaitEmpty(b.Context()))
		}
		b.ReportMetric(kept.Seconds()*1000/float64(n), "ms-to-disk")
		close(stopping)
		<-done
		require.NoError(b, s.Close())
	})
}
