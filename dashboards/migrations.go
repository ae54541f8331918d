package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newMigrationsDashboard is for who looks after live migration itself.
func newMigrationsDashboard() Dashboard {
	return Dashboard{
		UID: UIDMigrations, Title: "evictrail / Migrations: do they succeed, and where do they lose time?",
		Short: "Rate, failures and duration of live migrations, what waits, and what fails most.",
		variables: append(newCommonVariables(),
			newMultiVariable(varNode, "Node", nodesSQL), newMultiVariable(varNamespace, "Namespace", namespacesSQL)),
		annotations: newAnnotations(),
		rows: []row{
			{question: "How many migrations end, how many fail, how long do they take?", panels: []cog.Builder[dashboard.Panel]{newMigrationRatePanel(), newFailureSharePanel(), newDurationHeatPanel()}},
			{question: "Where does the time go?", panels: []cog.Builder[dashboard.Panel]{newPhaseWaterfallPanel()}},
			{question: "What waits, and for what?", panels: []cog.Builder[dashboard.Panel]{newPendingByBlockerPanel(), newPendingAgePanel(), newRunningAgainstLimitsPanel()}},
			{question: "What fails most?", panels: []cog.Builder[dashboard.Panel]{newFailureTablePanel()}},
			{question: "What do migrations cost?", panels: []cog.Builder[dashboard.Panel]{newMoveCostsPanel()}},
			{question: "Does the data get across?", panels: []cog.Builder[dashboard.Panel]{newDataRatesPanel(), newDataRemainingPanel()}},
			{question: "Which VMs were lost?", panels: []cog.Builder[dashboard.Panel]{newLostVMsPanel()}},
		},
	}
}

func newMigrationRatePanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Finished migrations by trigger", "Migrations that ended in each interval, by trigger.").
		WithTarget(queryRange("A", sumBy(increaseOf(metrics.MigrationsTotal), metrics.LabelTrigger), "{{"+metrics.LabelTrigger+"}}")).
		Overrides(labelSeries("migrations.trigger", triggerPaints()...)).Span(8).Height(8)
}

// triggerPaints colours the triggers as the causes that they belong to.
func triggerPaints() []paint {
	return []paint{
		{string(trail.TriggerDescheduler), colourDescheduler},
		{string(trail.TriggerDrain), colourDrain}, {string(trail.TriggerDrainTaint), colourDrain},
		{string(trail.TriggerUser), colourUser}, {string(trail.TriggerNamedNode), colourUser},
		{string(trail.TriggerWorkloadUpdate), colourKubeVirt}, {string(trail.TriggerHotplug), colourKubeVirt},
		{string(trail.TriggerStorage), colourKubeVirt}, {string(trail.TriggerDecentralized), colourKubeVirt},
		{string(trail.TriggerEviction), colourOther}, {string(trail.TriggerController), colourController}, {string(trail.TriggerUnknown), colourUnknown},
	}
}

func newFailureSharePanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Failure share by class", "Of the migrations that ended in the last hour, the share that failed, by where: "+
		"no node for the target, before data moved, in the transfer, or after the guest had left.", units.PercentUnit).
		Max(1).WithTarget(queryRange("A", "sum by ("+metrics.LabelClass+") ("+recordFailures1h+") / on () group_left () (sum("+recordFinished1h+") > 0)", "{{"+metrics.LabelClass+"}}")).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(40).
		Overrides(labelSeries("migrations.failure_class", failurePaints()...)).Span(8).Height(8)
}

// failurePaints are shades of the failure: the later, the darker.
func failurePaints() []paint {
	return []paint{
		{string(trail.FailureScheduling), "#FFB357"}, {string(trail.FailureControlPlane), "#FF7383"}, {string(trail.FailureDataPlane), colourBad},
		{string(trail.FailurePostCopy), "#8F1020"}, {string(trail.FailureGuestLost), "#5C0A14"}, {string(trail.FailureAborted), colourBlocked}, {string(trail.FailureUnknown), colourUnknown},
	}
}

func newDurationHeatPanel() cog.Builder[dashboard.Panel] {
	return newHeatmapPanel("Migration duration", "From creation to end, waits included. Darker: more migrations took that long.", units.Seconds).
		WithTarget(bucketsOf("A", sumBy(increaseOf(metrics.MigrationDurationSeconds+"_bucket"), labelLe))).
		Span(8).Height(8)
}

func newPendingByBlockerPanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Waiting migrations by cause", "Migrations without a target pod, by what holds them (a limit, a backoff, a quota, a backup, pods that end), and those whose target "+
		"pod is on a node that is not ready.").
		WithTarget(queryRange("A", maxBy(metrics.MigrationsPending, metrics.LabelBlocker), "{{"+metrics.LabelBlocker+"}}")).
		Overrides(labelSeries("migrations.wait_reason")).Span(8).Height(8)
}

func newPendingAgePanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Age of the oldest waiting migration", "Age of the oldest waiting migration, by what it waits for. A line that climbs without end is a queue that does not move.", units.Seconds).
		WithTarget(queryRange("A", "time() - min by ("+metrics.LabelBlocker+") ("+metrics.MigrationPendingOldest+")", "{{"+metrics.LabelBlocker+"}}")).
		Thresholds(newThresholds(colourGood, step{1800, colourBad})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(8).Height(8)
}

func newRunningAgainstLimitsPanel() cog.Builder[dashboard.Panel] {
	limit := func(scope string) string {
		return maxBy(selectSeries(metrics.MigrationLimit, matchLabel(metrics.LabelScope, scope)))
	}
	return newLinesPanel("Running migrations and limits", "Running migrations in the cluster, and those leaving the busiest of the chosen nodes, with their limits.", units.Short).
		WithTarget(queryRange("A", maxBy(metrics.MigrationsRunning), "in the cluster")).
		WithTarget(queryRange("B", limit(metrics.ScopeCluster), "limit of the cluster")).
		WithTarget(queryRange("C", maxBy(selectSeries(metrics.NodeMigrations, matchLabel(metrics.LabelDirection, metrics.DirectionOut), onNodes)), "out of the busiest node")).
		WithTarget(queryRange("D", limit(metrics.ScopeNodeOutbound), "limit out of a node")).
		Span(8).Height(8)
}

// Each phase lasts until the next one that was reached, or the end.
var phaseWaterfallSQL = `
WITH ` + foundOf("outcome, failure_class, created_at, scheduling_at, scheduled_at, target_ready_at, running_at, finished_at", ofCluster+`
  AND `+ofNodes+`
  AND `+ofNamespaces+`
  AND finished_at IS NOT NULL
  AND $__timeFilter(created_at)`) + `
SELECT
  class || ', ' || which || ' of ' || n AS migrations,
  waits,
  target_starts,
  target_prepares,
  handover,
  data_moves
FROM (
  SELECT
    coalesce(outcome || coalesce(': ' || ` + labelSQL("nullif(failure_class, outcome)", "migrations.failure_class") + `, ''), 'running') AS class,
    sum(counts) AS n,
    ARRAY['median', 'p95'] AS whiches,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY date_part('epoch', coalesce(scheduling_at, finished_at) - created_at)) AS waits_of,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY date_part('epoch', coalesce(scheduled_at, finished_at) - scheduling_at)) AS starts_of,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY date_part('epoch', coalesce(target_ready_at, running_at, finished_at) - scheduled_at)) AS prepares_of,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY date_part('epoch', coalesce(running_at, finished_at) - target_ready_at)) AS handover_of,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY date_part('epoch', finished_at - running_at)) AS data_of
  FROM found
  GROUP BY 1
) AS classes
CROSS JOIN LATERAL unnest(whiches, waits_of, starts_of, prepares_of, handover_of, data_of) AS u (which, waits, target_starts, target_prepares, handover, data_moves)
ORDER BY class DESC, which
LIMIT 40`

func newPhaseWaterfallPanel() cog.Builder[dashboard.Panel] {
	b := newBarChartPanel("Time per phase by outcome", "Time in each phase, at the median and the 95th percentile, by outcome and failure class: "+
		"waits (no target pod yet), target starts, target prepares, handover, data moves. The last coloured part is where failures happen. "+estimates, units.Seconds, "migrations").
		Stacking(common.StackingModeNormal).WithTarget(newPostgresQuery("A", formatTable, phaseWaterfallSQL)).Span(fullWidth).Height(10)
	return b.Overrides(asSeries([]paint{
		{"waits", colourBlocked}, {"target_starts", colourCooling}, {"target_prepares", "#5794F2"}, {"handover", colourKubeVirt}, {"data_moves", colourGood},
	}))
}

// ofFailures chooses migrations that failed.
const ofFailures = ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND outcome = 'failed'
  AND $__timeFilter(created_at)`

// Which failures are the most frequent is estimated from the sample, how many there are of each is counted.
var failureTableSQL = `
WITH ` + sampleOf("failure_class, failure_reason, source_node, target_node", ofFailures) + `, most AS MATERIALIZED (
  SELECT failure_class, failure_reason, source_node, target_node
  FROM sample
  WHERE ` + fromSample + `
  GROUP BY failure_class, failure_reason, source_node, target_node
  ORDER BY count(*) DESC, 3, 4, 1, 2
  LIMIT 100
), failures AS (
  SELECT failure_class, failure_reason, source_node, target_node, vmi_uid, finished_at, namespace, vmi, failure_text
  FROM evictrail_v1.migrations
  WHERE ` + ofFailures + `
    AND ` + fromAll + `
  UNION ALL
  SELECT m.*
  FROM most
  CROSS JOIN LATERAL (
    SELECT failure_class, failure_reason, source_node, target_node, vmi_uid, finished_at, namespace, vmi, failure_text
    FROM evictrail_v1.migrations AS m
    WHERE ` + ofFailures + `
      AND source_node = most.source_node
      AND (m.target_node = most.target_node OR m.target_node IS NULL AND most.target_node IS NULL)
      AND (failure_class, failure_reason) IS NOT DISTINCT FROM (most.failure_class, most.failure_reason)
    OFFSET 0
  ) AS m
)
SELECT
  failure_class AS class,
  failure_reason AS reason,
  failures,
  vms,
  coalesce(source_node, '?') || ' > ' || coalesce(target_node, '?') AS nodes,
  first,
  last,
  its_last[1][1] AS namespace,
  its_last[1][2] AS vmi,
  its_last[1][3] AS text_of_the_last
FROM (
  SELECT
    failure_class,
    failure_reason,
    source_node,
    target_node,
    count(*) AS failures,
    count(DISTINCT vmi_uid) AS vms,
    min(finished_at) AS first,
    max(finished_at) AS last,
    array_agg(ARRAY[namespace, vmi, failure_text] ORDER BY finished_at DESC) AS its_last
  FROM failures
  GROUP BY failure_class, failure_reason, source_node, target_node
) AS each
ORDER BY failures DESC, last DESC
LIMIT 100`

func newFailureTablePanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Failures by reason and pair of nodes", "Failed migrations by class, reason and nodes: how many, of how many VMs, first and last time, and KubeVirt's text of the last one. "+foundBySample).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, failureTableSQL)).OverrideByName("text_of_the_last", wrapColumn(420)).
		OverrideByName("class", labelTexts("migrations.failure_class", failurePaints()...)).OverrideByName("reason", labelTexts("migrations.failure_reason")).Height(9)
}

func newDataRatesPanel() cog.Builder[dashboard.Panel] {
	chosen := []string{inNamespaces}
	by := []string{metrics.LabelNamespace, labelName}
	transfer := maxBy(selectSeries(foreignTransferRate, chosen...), by...) + " or " + maxBy(selectSeries(foreignTransferRateOld, chosen...), by...)
	vm := "{{" + metrics.LabelNamespace + "}}/{{" + labelName + "}}"
	return newLinesPanel("Dirty rate and transfer rate", "How fast each migrating guest writes memory, and how fast it is moved. If it writes faster, the migration does not end by itself. "+
		"From KubeVirt.", units.BytesPerSecondIEC).
		WithTarget(queryRange("A", maxBy(selectSeries(foreignDirtyRate, chosen...), by...), vm+" writes")).
		WithTarget(queryRange("B", transfer, vm+" moves")).
		Span(12).Height(8)
}

func newDataRemainingPanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Remaining data", "Data left for each migrating guest. A saw-tooth: the guest rewrites what was moved. From KubeVirt.", units.BytesIEC).
		WithTarget(queryRange("A", maxBy(selectSeries(foreignDataRemaining, inNamespaces), metrics.LabelNamespace, labelName), "{{"+metrics.LabelNamespace+"}}/{{"+labelName+"}}")).
		Span(12).Height(8)
}

const lostVMsSQL = `
SELECT
  finished_at,
  namespace,
  vmi,
  source_node AS node,
  target_node,
  failure_class AS class,
  failure_reason AS reason,
  policy,
  requester,
  failure_text AS text
FROM evictrail_v1.migrations
WHERE ` + ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND failure_class IN ('` + string(trail.FailurePostCopy) + `', '` + string(trail.FailureGuestLost) + `')
  AND $__timeFilter(created_at)
ORDER BY finished_at DESC
LIMIT 100`

func newLostVMsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Guests lost in migration", "Migrations that lost the guest after it had left (post-copy) or at the handover: its memory is gone, it must be started again.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, lostVMsSQL)).OverrideByName("text", wrapColumn(380)).
		OverrideByName("class", labelTexts("migrations.failure_class")).OverrideByName("reason", labelTexts("migrations.failure_reason")).Height(7)
}
