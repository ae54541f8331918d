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
			{question: "How do the clusters compare?", panels: []cog.Builder[dashboard.Panel]{newComparisonPanel(), newFailedPerDayPanel(), newLoopsPerDayPanel()}},
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

// Whole days are counted, in UTC, so the first and the last day of the time range are in it as a whole.
const daysInRange = `day BETWEEN ($__timeFrom()::timestamptz AT TIME ZONE 'UTC')::date AND ($__timeTo()::timestamptz AT TIME ZONE 'UTC')::date`

const comparisonSQL = `
WITH summed AS (
  SELECT
    cluster,
    max(day) AS last_day,
    count(*) AS days,
    count(*) FILTER (WHERE gaps > 0) AS days_with_gaps,
    sum(moved + failed + aborted) AS migrations,
    sum(failed)::float8 / nullif(sum(moved + failed), 0) AS failed,
    sum(not_needed)::float8 / nullif(sum(needed + not_needed), 0) AS not_needed,
    sum(objectives_missed)::float8 / nullif(sum(objectives_met + objectives_missed), 0) AS missed,
    sum(loops) AS loops,
    sum(dual_retry_loops) AS dual_retry
  FROM evictrail_v1.cluster_days
  WHERE ` + daysInRange + `
  GROUP BY cluster
)
SELECT cluster, kubevirt, days, days_with_gaps, migrations, summed.failed, summed.not_needed, missed, summed.loops, dual_retry
FROM summed
JOIN evictrail_v1.cluster_days AS d USING (cluster)
WHERE d.day = last_day
ORDER BY dual_retry DESC, summed.loops DESC, summed.failed DESC NULLS LAST, cluster
LIMIT 500`

func newComparisonPanel() cog.Builder[dashboard.Panel] {
	share := func() []dashboard.DynamicConfigValue { return setColumnUnit(units.PercentUnit) }
	return newPlainTablePanel("Clusters compared", "What happened in each cluster on the days of the time range: migrations that ended, the share that failed, "+
		"that was not needed of those of which that is known, and of evacuations that missed their objective; loops that were opened. "+
		"The version of KubeVirt is that of the last day. Counts of days with gaps may be too low.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, comparisonSQL)).
		OverrideByName("cluster", []dashboard.DynamicConfigValue{linkColumn(toCluster("Overview of this cluster", UIDOverview))}).
		OverrideByName("failed", share()).OverrideByName("not_needed", share()).OverrideByName("missed", share()).
		OverrideByName("dual_retry", colourColumn(units.Short, newThresholds(colourCalm, step{1, colourBad}))).
		NoValue("no day of this time range was counted").Height(10)
}

// perDaySQL is a count of each day by cluster, of the clusters that have most of it.
func perDaySQL(column string) string {
	return `
WITH most AS (
  SELECT cluster
  FROM evictrail_v1.cluster_days
  WHERE ` + daysInRange + `
  GROUP BY cluster
  HAVING sum(` + column + `) > 0
  ORDER BY sum(` + column + `) DESC, cluster
  LIMIT 20
)
SELECT day::timestamp AT TIME ZONE 'UTC' AS time, cluster AS metric, ` + column + `::float8 AS value
FROM evictrail_v1.cluster_days
JOIN most USING (cluster)
WHERE ` + daysInRange + `
ORDER BY 1, 2
LIMIT 20000`
}

func newFailedPerDayPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Failed migrations a day", "Of the 20 clusters with most of them in the time range.", units.Short).Datasource(postgresSource()).
		WithTarget(newPostgresQuery("A", formatSeries, perDaySQL("failed")))
}

func newLoopsPerDayPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Loops opened a day", "Of the 20 clusters with most of them in the time range.", units.Short).Datasource(postgresSource()).
		WithTarget(newPostgresQuery("A", formatSeries, perDaySQL("loops")))
}
