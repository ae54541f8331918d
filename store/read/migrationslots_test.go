package read_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/sim"
)

// slotHour is a row of view migration_slots; waited is in seconds.
type slotHour struct {
	Hour                    time.Time
	Arrived, Unserved       int
	Held                    float64
	MostHeld                int
	Waited                  float64
	Used                    *float64
	ClusterLimit, NodeLimit *int
}

const slotHoursQuery = `
SELECT hour, arrived, unserved, held, most_held, extract(epoch FROM waited)::double precision, used, cluster_limit, node_limit
FROM evictrail_v1.migration_slots
WHERE cluster = 'c1'
ORDER BY hour`

// TestMigrationSlotsAddUpToLimits records simulated clusters, whose histories are shorter than the week of evictrail limits, and adds
// up the hours: they come to what that says of the same migrations. How many slots are held at once is counted here.
func TestMigrationSlotsAddUpToLimits(t *testing.T) {
	t.Parallel()
	waits, kept := 0.0, 0
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		facts := observeAll(sim.NewAt(seed, time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)).Observations)
		s := storetest.New(t)
		storetest.Record(t, s, facts)
		limits, err := s.Limits(t.Context(), "")
		require.NoError(t, err)
		want := limits[0]
		rows, err := s.DB.Query(t.Context(), slotHoursQuery)
		require.NoError(t, err)
		hours, err := pgx.CollectRows(rows, pgx.RowToStructByPos[slotHour])
		require.NoError(t, err)
		require.Greater(t, len(hours), 1)

		arrived, unserved, held, waited := 0, 0, 0.0, 0.0
		busiest := hours[0]
		for _, h := range hours {
			arrived, unserved, held, waited = arrived+h.Arrived, unserved+h.Unserved, held+h.Held*3600, waited+h.Waited
			require.Equal(t, want.PerCluster, *h.ClusterLimit)
			require.Equal(t, want.PerNode, *h.NodeLimit)
			require.InDelta(t, h.Held/float64(want.PerCluster), *h.Used, 1e-9)
			require.GreaterOrEqual(t, float64(h.MostHeld), h.Held-1e-9)
			if h.Held > busiest.Held {
				busiest = h
			}
		}
		require.Equal(t, want.Arrived, arrived)
		require.Equal(t, want.Unserved, unserved)
		require.InDelta(t, time.Duration(want.Held).Seconds()*float64(arrived-unserved), held, 1)
		require.InDelta(t, time.Duration(want.Full).Seconds(), waited, 0.1)
		require.Equal(t, want.Busiest.At, busiest.Hour.UTC())
		require.Equal(t, want.Busiest.Arrived, busiest.Arrived-busiest.Unserved)
		require.InDelta(t, want.Busiest.Used, *busiest.Used, 1e-6)
		require.Equal(t, countMostHeld(facts, want.To), mostHeldByHour(hours))
		waits, kept = waits+waited, kept+arrived
	}
	require.Positive(t, waits)
	require.Positive(t, kept)
}

// mostHeldByHour returns how many slots were held at once, by hour, where any was.
func mostHeldByHour(hours []slotHour) map[time.Time]int {
	out := map[time.Time]int{}
	for _, h := range hours {
		if h.Held > 0 {
			out[h.Hour.UTC()] = h.MostHeld
		}
	}
	return out
}

// countMostHeld counts the same at the moments at which a slot was taken, and at the beginning of each hour.
func countMostHeld(facts []trail.Fact, to time.Time) map[time.Time]int {
	var uses []forecast.SlotUse
	for _, d := range trail.DeriveAll(facts, trail.DefaultThresholds(), to).Rows {
		for i := range d.Migrations {
			u := forecast.NewSlotUse(&d.Migrations[i])
			if u.EndedAt.IsZero() || u.EndedAt.After(to) {
				u.EndedAt = to
			}
			if !u.StartedAt.IsZero() {
				uses = append(uses, u)
			}
		}
	}
	out := map[time.Time]int{}
	for _, u := range uses {
		for at := u.StartedAt; at.Before(u.EndedAt); at = at.UTC().Truncate(time.Hour).Add(time.Hour) {
			n := 0
			for _, x := range uses {
				if !x.StartedAt.After(at) && x.EndedAt.After(at) {
					n++
				}
			}
			hour := at.UTC().Truncate(time.Hour)
			out[hour] = max(out[hour], n)
		}
	}
	return out
}

// TestSlotsWithoutSettings wants no limits where KubeVirt's settings were not seen, and the parts of a wait and of a slot in their hours.
func TestSlotsWithoutSettings(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.DB.Exec(t.Context(), `
INSERT INTO evictrail.clusters (cluster, alive_at) VALUES ('c1', '2026-11-21 03:30:00Z');
INSERT INTO evictrail.migrations (cluster, subject, migration_uid, migration, namespace, vmi, trigger, trigger_confidence, trigger_evidence, source_node, created_at, scheduling_at, finished_at, outcome, wait_reason, seen_late, open_until)
SELECT 'c1', 'vmi:shop/' || vmi, vmi, 'm-' || vmi, 'shop', vmi, 'eviction', 'inferred', 'x', 'n1', created_at::timestamptz, scheduling_at::timestamptz, finished_at::timestamptz, outcome, wait_reason, false, coalesce(finished_at::timestamptz, 'infinity')
FROM (VALUES
  ('a', '2026-11-21 00:50Z', '2026-11-21 01:10Z', '2026-11-21 02:15Z', 'succeeded', 'node_limit'),
  ('b', '2026-11-21 00:55Z', '2026-11-21 01:20Z', NULL, NULL, 'cluster_limit'),
  ('c', '2026-11-21 00:10Z', '2026-11-21 01:40Z', '2026-11-21 01:50Z', 'failed', 'backoff'),
  ('d', '2026-11-21 02:00Z', NULL, '2026-11-21 02:10Z', 'aborted', 'queued')
) AS v(vmi, created_at, scheduling_at, finished_at, outcome, wait_reason)`)
	require.NoError(t, err)
	rows, err := s.DB.Query(t.Context(), slotHoursQuery)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[slotHour])
	require.NoError(t, err)
	hour := func(h int) time.Time { return time.Date(2026, 11, 21, h, 0, 0, 0, time.UTC) }
	for i := range got {
		got[i].Hour = got[i].Hour.UTC()
	}
	require.Equal(t, []slotHour{
		{Hour: hour(0), Arrived: 2, Waited: 10 * 60},
		{Hour: hour(1), Arrived: 1, Held: (50 + 40 + 10) / 60.0, MostHeld: 3, Waited: 20 * 60},
		{Hour: hour(2), Arrived: 1, Unserved: 1, Held: (15 + 60) / 60.0, MostHeld: 2},
		{Hour: hour(3), Held: 0.5, MostHeld: 1},
	}, got)
}
