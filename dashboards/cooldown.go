package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statushistory"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newCooldownsDashboard is for who tunes the descheduler.
func newCooldownsDashboard() Dashboard {
	return Dashboard{
		UID: UIDCooldown, Title: "evictrail / Cooldowns: are VMs left alone long enough between moves?",
		Short: "Cooldowns of the descheduler, VMs that bounce, and what was held back.",
		variables: append(newCommonVariables(),
			newMultiVariable(varNode, "Node", nodesSQL), newMultiVariable(varNamespace, "Namespace", namespacesSQL)),
		annotations: newAnnotations(),
		rows: []row{
			{question: "Which VMs cool down, and for how long?", panels: []cog.Builder[dashboard.Panel]{newCooldownHistoryPanel()}},
			{question: "How long are cooldowns, and how much of a node do they pin?", panels: []cog.Builder[dashboard.Panel]{newCooldownsPerEpisodePanel(), newCooldownsPerEvaluationPanel(), newCoolingSharePanel()}},
			{question: "Which VMs come back to where they were?", panels: []cog.Builder[dashboard.Panel]{newPingPongPanel()}},
			{question: "Does the descheduler know what really happened?", panels: []cog.Builder[dashboard.Panel]{newDecisionsPanel()}},
			{question: "What would have moved without a cooldown?", panels: []cog.Builder[dashboard.Panel]{newHeldBackPanel(), newBlocksRatePanel()}},
		},
	}
}

// What holds a VM at each point of the time range: the longest cooldown of the descheduler that has begun and is neither over
// nor computed again. A point without
// any is NULL, so that the points keep their distance. The thirty VMs with the most moves.
const cooldownHistorySQL = `
WITH held AS (
  SELECT
    namespace || '/' || vmi AS vm,
    decided_at,
    least(until, lead(decided_at) OVER (PARTITION BY vmi_uid, namespace, vmi ORDER BY decided_at)) AS until,
    extract(epoch FROM effective)::float8 AS effective
  FROM evictrail_v1.cooldown_decisions
  WHERE ` + ofCluster + `
    AND ` + ofNodes + `
    AND ` + ofNamespaces + `
    AND layer = 'descheduler_cooldown'
    AND verdict IN ('holds', 'released')
    AND vmi IS NOT NULL
    AND decided_at BETWEEN $__timeFrom()::timestamptz - interval '2 days' AND $__timeTo()
), most AS (
  SELECT vm
  FROM held
  WHERE until >= $__timeFrom()
  GROUP BY vm
  ORDER BY count(*) DESC, vm
  LIMIT 30
)
SELECT
  at AS time,
  most.vm AS metric,
  max(h.effective) AS value
FROM most
CROSS JOIN generate_series($__timeFrom()::timestamptz, $__timeTo()::timestamptz, greatest($__interval_ms, 1000) * interval '1 millisecond') AS at
LEFT JOIN held AS h ON h.vm = most.vm AND at >= h.decided_at AND at < h.until
GROUP BY at, most.vm
ORDER BY at, most.vm
LIMIT 20000`

func newCooldownHistoryPanel() cog.Builder[dashboard.Panel] {
	return statushistory.NewPanelBuilder().Title("Cooldowns of the 30 most moved VMs").
		Description("A line for each VM: the length of its cooldown, empty where the descheduler may evict it. Lines that grow darker are VMs that do not find their place; the darkest are at the cap of six hours.").
		Datasource(postgresSource()).Unit(units.Seconds).MaxDataPoints(120).
		WithTarget(newPostgresQuery("A", formatSeries, cooldownHistorySQL)).
		ColorScheme(byThresholds()).
		Thresholds(newThresholds("#DCEBFF", step{900, "#C0DBFF"}, step{1800, colourCooling}, step{3600, "#5794F2"}, step{7200, "#3274D9"}, step{14400, "#1F60C4"}, step{21600, "#0B2F6B"})).
		ShowValue(common.VisibilityModeNever).RowHeight(0.9).ColWidth(0.95).PerPage(30).Legend(noLegend()).Tooltip(allSeries()).
		DataLinks(dataLinks(linkTo("All VMs: choose this one there", UIDVM))).
		Span(fullWidth).Height(11)
}

func newCooldownsPerEpisodePanel() cog.Builder[dashboard.Panel] {
	return newGaugesPanel("Cooldown lengths, per cooldown", "Cooldowns that began in the time range, by length. Each counts once, however often the descheduler asked.", units.Short).
		WithTarget(bucketsOf("A", sumBy(overRange(metrics.EffectiveCooldownSeconds+"_bucket"), labelLe)).Instant()).
		ColorScheme(newFixedColour(colourCooling)).Span(8).Height(8)
}

func newCooldownsPerEvaluationPanel() cog.Builder[dashboard.Panel] {
	return newGaugesPanel("Cooldown lengths, per evaluation by the descheduler", "The descheduler's own histogram. It counts each look at a VM, so one long cooldown counts in every cycle: "+
		"not a number of cooldowns.", units.Short).
		WithTarget(bucketsOf("A", sumBy(overRange(metrics.DeschedulerCooldownSeconds+"_bucket"), labelLe)).Instant()).
		ColorScheme(newFixedColour(colourDescheduler)).Span(8).Height(8)
}

func newCoolingSharePanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("VMs in cooldown, share per node", "Where most VMs of a node cool down, the descheduler has none left to move.", units.PercentUnit).
		Max(1).WithTarget(queryRange("A", selectSeries(recordCoolingRatio, onNodes), "{{"+metrics.LabelNode+"}}")).
		Thresholds(newThresholds(colourGood, step{0.5, colourBlocked})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
		Span(8).Height(8)
}

// ofSuccesses chooses migrations that moved a guest.
const ofSuccesses = ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND outcome = 'succeeded'
  AND $__timeFilter(created_at)`

// A return is a move to a node where the VM had been within six hours before. Which VMs were moved most is estimated from the sample, and which may have
// returned most often by stays that were shorter than that; what they did is read.
var pingPongSQL = `
WITH ` + sampleOf("namespace, vmi", ofSuccesses) + `, most AS MATERIALIZED (
  (
    SELECT namespace, vmi
    FROM sample
    WHERE ` + fromSample + `
    GROUP BY namespace, vmi
    ORDER BY count(*) DESC, 1, 2
    LIMIT 50
  )
  UNION
  (
    SELECT namespace, vmi
    FROM evictrail_v1.placements
    WHERE ` + ofCluster + `
      AND ` + ofNodes + `
      AND ` + ofNamespaces + `
      AND to_at - from_at < interval '6 hours'
      AND arrived_by NOT IN ('start', 'unknown')
      AND left_by NOT IN ('end', 'unknown')
      AND $__timeFilter(to_at)
      AND ` + fromSample + `
    GROUP BY namespace, vmi
    ORDER BY count(*) DESC, 1, 2
    LIMIT 50
  )
), moves AS (
  SELECT namespace, vmi, vmi_uid, migration_uid, source_node, target_node, finished_at, trigger
  FROM evictrail_v1.migrations
  WHERE ` + ofSuccesses + `
    AND ` + fromAll + `
  UNION ALL
  SELECT its.*
  FROM most
  CROSS JOIN LATERAL (
    SELECT namespace, vmi, vmi_uid, migration_uid, source_node, target_node, finished_at, trigger
    FROM evictrail_v1.migrations
    WHERE ` + ofSuccesses + `
      AND namespace = most.namespace
      AND vmi = most.vmi
    OFFSET 0
  ) AS its
), returned AS (
  SELECT DISTINCT m.migration_uid
  FROM moves AS m
  JOIN moves AS b ON b.vmi_uid = m.vmi_uid AND b.source_node = m.target_node
  WHERE b.finished_at < m.finished_at
    AND b.finished_at > m.finished_at - interval '6 hours'
)
SELECT
  namespace,
  vmi,
  count(*) AS moves,
  count(*) FILTER (WHERE trigger = 'descheduler') AS by_the_descheduler,
  count(returned.migration_uid) AS returns,
  (array_agg(source_node ORDER BY finished_at))[1] || ' > ' || string_agg(target_node, ' > ' ORDER BY finished_at) AS path,
  min(finished_at) AS first,
  max(finished_at) AS last,
  extract(epoch FROM (max(finished_at) - min(finished_at)) / nullif(count(*) - 1, 0))::float8 AS between_moves
FROM moves
LEFT JOIN returned USING (migration_uid)
GROUP BY namespace, vmi, vmi_uid
HAVING count(*) > 1
ORDER BY returns DESC, moves DESC, namespace, vmi
LIMIT 50`

func newPingPongPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Paths of VMs moved more than once", "Where each VM went. A return is a move back to a node that it was on less than six hours before: the balancer undoes its own work. "+
		foundBySample+" So are those that stayed shortest.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, pingPongSQL)).OverrideByName("between_moves", setColumnUnit(units.Seconds)).OverrideByName("path", wrapColumn(480)).
		Height(8)
}

// ofDecisions chooses decisions that hold something back.
const ofDecisions = ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND $__timeFilter(decided_at)
  AND verdict <> 'released'`

// Those with a finding are few, and in an index of their own.
const decisionsSQL = `
SELECT
  decided_at,
  layer,
  verdict,
  reason,
  origin,
  namespace,
  vmi,
  array_to_string(ARRAY(SELECT jsonb_array_elements_text(CASE jsonb_typeof(inputs -> 'candidates') WHEN 'array' THEN inputs -> 'candidates' END)), ', ') AS candidates,
  node,
  extract(epoch FROM effective)::float8 AS effective,
  (inputs ->> 'true_effective')::float8 AS by_true_history,
  count AS counted,
  inputs ->> 'finding' AS finding
FROM (
  (
    SELECT *
    FROM evictrail_v1.cooldown_decisions
    WHERE ` + ofDecisions + `
      AND inputs ? 'finding'
    ORDER BY decided_at DESC
    LIMIT 200
  )
  UNION ALL
  (
    SELECT *
    FROM evictrail_v1.cooldown_decisions
    WHERE ` + ofDecisions + `
      AND NOT inputs ? 'finding'
    ORDER BY decided_at DESC
    LIMIT 200
  )
) AS d
ORDER BY inputs ? 'finding' DESC, decided_at DESC
LIMIT 200`

func newDecisionsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Cooldown decisions against the true history", "Each cooldown or backoff that began or was met: "+
		"by what the descheduler's process remembers (effective), and by the true history (by_true_history). Where they differ, the finding says why; those first. "+
		"Observed ones are counters of the descheduler, which name no VM: candidates are shown.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, decisionsSQL)).
		OverrideByName("effective", setColumnUnit(units.Seconds)).OverrideByName("by_true_history", setColumnUnit(units.Seconds)).OverrideByName("finding", wrapColumn(320)).
		OverrideByName("verdict", labelTexts("cooldown_decisions.verdict", paint{"holds", colourCooling}, paint{"blocked", colourBlocked})).
		OverrideByName("layer", labelTexts("cooldown_decisions.layer")).OverrideByName("reason", labelTexts("cooldown_decisions.reason")).
		Height(9)
}

var heldBackSQL = `
SELECT
  ` + barOf("decided_at") + ` AS time,
  ` + labelSQL("reason_met", "cooldown_decisions.reason") + ` || ' (' || origin || ')' AS metric,
  count(DISTINCT coalesce(vmi_uid, decision_id::text)) AS value
FROM evictrail_v1.cooldown_decisions
CROSS JOIN LATERAL (SELECT CASE reason WHEN 'observed_block' THEN coalesce(inputs ->> 'observed_reason', 'other') ELSE reason END) AS met (reason_met)
WHERE ` + ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND verdict = 'blocked'
  AND $__timeFilter(decided_at)
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 5000`

func newHeldBackPanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Blocked evictions by reason", "In each 10 minutes (hours over long ranges), what met a cooldown or a running migration: "+
		"distinct VMs where known (derived), else rises of the descheduler's counters (observed).").
		Datasource(postgresSource()).WithTarget(newPostgresQuery("A", formatSeries, heldBackSQL)).Interval("10m").MaxDataPoints(mostBars).Span(12).Height(8)
}

func newBlocksRatePanel() cog.Builder[dashboard.Panel] {
	return newLinesPanel("Block rate of the descheduler", "Blocks per second by reason and node, by the descheduler's own count where it is scraped. "+
		"The rate follows how often it looks, not how many VMs would move.", units.OpsPerSecond).
		WithTarget(queryRange("A", "sum by ("+metrics.LabelReason+", "+metrics.LabelNode+") ("+selectSeries(recordBlocksRate, onNodes)+")", "{{"+metrics.LabelReason+"}} {{"+metrics.LabelNode+"}}")).
		WithTransformation(dashboard.DataTransformerConfig{Id: "renameByRegex", Options: map[string]any{
			"regex": "^" + trail.DecidedInProgress, "renamePattern": findLabels("cooldown_decisions.reason").Label(trail.DecidedInProgress).Short,
		}}).
		Span(12).Height(8)
}
