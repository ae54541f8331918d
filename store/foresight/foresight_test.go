package foresight_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/foresight"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// kept is a forecast beside what became of its drain.
type kept struct {
	Node           string
	MadeAt         time.Time
	Moves          int
	Low, Mid, High time.Duration
	Outcome        *string
	Took           *time.Duration
	Result         *string
}

const keptQuery = `
SELECT node, made_at, moves, low, mid, high, outcome, took, result
FROM evictrail_v1.drain_forecasts
WHERE cluster = 'c1'`

// emptyingDrain returns a simulated drain that empties its node, and its facts.
func emptyingDrain(t *testing.T) (sim.Drained, []trail.Fact) {
	t.Helper()
	for seed := uint64(0); ; seed++ {
		run := sim.NewDrained(seed, 0.15)
		if len(run.Left) < 4 {
			continue
		}
		last := run.Began
		for _, at := range run.Left {
			if at.IsZero() {
				last = at
				break
			}
			if at.After(last) {
				last = at
			}
		}
		if last.IsZero() {
			continue
		}
		tr := tracker.New("c1")
		var facts []trail.Fact
		for _, o := range run.Observations {
			facts = append(facts, tr.Observe(o)...)
		}
		return run, facts
	}
}

// TestForecastsAreKeptAndCompared records a cluster up to a drain, has the drain forecast, records the rest and compares.
// The forecast is that of all facts in memory, and is made once.
func TestForecastsAreKeptAndCompared(t *testing.T) {
	t.Parallel()
	run, facts := emptyingDrain(t)
	at := run.Began.Add(20 * time.Second).Truncate(time.Microsecond)
	later := slices.IndexFunc(facts, func(f trail.Fact) bool { return f.ObservedAt.After(at) })
	s := storetest.New(t)
	storetest.Record(t, s, facts[:later])
	n, err := foresight.Record(t.Context(), s.DB, "c1", at)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = foresight.Record(t.Context(), s.DB, "c1", at.Add(time.Minute))
	require.NoError(t, err)
	require.Zero(t, n, "a drain is forecast once")
	results, err := foresight.Judge(t.Context(), s.DB, "c1", at)
	require.NoError(t, err)
	require.Empty(t, results, "the drain goes on")

	want := forecastInMemory(facts[:later], run.Node, at)
	got, err := read.New(s.DB).DrainForecastAt(t.Context(), "c1", run.Node, at)
	require.NoError(t, err)
	require.False(t, got.DrainingSince.IsZero())
	got.DrainingSince = time.Time{}
	require.Equal(t, want, got)
	k := loadKept(t, s)
	require.Equal(t, kept{
		Node: run.Node, MadeAt: at, Moves: want.Moving,
		Low: time.Duration(want.Band.Low), Mid: time.Duration(want.Band.Mid), High: time.Duration(want.Band.High),
	}, k)

	storetest.Record(t, s, facts[later:])
	results, err = foresight.Judge(t.Context(), s.DB, "c1", run.End)
	require.NoError(t, err)
	require.Len(t, results, 1)
	again, err := foresight.Judge(t.Context(), s.DB, "c1", run.End)
	require.NoError(t, err)
	require.Empty(t, again, "each is counted once")
	k = loadKept(t, s)
	require.Equal(t, "emptied", *k.Outcome)
	require.Equal(t, results[0], *k.Result)
	last := slices.MaxFunc(valuesOf(run.Left), time.Time.Compare)
	require.InDelta(t, last.Sub(at).Seconds(), k.Took.Seconds(), 3)
	require.Equal(t, map[bool]string{true: "within"}[*k.Took >= k.Low && *k.Took <= k.High], map[bool]string{true: "within"}[*k.Result == "within"])
}

func valuesOf(left map[string]time.Time) (out []time.Time) {
	for _, at := range left {
		out = append(out, at)
	}
	return out
}

func loadKept(t *testing.T, s *store.Store) kept {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), keptQuery)
	require.NoError(t, err)
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[kept])
	require.NoError(t, err)
	k.MadeAt = k.MadeAt.UTC()
	return k
}

// forecastInMemory returns the forecast that all facts make.
func forecastInMemory(facts []trail.Fact, node string, at time.Time) forecast.Drain {
	var rows forecast.Rows
	for _, d := range trail.DeriveAll(facts, trail.DefaultThresholds(), at).Rows {
		for i := range d.Placements {
			rows.Placements = append(rows.Placements, &d.Placements[i])
		}
		for i := range d.Evacuations {
			rows.Evacuations = append(rows.Evacuations, &d.Evacuations[i])
		}
		for i := range d.Requests {
			rows.Requests = append(rows.Requests, &d.Requests[i])
		}
		for i := range d.Migrations {
			rows.Migrations = append(rows.Migrations, &d.Migrations[i])
		}
	}
	settings := trail.NewEnv(facts).Settings("c1")
	return forecast.NewNode("c1", node, at, *settings[len(settings)-1].KubeVirt, rows).Forecast()
}
