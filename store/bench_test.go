package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// BenchmarkAppend stores incidents of VMs, each marked, failing once and moving, in one batch or fact by fact, and reports
// facts a second with everything that is derived of them.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 100, 2000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := storetest.New(b)
			stored := 0
			for round := 0; b.Loop(); round++ {
				cluster := fmt.Sprintf("c%d", round)
				for facts := incident(cluster, 20); len(facts) > 0; facts = facts[min(size, len(facts)):] {
					batch := facts[:min(size, len(facts))]
					news, err := s.Append(b.Context(), cluster, batch)
					require.NoError(b, err)
					stored += len(news.Facts)
				}
			}
			b.ReportMetric(float64(stored)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// BenchmarkDerive derives one VM with a long history.
func BenchmarkDerive(b *testing.B) {
	for _, vms := range []int{1, 100} {
		facts := incident("c1", vms)
		for i := range facts {
			if facts[i].Subject.Kind == trail.SubjectVMI { // all of one VM
				facts[i].Subject = trail.VMISubject("shop", "db-0")
			}
		}
		env := trail.NewEnv(facts)
		b.Run(fmt.Sprintf("facts=%d", len(facts)), func(b *testing.B) {
			for b.Loop() {
				trail.Derive(trail.VMISubject("shop", "db-0"), facts, env, start)
			}
			b.ReportMetric(float64(len(facts))*float64(b.N)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}
