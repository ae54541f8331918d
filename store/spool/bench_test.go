package spool

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// BenchmarkSpool takes facts and drains them, in batches of several sizes. Each batch is one synced commit when it is taken and one when
// it is stored.
func BenchmarkSpool(b *testing.B) {
	for _, size := range []int{1, 100, 1000, 2000} {
		for _, sort := range []string{"requests", "objects"} {
			b.Run(fmt.Sprintf("%s/%d", sort, size), func(b *testing.B) {
				s, err := Open(Options{Dir: b.TempDir(), Cluster: "c1", Size: 1 << 40, Log: slog.New(slog.DiscardHandler), Clock: time.Now})
				require.NoError(b, err)
				facts := makeRefusalFacts(0, 20_000)
				if sort == "objects" {
					facts = makePlacementFacts(0, 20_000)
				}
				at := func(i int) []trail.Fact { from := i * size % len(facts); return facts[from : from+size] }
				var taking time.Duration
				n := 0
				for b.Loop() {
					began := time.Now()
					require.NoError(b, s.Append(b.Context(), at(n)))
					taking += time.Since(began)
					n++
				}
				b.ReportMetric(float64(n*size)/taking.Seconds(), "taken/s")
				began, out := time.Now(), 0
				for s.Condition().Facts > 0 && time.Since(began) < time.Second {
					got, _, err := s.Next(b.Context())
					require.NoError(b, err)
					s.Confirm()
					out += len(got)
				}
				b.ReportMetric(float64(out)/time.Since(began).Seconds(), "drained/s")
				require.NoError(b, s.Close())
			})
		}
	}
}
