package read_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
)

var waveCount = flag.Int("forecast.waves", 15, "how many upgrade waves are forecast")

const waveForecastQuery = `
SELECT low, mid, high
FROM evictrail_v1.upgrade_waves
WHERE cluster = 'c1'
  AND mid IS NOT NULL`

// waveForecast is the forecast of an upgrade wave.
type waveForecast struct{ Low, Mid, High time.Duration }

// TestForecastsOfUpgradeWaves asks in the middle of simulated upgrades how much longer they take, and compares with how long they took:
// at least two of three are within the band. With more waves, -forecast.waves says how many are.
//
//nolint:tparallel // a subtest counts, and its database is dropped before the next
func TestForecastsOfUpgradeWaves(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	var within, sooner, later int
	var errors []float64
	for seed := uint64(100); within+sooner+later < *waveCount; seed++ {
		run := sim.NewUpgraded(seed)
		if len(run.Upgrades) > 1 || run.Methods == nil {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			asked := run.Upgrades[0].Add(2*time.Minute + time.Duration(dice.Int64N(int64(10*time.Minute))))
			facts := observeAll(run.Observations)
			n := slices.IndexFunc(facts, func(f trail.Fact) bool { return f.ObservedAt.After(asked) })
			asked = facts[n-1].ObservedAt
			s := storetest.New(t)
			storetest.Record(t, s, facts[:n])
			rows, err := s.DB.Query(t.Context(), waveForecastQuery)
			require.NoError(t, err)
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[waveForecast])
			require.NoError(t, err)
			if len(found) == 0 { // it is over, or has hardly begun
				return
			}
			require.Len(t, found, 1)
			f := found[0]
			require.Less(t, f.Low, f.Mid)
			require.Less(t, f.Mid, f.High)
			took := time.Duration(0)
			for _, x := range findSpans(facts, trail.DeriveAll(facts, trail.DefaultThresholds(), run.End), run.Methods) {
				switch {
				case x.since.After(asked) || x.stays:
				case x.until.IsZero():
					took = run.End.Sub(asked)
				case x.until.After(asked):
					took = max(took, x.until.Sub(asked))
				}
			}
			errors = append(errors, max(float64(f.Mid)/float64(max(took, time.Second))-1, 1-float64(f.Mid)/float64(max(took, time.Second))))
			switch {
			case took < f.Low:
				sooner++
			case took > f.High:
				later++
			default:
				within++
			}
		})
	}
	slices.Sort(errors)
	t.Logf("of %d waves %d took as long as was forecast, %d less, %d more; error of the middle: median %.0f %%, nine of ten below %.0f %%",
		*waveCount, within, sooner, later, 100*errors[len(errors)/2], 100*errors[len(errors)*9/10])
	require.Greater(t, 3*within, 2**waveCount)
}
