package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestLong plays two days: they follow each other without a break, end where other runs begin, and are the same each time.
func TestLong(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	play := func() (facts []trail.FactID, days []int) {
		tr := tracker.New("long")
		last := time.Time{}
		Long(1, 5_000, 2, func(all []tracker.Observation) {
			for _, o := range all {
				_, at := kindOf(o)
				require.False(t, at.Before(last))
				last = at
				for _, f := range tr.Observe(o) {
					facts = append(facts, f.ID)
				}
			}
			days = append(days, len(facts))
		})
		require.WithinDuration(t, epoch, last, time.Minute)
		return facts, days
	}
	facts, days := play()
	require.Len(t, days, 3, "each day, and what was on its way at the end")
	require.Greater(t, days[0], 40_000)
	require.Greater(t, days[1], days[0]+20_000)
	again, _ := play()
	require.Equal(t, facts, again)
}
