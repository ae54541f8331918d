package retention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// BenchmarkRetain drops a month in which a large cluster made some 300,000 facts, while facts of another cluster are stored without a pause: it reports how long that
// takes, and how long a batch of those takes at most, before and during that time.
func BenchmarkRetain(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s := storetest.New(b)
		require.NoError(b, s.EnsureMonths(b.Context(), storetest.March.AddDate(0, 2, 0)))
		n := 0
		tr := tracker.New("c1")
		sim.LongUntil(1, 5_000, 6, storetest.March.Add(-time.Minute), func(seen []tracker.Observation) {
			var facts []trail.Fact
			for _, o := range seen {
				facts = append(facts, tr.Observe(o)...)
			}
			for some := range slices.Chunk(facts, 5000) {
				added, err := s.Import(b.Context(), "c1", some)
				require.NoError(b, err)
				n += added
			}
		})
		_, err := s.DeriveStale(b.Context(), "c1", nil)
		require.NoError(b, err)
		_, err = s.DB.Exec(b.Context(), "ANALYZE")
		require.NoError(b, err)
		stop, took := make(chan bool), make(chan []time.Duration)
		write := func() {
			other, rv := tracker.New(fmt.Sprintf("c%d", time.Now().UnixNano())), 0
			var all []time.Duration
			for {
				select {
				case <-stop:
					took <- all
					return
				default:
				}
				facts := observeCordons(other, fmt.Sprintf("n%d", rv%49), &rv, storetest.March.AddDate(0, 2, 0).Add(time.Duration(rv)*time.Second))
				began := time.Now()
				_, err := s.Append(b.Context(), "c2", facts)
				if err != nil {
					b.Error(err)
				}
				all = append(all, time.Since(began))
				time.Sleep(2 * time.Millisecond)
			}
		}
		go write()
		time.Sleep(2 * time.Second)
		stop <- true
		before := <-took
		go write()
		b.StartTimer()
		began := time.Now()
		did, err := retention.Retain(b.Context(), s.DB, retention.Policy{Facts: 7 * 24 * time.Hour, Rows: 400 * 24 * time.Hour}, dropMarch)
		elapsed := time.Since(began)
		b.StopTimer()
		stop <- true
		during := <-took
		require.NoError(b, err)
		require.Empty(b, did.Waits)
		b.ReportMetric(float64(n), "facts")
		b.ReportMetric(float64(did.Kept), "kept")
		b.ReportMetric(elapsed.Seconds(), "s/drop")
		for name, all := range map[string][]time.Duration{"before": before, "during": during} {
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "ms-most-"+name)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-median-"+name)
		}
	}
}
