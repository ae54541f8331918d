package tally_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/store/tally"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

const aDay = 24 * time.Hour

// day is what was counted on one.
type day struct {
	Day                                  time.Time
	Moved, Failed, Aborted               int
	Classes, Needed, NotNeeded           int
	Helped, Harmed, Met, Missed          int
	Loops, DualRetry, Gaps               int
	Unscheduled, ControlPlane, DataPlane int
}

const (
	countedQuery = `
SELECT day, moved, failed, aborted,
    failed_scheduling + failed_control_plane + failed_data_plane + failed_post_copy + failed_guest_lost + failed_unknown AS classes,
    needed, not_needed, helped, harmed, objectives_met AS met, objectives_missed AS missed, loops, dual_retry_loops AS dual_retry, gaps,
    failed_scheduling AS unscheduled, failed_control_plane AS control_plane, failed_data_plane AS data_plane
FROM evictrail_v1.cluster_days
WHERE cluster = 'c1'
ORDER BY day`
	// wantedQuery asks the same of the rows, day by day.
	wantedQuery = `
SELECT d.day::date AS day, m.*, o.*, l.*, g.*, u.*
FROM generate_series(@first::date, @last::date, interval '1 day') AS d(day)
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE outcome = 'succeeded') AS moved, count(*) FILTER (WHERE outcome = 'failed') AS failed,
      count(*) FILTER (WHERE outcome = 'aborted') AS aborted, count(*) FILTER (WHERE outcome = 'failed') AS classes,
      count(*) FILTER (WHERE need = 'needed') AS needed, count(*) FILTER (WHERE need = 'not_needed') AS not_needed,
      count(*) FILTER (WHERE benefit = 'helped') AS helped, count(*) FILTER (WHERE benefit = 'harmed') AS harmed
  FROM evictrail_v1.migrations
  WHERE cluster = 'c1' AND date_trunc('day', finished_at, 'UTC') = d.day::timestamp AT TIME ZONE 'UTC'
) AS m
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE objective_met) AS met, count(*) FILTER (WHERE objective_met = false) AS missed
  FROM evictrail_v1.evacuations
  WHERE cluster = 'c1' AND date_trunc('day', marked_at, 'UTC') = d.day::timestamp AT TIME ZONE 'UTC'
) AS o
CROSS JOIN LATERAL (
  SELECT count(*) AS loops, count(*) FILTER (WHERE kind = 'dual_retry') AS dual_retry
  FROM evictrail_v1.loops
  WHERE cluster = 'c1' AND date_trunc('day', opened_at, 'UTC') = d.day::timestamp AT TIME ZONE 'UTC' AND coalesce(closed_by, '') <> 'refuted'
) AS l
CROSS JOIN LATERAL (
  SELECT count(*) AS gaps
  FROM evictrail_v1.gaps
  WHERE cluster = 'c1'
    AND tstzrange(opened_at, closed_at, '[]') && tstzrange(d.day::timestamp AT TIME ZONE 'UTC', (d.day + interval '1 day')::timestamp AT TIME ZONE 'UTC')
) AS g
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE failure_class = 'scheduling') AS unscheduled, count(*) FILTER (WHERE failure_class = 'control_plane') AS control_plane,
      count(*) FILTER (WHERE failure_class = 'data_plane') AS data_plane
  FROM evictrail_v1.migrations
  WHERE cluster = 'c1' AND outcome = 'failed' AND date_trunc('day', finished_at, 'UTC') = d.day::timestamp AT TIME ZONE 'UTC'
) AS u
ORDER BY 1`
)

// fillDays stores some simulated histories of hours, each a day after the one before, and returns when the last ended.
func fillDays(t *testing.T, s *store.Store, histories int) (first, end time.Time) {
	t.Helper()
	require.NoError(t, s.Judge(t.Context(), "c1", storetest.Brief))
	tr := tracker.New("c1")
	first = storetest.March
	for i := range histories {
		run := sim.NewAt(uint64(i+2), first.Add(time.Duration(i)*aDay+20*time.Hour)) // some end on the next day
		end = run.End
		var facts []trail.Fact
		for _, o := range run.Observations {
			facts = append(facts, tr.Observe(o)...)
		}
		_, err := s.Append(t.Context(), "c1", facts)
		require.NoError(t, err)
	}
	return first, end
}

// queryDays returns the days of a query, at midnight UTC.
func queryDays(t *testing.T, s *store.Store, query string, args ...any) []day {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), query, args...)
	require.NoError(t, err)
	days, err := pgx.CollectRows(rows, pgx.RowToStructByName[day])
	require.NoError(t, err)
	return days
}

// TestDaysAreThoseOfTheRows counts the days of simulated histories: they are what the views say day by day, also after rows changed, for as long back as is counted
// again.
func TestDaysAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	none, err := tally.Count(t.Context(), s.DB, "c1", storetest.March)
	require.NoError(t, err)
	require.Zero(t, none, "nothing is recorded yet")
	_, end := fillDays(t, s, 3)
	requireDays := func() {
		t.Helper()
		got := queryDays(t, s, countedQuery)
		require.NotEmpty(t, got)
		want := queryDays(t, s, wantedQuery, pgx.StrictNamedArgs{"first": got[0].Day, "last": got[len(got)-1].Day})
		require.Equal(t, want, got)
	}
	count := func(at time.Time) int {
		t.Helper()
		n, err := tally.Count(t.Context(), s.DB, "c1", at)
		require.NoError(t, err)
		return n
	}
	all := count(end)
	require.GreaterOrEqual(t, all, 3)
	requireDays()
	sum := day{}
	for _, d := range queryDays(t, s, countedQuery) {
		sum.Moved, sum.Failed, sum.Loops, sum.Met, sum.Missed = sum.Moved+d.Moved, sum.Failed+d.Failed, sum.Loops+d.Loops, sum.Met+d.Met, sum.Missed+d.Missed
	}
	require.Positive(t, sum.Moved)
	require.Positive(t, sum.Failed)
	require.Positive(t, sum.Loops)

	change := func(where string) {
		t.Helper()
		_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.migrations SET outcome = 'aborted', failure_class = NULL WHERE cluster = 'c1' AND outcome = 'succeeded' AND "+where)
		require.NoError(t, err)
	}
	change("finished_at > (SELECT max(finished_at) - interval '1 hour' FROM evictrail.migrations)")
	require.Equal(t, 2, count(end.Add(time.Minute)), "today and yesterday")
	requireDays()
	change("true")
	require.Equal(t, 2, count(end.Add(2*time.Minute)))
	first := queryDays(t, s, countedQuery)[0]
	require.Positive(t, first.Moved, "an old day waits")
	require.Equal(t, all, count(end.Add(aDay)), "all of these once a day")
	requireDays()
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.clusters SET alive_at = alive_at + interval '40 days'")
	require.NoError(t, err)
	require.Equal(t, all+40, count(end.AddDate(0, 1, 0)), "all there are once a month")
	require.Equal(t, 35, count(end.AddDate(0, 1, 1)), "so many once a day")
	requireDays()
}
