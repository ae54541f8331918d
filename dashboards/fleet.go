package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/trail"
)

// newFleetDashboard is for who looks after several clusters whose recorders write to one database.
func newFleetDashboard() Dashboard {
	return Dashboard{
		UID: UIDFleet, Title: "evictrail / Fleet: which cluster needs somebody?",
		Short:     "One row per cluster, the worst first: begin here where there are several.",
		variables: newSourceVariables(),
		rows: []row{
			{question: "Which cluster needs somebody?", panels: []cog.Builder[dashboard.Panel]{newFleetPanel()}},
		},
	}
}

// The state of the recorder, as far as the database shows it: the pages know more, from the recorder itself.
var fleetSQL = `
WITH open_items AS (
  SELECT cluster, 'loop' AS kind, opened_at AS since
  FROM evictrail_v1.loops
  WHERE closed_at IS NULL
  UNION ALL
  SELECT cluster, 'stuck', marked_at
  FROM evictrail_v1.evacuations
  WHERE ended_at IS NULL
    AND failed_attempts > 0
  UNION ALL
  SELECT cluster, 'drain', started_at
  FROM evictrail_v1.drains
  WHERE ended_at IS NULL
), counted AS (
  SELECT
    cluster,
    count(*) FILTER (WHERE kind = 'loop') AS loops,
    count(*) FILTER (WHERE kind = 'stuck') AS stuck,
    count(*) FILTER (WHERE kind = 'drain') AS drains,
    min(since) AS oldest
  FROM open_items
  GROUP BY cluster
), gaps_open AS (
  SELECT cluster, count(*) AS gaps
  FROM evictrail_v1.gaps
  WHERE closed_at IS NULL
  GROUP BY cluster
)
SELECT
  cluster,
  coalesce(loops, 0) AS open_loops,
  coalesce(stuck, 0) AS stuck,
  coalesce(drains, 0) AS drains,
  extract(epoch FROM $__timeTo()::timestamptz - oldest)::float8 AS oldest,
  CASE
    WHEN last_seen_at IS NULL THEN '` + trail.RecorderNotRecording.Label().Short + `'
    WHEN last_seen_at < $__timeTo()::timestamptz - ` + intervalOf(trail.SilenceRed.Seconds()) + ` THEN '` + trail.RecorderNotRecording.Label().Short + `'
    WHEN last_seen_at < $__timeTo()::timestamptz - ` + intervalOf(trail.SilenceAmber.Seconds()) + ` OR gaps > 0 THEN '` + trail.RecorderDegraded.Label().Short + `'
    ELSE '` + trail.RecorderRecording.Label().Short + `'
  END AS recorder,
  coalesce(gaps, 0) AS open_gaps,
  last_seen_at AS last_seen,
  greatest(extract(epoch FROM $__timeTo()::timestamptz - last_seen_at), 0)::float8 AS last_seen_ago
FROM evictrail_v1.clusters
LEFT JOIN counted USING (cluster)
LEFT JOIN gaps_open USING (cluster)
ORDER BY coalesce(loops, 0) DESC, coalesce(stuck, 0) DESC, coalesce(drains, 0) DESC, cluster
LIMIT 500`

// intervalOf is so many seconds as SQL has them.
func intervalOf(seconds float64) string { return fmt.Sprintf("interval '%v seconds'", seconds) }

func newFleetPanel() cog.Builder[dashboard.Panel] {
	warn := func(bad float64) []dashboard.DynamicConfigValue {
		return colourColumn(units.Short, newThresholds(colourCalm, step{1, colourBlocked}, step{bad, colourBad}))
	}
	return newPlainTablePanel("Clusters", "What is open in each cluster now: loops, evacuations whose attempts fail, drains, and since when the oldest of them; "+
		"whether the cluster is recorded, and up to when. A count of 0 says little where the recorder does not record. Click a cluster for its overview.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, fleetSQL)).
		OverrideByName("cluster", []dashboard.DynamicConfigValue{linkColumn(toCluster("Overview of this cluster", UIDOverview), toCluster("Recorder of this cluster", UIDCollector))}).
		OverrideByName("open_loops", warn(1)).OverrideByName("stuck", warn(3)).OverrideByName("drains", setColumnUnit(units.Short)).
		OverrideByName("oldest", setColumnUnit(units.Seconds)).OverrideByName("last_seen_ago", setColumnUnit(units.Seconds)).
		OverrideByName("recorder", colourTexts(paint{"^" + trail.RecorderRecording.Label().Short + "$", colourGood},
			paint{"^" + trail.RecorderDegraded.Label().Short + "$", colourBlocked}, paint{".", colourBad})).
		Height(16)
}
