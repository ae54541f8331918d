package read_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
)

// downtime is a row of view downtimes.
type downtime struct {
	Namespace, VMI, Node string
	DownAt               time.Time
	UpAt                 *time.Time
	Cause                trail.Ending
	Planned              bool
}

// weekly is a row of view weekly_downtimes, of all causes.
type weekly struct {
	Week      time.Time
	Namespace string
	Downtimes int
	Minutes   float64
}

const (
	downtimesQuery = `
SELECT namespace, vmi, node, down_at, up_at, coalesce(cause, ''), planned
FROM evictrail_v1.downtimes
WHERE cluster = 'c1'
ORDER BY down_at, namespace, vmi, node`
	weeklyQuery = `
SELECT week, namespace, sum(downtimes), sum(minutes)
FROM evictrail_v1.weekly_downtimes
WHERE cluster = 'c1'
GROUP BY week, namespace
ORDER BY week, namespace`
)

// TestDowntimesAreThoseOfTheGuests records simulated clusters across the end of a week, and compares when VMs did not run with
// the guests that all facts make.
func TestDowntimesAreThoseOfTheGuests(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		sunday := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC) // the next week begins within each run
		run := sim.NewAt(seed, sunday)
		facts := observeAll(run.Observations)
		s := storetest.New(t)
		storetest.Record(t, s, facts)
		seen := facts[len(facts)-1].ObservedAt.Truncate(time.Microsecond)
		want := findDowntimes(trail.DeriveAll(facts, trail.DefaultThresholds(), seen))
		require.NotEmpty(t, want)
		rows, err := s.DB.Query(t.Context(), downtimesQuery)
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[downtime])
		require.NoError(t, err)
		for i := range got {
			got[i].DownAt = got[i].DownAt.UTC()
			if up := got[i].UpAt; up != nil {
				*up = up.UTC()
			}
		}
		require.Equal(t, want, got)

		rows, err = s.DB.Query(t.Context(), weeklyQuery)
		require.NoError(t, err)
		weeks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[weekly])
		require.NoError(t, err)
		for i := range weeks {
			weeks[i].Week = weeks[i].Week.UTC()
			weeks[i].Minutes = float64(int(1000*weeks[i].Minutes+0.5)) / 1000
		}
		require.Equal(t, addUpWeeks(want, seen), weeks)
	}
}

// findDowntimes returns when VMs did not run, in the order of downtimesQuery.
func findDowntimes(c *trail.Cluster) []downtime {
	var out []downtime
	var all []trail.Placement
	for _, d := range c.Rows {
		all = append(all, d.Placements...)
	}
	for _, p := range all {
		if p.LeftBy != trail.LeftEnd {
			continue
		}
		d := downtime{p.Namespace, p.VMI, p.Node, p.ToAt.UTC().Truncate(time.Microsecond), nil, p.EndedBy, p.EndedBy == trail.EndingStopped || p.EndedBy == trail.EndingDeleted}
		for _, b := range all {
			from := b.FromAt.UTC().Truncate(time.Microsecond)
			if b.Namespace == p.Namespace && b.VMI == p.VMI && b.VMIUID != p.VMIUID && !from.Before(d.DownAt.Truncate(time.Second)) && (d.UpAt == nil || from.Before(*d.UpAt)) {
				d.UpAt = &from
			}
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b downtime) int {
		return cmp.Or(a.DownAt.Compare(b.DownAt), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.VMI, b.VMI), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// addUpWeeks returns how many minutes of a week the VMs of a namespace did not run, a cluster being seen last at a time.
func addUpWeeks(all []downtime, seen time.Time) []weekly {
	type key struct {
		week      time.Time
		namespace string
	}
	sums := map[key]*weekly{}
	for _, d := range all {
		until := d.DownAt
		switch {
		case d.UpAt != nil && d.UpAt.After(d.DownAt):
			until = *d.UpAt
		case d.UpAt == nil && !d.Planned:
			until = seen
		}
		monday := d.DownAt.Truncate(7 * 24 * time.Hour) // the zero time is a Monday
		for week := monday; !week.After(until); week = week.AddDate(0, 0, 7) {
			k := key{week, d.Namespace}
			if sums[k] == nil {
				sums[k] = &weekly{Week: week, Namespace: d.Namespace}
			}
			from, to := d.DownAt, until
			if week.After(from) {
				from = week
			}
			if next := week.AddDate(0, 0, 7); next.Before(to) {
				to = next
			}
			sums[k].Downtimes++
			sums[k].Minutes += to.Sub(from).Minutes()
		}
	}
	var out []weekly
	for _, w := range sums {
		w.Minutes = float64(int(1000*w.Minutes+0.5)) / 1000
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b weekly) int { return cmp.Or(a.Week.Compare(b.Week), cmp.Compare(a.Namespace, b.Namespace)) })
	return out
}
