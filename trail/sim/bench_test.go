package sim

import (
	"testing"

	"github.com/evictrail/evictrail/trail"
)

// BenchmarkDetector takes an hour of a cluster of 10,000 VMIs on 200 nodes through the Tracker and derives all rows.
func BenchmarkDetector(b *testing.B) {
	r := Big(1)
	var facts []trail.Fact
	b.Run("observe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			facts = factsOf(r)
		}
		b.ReportMetric(float64(len(r.Observations))*float64(b.N)/b.Elapsed().Seconds(), "observations/s")
		b.ReportMetric(float64(len(facts)), "facts")
	})
	b.Run("derive", func(b *testing.B) {
		b.ReportAllocs()
		loops := 0
		for b.Loop() {
			_, found := derive(facts, r.End)
			loops = len(found)
		}
		b.ReportMetric(float64(len(facts))*float64(b.N)/b.Elapsed().Seconds(), "facts/s")
		b.ReportMetric(float64(loops), "loops")
	})
}
