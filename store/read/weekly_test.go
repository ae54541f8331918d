package read_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestWeeklyAddsUpWhatAllFactsMake records simulated clusters across the end of a week, with objectives and a node pool,
// and compares a report of two weeks with the rows that all facts make. Who sees one namespace reads its part alone.
func TestWeeklyAddsUpWhatAllFactsMake(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		run := sim.NewAt(seed, time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)) // the next week begins within each run
		facts := labelNodes(run, run.End.Add(-time.Hour))
		seen := facts[len(facts)-1].ObservedAt.Truncate(time.Microsecond)
		thresholds := trail.DefaultThresholds()
		thresholds.Objectives = trail.Objectives{string(trail.AnyRequester): 2 * time.Minute}
		facts = append(facts, measureMigrations(tracker.New("c1"), trail.DeriveAll(facts, thresholds, seen), seen)...)
		s := storetest.New(t)
		require.NoError(t, s.Judge(t.Context(), "c1", thresholds))
		storetest.Record(t, s, facts)
		c := trail.DeriveAll(facts, thresholds, seen)
		got, err := s.Weekly(t.Context(), trail.WeeklyQuery{Weeks: 2})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC), got[0].From)
		require.NotNil(t, got[0].Recorder)
		checkWeeklyDowntimes(t, addUpWeeks(findDowntimes(c), seen), got[0].Downtimes)
		checkWeeklyMoves(t, addUpCosts(c), got[0].Moves)

		met, missed := 0, 0
		for _, d := range c.Rows {
			for _, x := range d.Evacuations {
				switch {
				case x.ObjectiveMet == nil:
				case *x.ObjectiveMet:
					met++
				default:
					missed++
				}
			}
		}
		require.Positive(t, met)
		for _, o := range got[0].Objectives {
			require.Equal(t, "gpu", o.Pool)
			met, missed = met-o.Met, missed-o.Missed
			require.InDelta(t, 0.05*float64(o.Met+o.Missed)-float64(o.Missed), o.BudgetLeft, 1e-9)
		}
		require.Zero(t, met)
		require.Zero(t, missed)

		namespace := got[0].Moves[0].Namespace
		mine, err := s.SeenBy(trail.Only("c1", namespace)).Weekly(t.Context(), trail.WeeklyQuery{Weeks: 2})
		require.NoError(t, err)
		filtered, err := s.Weekly(t.Context(), trail.WeeklyQuery{Weeks: 2, Namespace: namespace})
		require.NoError(t, err)
		for _, part := range [][]trail.Weekly{mine, filtered} {
			require.Len(t, part, 1)
			require.Equal(
				t,
				slices.DeleteFunc(
					slices.Clone(got[0].Moves),
					func(m trail.WeeklyMoves) bool { return m.Namespace != namespace },
				),
				part[0].Moves,
			)
			require.False(
				t,
				slices.ContainsFunc(
					part[0].Downtimes,
					func(d trail.WeeklyDowntimes) bool { return d.Namespace != namespace },
				),
			)
			require.False(
				t,
				slices.ContainsFunc(
					part[0].Objectives,
					func(o trail.WeeklyObjectives) bool { return o.Namespace != namespace },
				),
			)
		}
		require.False(
			t,
			slices.ContainsFunc(mine[0].Objectives, func(o trail.WeeklyObjectives) bool { return o.Pool != "" }),
		)
		nothing, err := s.SeenBy(trail.Only("c2", namespace)).Weekly(t.Context(), trail.WeeklyQuery{})
		require.NoError(t, err)
		require.Empty(t, nothing)

		before, err := s.Weekly(
			t.Context(),
			trail.WeeklyQuery{Weeks: 1, Until: time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC)},
		)
		require.NoError(t, err)
		require.NotEmpty(t, before[0].Moves)
		require.False(
			t,
			slices.ContainsFunc(before[0].Moves, func(m trail.WeeklyMoves) bool { return m.Week.After(before[0].To) }),
		)
	}
}

// checkWeeklyDowntimes compares downtimes of weeks, planned or not.
func checkWeeklyDowntimes(t *testing.T, want []weekly, got []trail.WeeklyDowntimes) {
	t.Helper()
	var sums []weekly
	for _, d := range got {
		minutes := time.Duration(d.UnplannedTime + d.PlannedTime).Minutes()
		sums = append(sums, weekly{d.Week, d.Namespace, d.Unplanned + d.Planned, math.Floor(1000*minutes+0.5) / 1000})
	}
	require.ElementsMatch(t, want, sums)
}

// checkWeeklyMoves compares what migrations of weeks cost, by namespace.
func checkWeeklyMoves(t *testing.T, costs []weeklyCost, got []trail.WeeklyMoves) {
	t.Helper()
	type key struct {
		week      time.Time
		namespace string
	}
	sums := map[key]*trail.WeeklyMoves{}
	for _, c := range costs {
		k := key{c.Week, c.Namespace}
		if sums[k] == nil {
			sums[k] = &trail.WeeklyMoves{Week: c.Week, Namespace: c.Namespace}
		}
		m := sums[k]
		m.Moves, m.Failed, m.NotNeeded = m.Moves+c.Moves, m.Failed+c.Failed, m.NotNeeded+c.NotNeeded
		m.Bytes += c.DataProcessed
		m.Measured, m.NotMeasured = m.Measured+c.Measured, m.NotMeasured+c.NotMeasured
		m.ReservedTime += trail.Span(c.ReservedTime * float64(time.Second))
	}
	var want []trail.WeeklyMoves
	for _, m := range sums {
		want = append(want, *m)
	}
	require.Len(t, got, len(want))
	for i := range got {
		at := slices.IndexFunc(
			want,
			func(m trail.WeeklyMoves) bool { return m.Week.Equal(got[i].Week) && m.Namespace == got[i].Namespace },
		)
		require.GreaterOrEqual(t, at, 0)
		require.InDelta(t, float64(want[at].ReservedTime), float64(got[i].ReservedTime), float64(time.Millisecond))
		g, w := got[i], want[at]
		g.ReservedTime, w.ReservedTime = 0, 0
		require.Equal(t, w, g)
	}
}
