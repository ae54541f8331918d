package read_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// queryTexts returns rows of texts.
func queryTexts(t *testing.T, s *store.Store, sql string) []string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), sql)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return got
}

// zoneOf returns the zone of a node at a time where each moves to another.
func zoneOf(node string, at, moved time.Time) string {
	if at.Before(moved) {
		return "old-" + node
	}
	return "new-" + node
}

// labelNodes returns the facts of a simulated cluster whose nodes are labeled at its beginning, and labeled again at a time.
func labelNodes(run sim.Run, moved time.Time) []trail.Fact {
	tr := tracker.New("c1")
	var facts []trail.Fact
	for _, o := range run.Observations {
		if n, is := o.(tracker.NodeObservation); is {
			n.Labels = map[string]string{
				"topology.kubernetes.io/zone": zoneOf(n.Name, n.At, moved), "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": "",
			}
			o = n
		}
		facts = append(facts, tr.Observe(o)...)
	}
	return facts
}

// TestLabelsOfBothEnds records simulated clusters whose nodes change their zones, and compares the zones of migrations and the objectives
// of a pool with what all facts make, and what is said of VMs.
func TestLabelsOfBothEnds(t *testing.T) {
	t.Parallel()
	for _, seed := range storetest.Sample([]uint64{0, 1, 2}) {
		run := sim.NewAt(seed, time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)) // the next week begins within each run
		facts := labelNodes(run, run.End.Add(-time.Hour))
		thresholds := trail.DefaultThresholds()
		thresholds.Objectives = trail.Objectives{string(trail.AnyRequester): 2 * time.Minute}
		s := storetest.New(t)
		require.NoError(t, s.Judge(t.Context(), "c1", thresholds))
		storetest.Record(t, s, facts)
		c := trail.DeriveAll(facts, thresholds, facts[len(facts)-1].ObservedAt.Truncate(time.Microsecond))
		for _, at := range []time.Time{c.Now, c.Now.Add(-90 * time.Minute)} { // each zone has its new name, and none has
			storetest.CompareAnswersBy(t, s, facts, at, thresholds, time.Time{})
		}
		zone := func(node string, before time.Time) (last string) {
			for _, f := range facts {
				if d, is := f.Detail.(*trail.LabelsDetail); is && f.Node == node && (before.IsZero() || !f.OccurredAt.After(before)) {
					last = d.Zone
				}
			}
			return last
		}
		want, zones, judged := map[string]bool{}, map[string]bool{}, 0
		for _, d := range c.Rows {
			for _, m := range d.Migrations {
				from, to := zone(m.SourceNode, m.FinishedAt), zone(m.TargetNode, m.FinishedAt)
				want[fmt.Sprintf("%s %s %s", m.UID, from, to)] = true
				zones[from], zones[to] = true, true
			}
			for _, e := range d.Evacuations {
				if e.ObjectiveMet != nil {
					judged++
				}
			}
		}
		require.Greater(t, len(zones), 3)
		got := queryTexts(t, s, "SELECT concat_ws(' ', migration_uid, coalesce(source_zone, ''), coalesce(target_zone, '')) FROM evictrail_v1.migrations ORDER BY migration_uid")
		require.Len(t, got, len(want))
		for _, row := range got {
			require.True(t, want[row], row)
		}
		require.Positive(t, judged)
		require.Equal(t, []string{fmt.Sprintf("gpu %d", judged)},
			queryTexts(t, s, "SELECT pool || ' ' || sum(met + missed) FROM evictrail_v1.weekly_objectives WHERE cluster = 'c1' GROUP BY pool ORDER BY pool"))
		require.Empty(t, queryTexts(t, s, "SELECT node FROM evictrail_v1.node_labels WHERE to_at <= from_at OR labels ->> 'topology.kubernetes.io/zone' <> zone"))
	}
}
