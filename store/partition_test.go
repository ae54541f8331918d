package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestT11Months lives through fourteen boundaries of months, hour by hour, on clocks of places where the time of day is moved. Facts come at every
// one of these times, from both sides of the boundary. Making a partition is denied once for an hour, and once from a month until three days before it is
// needed: no fact gets into the default partition, and the alert would fire for the latter seven days ahead, and for nothing else.
//
// T11 of the chaos matrix (docs/chaos.md): boundaries of months, and a partition that cannot be made.
func TestT11Months(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const (
		months  = 14
		hour    = time.Hour
		day     = 24 * hour
		alerted = 7 * day
	)
	boundary := func(n int) time.Time { return time.Date(2026, time.September+time.Month(n), 1, 0, 0, 0, 0, time.UTC) }
	denied := func(at time.Time) bool {
		within := func(from, until time.Time) bool { return !at.Before(from) && at.Before(until) }
		return within(boundary(3), boundary(3).Add(hour)) || within(boundary(8), boundary(9).Add(-3*day))
	}
	s := storetest.New(t)
	allow := loadFunctionSQL(t, s, "evictrail.ensure_month(timestamptz)")
	const deny = "CREATE OR REPLACE FUNCTION evictrail.ensure_month(month timestamptz) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE insufficient_privilege; END'"
	tr, stored, alerts := tracker.New("c1"), 0, map[int]int{}
	for n := range months {
		zone, err := time.LoadLocation([]string{"Europe/Berlin", "America/New_York", "Pacific/Auckland", "UTC"}[n%4])
		require.NoError(t, err)
		for _, from := range []time.Duration{-8 * day, -4 * day, -2 * day, -3 * hour, -2 * hour, -hour, 0, hour, 2 * hour} {
			at := boundary(n).Add(from)
			_, err := s.DB.Exec(t.Context(), map[bool]string{true: deny, false: allow}[denied(at)])
			require.NoError(t, err)
			require.NoError(t, s.EnsureMonths(t.Context(), at.In(zone)))
			u, err := s.Upkeep(t.Context(), "c1")
			require.NoError(t, err)
			if u.PartitionsUntil.Sub(at) < alerted {
				alerts[n]++
			}
			for _, seen := range []time.Time{at.Add(-time.Microsecond), at, at.Add(time.Second)} {
				facts := tr.Observe(tracker.NodeObservation{ // cordoned and uncordoned
					Meta: tracker.Meta{UID: "n", Name: "n1", ResourceVersion: strconv.Itoa(stored + 1)}, Seen: tracker.Seen{At: seen.In(zone)}, Unschedulable: stored%2 == 0,
				})
				require.Len(t, facts, 1)
				_, err := s.Append(t.Context(), "c1", facts)
				require.NoError(t, err)
				stored++
			}
		}
	}
	var rows, stray, partitions int
	require.NoError(t, s.DB.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM evictrail.events), (SELECT count(*) FROM evictrail.events_default),
    (SELECT count(*) FROM pg_inherits WHERE inhparent = 'evictrail.events'::regclass)`).Scan(&rows, &stray, &partitions))
	t.Logf("T11: %d boundaries, %d facts, %d of them in the default partition; short of partitions before boundary: %v", months, rows, stray, alerts)
	require.Equal(t, stored, rows)
	require.Zero(t, stray)
	require.Equal(t, months+3, partitions, "each month, the one before, the one after, and the default one")
	require.Equal(t, map[int]int{9: 1}, alerts, "four days before it is needed, a partition is missing; two days before it is there")
}

// loadFunctionSQL returns the SQL that makes a function as it is.
func loadFunctionSQL(t *testing.T, s *store.Store, function string) (sql string) {
	t.Helper()
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT pg_get_functiondef($1::regprocedure)", function).Scan(&sql))
	return sql
}
