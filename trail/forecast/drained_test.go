package forecast_test

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

var (
	drains  = flag.Int("forecast.drains", 200, "how many simulated drains are forecast")
	failing = flag.Float64("forecast.failing", 0.15, "share of attempts that fail in the worst of their clusters")
)

// TestForecastsOfDrains forecasts simulated drains when they begin, from what was seen by then, and compares with what became
// of them. The simulation knows KubeVirt's controllers, not the model: sizes, failures and limits differ from one cluster to
// another.
func TestForecastsOfDrains(t *testing.T) {
	t.Parallel()
	count, slack := *drains, 0.05
	if testing.Short() {
		count, slack = min(count, 40), 0.15
	}
	var within, below, above int
	var errors []float64
	for seed := range uint64(count) {
		run := sim.NewDrained(seed, *failing)
		d := newNode(t, run).Forecast()
		last := time.Duration(0)
		for _, g := range d.Guests {
			if g.Effect == trail.DrainMoves {
				left, there := run.Left[g.Namespace+"/"+g.VMI]
				if there { // else it had just left, which was not seen yet
					require.False(t, left.IsZero(), "%s/%s of seed %d is said to move", g.Namespace, g.VMI, seed)
					last = max(last, left.Sub(run.Began))
				}
			}
		}
		if last == 0 {
			continue
		}
		low, mid, high := time.Duration(d.Band.Low), time.Duration(d.Band.Mid), time.Duration(d.Band.High)
		switch {
		case last < low:
			below++
		case last > high:
			above++
		default:
			within++
		}
		errors = append(errors, math.Abs(mid.Seconds()-last.Seconds())/last.Seconds())
	}
	slices.Sort(errors)
	median, all := errors[len(errors)/2], len(errors)
	t.Logf("%d drains: %d within the band, %d below, %d above; error of the middle: median %.0f %%, nine of ten below %.0f %%",
		all, within, below, above, 100*median, 100*errors[9*all/10])
	require.InDelta(t, 0.8, float64(within)/float64(all), slack)
	require.Less(t, median, 0.2+slack)
}

// newNode returns a node as it was known when its drain began, from all that was seen by then.
func newNode(t *testing.T, run sim.Drained) forecast.Node {
	t.Helper()
	tr := tracker.New("c1")
	var facts []trail.Fact
	for _, o := range run.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	facts = slices.DeleteFunc(facts, func(f trail.Fact) bool { return f.ObservedAt.After(run.Began) })
	seen := trail.DeriveAll(facts, trail.DefaultThresholds(), run.Began)
	var rows forecast.Rows
	for _, d := range seen.Rows {
		for i := range d.Placements {
			rows.Placements = append(rows.Placements, &d.Placements[i])
		}
		for i := range d.Evacuations {
			rows.Evacuations = append(rows.Evacuations, &d.Evacuations[i])
		}
		for i := range d.Migrations {
			rows.Migrations = append(rows.Migrations, &d.Migrations[i])
		}
	}
	settings := trail.NewEnv(facts).Settings("c1")
	return forecast.NewNode("c1", run.Node, run.Began, *settings[len(settings)-1].KubeVirt, rows)
}
