package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/nodegraph"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newOverviewDashboard is where one begins: on the wall, or when an alert names no VM.
func newOverviewDashboard() Dashboard {
	return Dashboard{
		UID: UIDOverview, Title: "evictrail / Overview: is anything moving VMs that should not?",
		Short: "The state of evictions and migrations in one look: begin here.",
		variables: append(newCommonVariables(),
			newMultiVariable(varNode, "Node", nodesSQL), newMultiVariable(varNamespace, "Namespace", namespacesSQL), newCauseVariable()),
		annotations: append(newAnnotations(), deschedulerEvictions()),
		rows: []row{
			{question: "Is anything wrong right now?", panels: []cog.Builder[dashboard.Panel]{newVerdictPanel(), newIncidentSentencesPanel()}},
			{question: "Why are VMs moving?", panels: []cog.Builder[dashboard.Panel]{newMovesByCausePanel(), newStatedReasonsPanel()}},
			{question: "Did moving help?", panels: []cog.Builder[dashboard.Panel]{newMovesThatHelpedPanel()}},
			{question: "Which node is it?", panels: []cog.Builder[dashboard.Panel]{newNodeStatesPanel()}},
			{question: "Do VMs go back and forth between nodes?", panels: []cog.Builder[dashboard.Panel]{newMoveGraphPanel()}},
			{question: "Was it pressure that moved them?", panels: []cog.Builder[dashboard.Panel]{newNodePressurePanel("Pressure and usage of nodes", onInstances("$node"))}},
			{question: "Which alerts fire, and what is not in the record?", panels: []cog.Builder[dashboard.Panel]{newFiringAlertsPanel(), newGapListPanel()}},
		},
	}
}

func newVerdictPanel() cog.Builder[dashboard.Panel] {
	capped := maxBy(metrics.VMICooldownSeconds, metrics.LabelNamespace, metrics.LabelVMI) + " >= on () group_left () " +
		maxBy(selectSeries(metrics.CooldownConfigSeconds, matchLabel(metrics.LabelParam, metrics.ParamMax)))
	slots := func(name string) string {
		return maxBy(selectSeries(name, matchLabel(metrics.LabelScope, metrics.ScopeTotal)))
	}
	return newNumbersPanel("Verdict", "Six numbers, dark when all is well: "+
		"firing retry loops, evacuations that fail and retry, how full the descheduler's slots are, how long the oldest migration waits, VMs at the longest cooldown, lag of the record (p99).").
		NoValue("evictrail is not scraped").
		WithTarget(queryInstant("A", orZero("count("+selectSeries(foreignAlerts, matchLabel(labelAlertName, "EvictrailDualRetryLoop"), matchLabel(labelSeverity, "warning"), matchLabel(labelAlertState, "firing"))+")"), "Loops that fire")).
		WithTarget(queryInstant("B", "sum("+maxBy(metrics.NodeEvacuationsRetrying, metrics.LabelNode)+")", "Evacuations that fail")).
		WithTarget(queryInstant("C", slots(metrics.SlotsInUse)+" / "+slots(metrics.SlotsLimit), "Slots of the descheduler in use")).
		WithTarget(queryInstant("D", orZero("time() - min("+metrics.MigrationPendingOldest+")"), "Oldest waiting migration")).
		WithTarget(queryInstant("E", orZero("count("+capped+")"), "VMs at the longest cooldown")).
		WithTarget(queryInstant("F", computeP99(metrics.CommitLagSeconds), "Delay of the record")).
		OverrideByQuery("A", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBad}), linkTo("Investigate", UIDLoop))).
		OverrideByQuery("B", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBlocked}, step{3, colourBad}), linkTo("Migrations", UIDMigrations))).
		OverrideByQuery("C", styleNumber(units.PercentUnit, 0, newThresholds(colourCalm, step{0.8, colourBlocked}, step{1, colourBad}), linkTo("Who holds them", UIDLoop))).
		OverrideByQuery("D", styleNumber(units.Seconds, 0, newThresholds(colourCalm, step{600, colourBlocked}, step{1800, colourBad}), linkTo("Migrations", UIDMigrations))).
		OverrideByQuery("E", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBlocked}), linkTo("Cooldowns", UIDCooldown))).
		OverrideByQuery("F", styleNumber(units.Seconds, 1, newThresholds(colourCalm, step{5, colourBlocked}, step{60, colourBad}), linkTo("The collector", UIDCollector))).
		Span(fullWidth).Height(4)
}

const incidentsSQL = `
SELECT
  opened_at,
  closed_at,
  kind,
  node,
  namespace,
  vmi,
  summary,
  advice,
  loop_id::text AS loop_id
FROM evictrail_v1.loops
WHERE ` + ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND closed_by IS DISTINCT FROM 'refuted'
  AND ` + openInRange + `
ORDER BY closed_at IS NOT NULL, opened_at DESC
LIMIT 50`

func newIncidentSentencesPanel() cog.Builder[dashboard.Panel] {
	return linkLoop(newTablePanel("Loops and advice", "Each loop: what happens, and what to do. Open ones first.")).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, incidentsSQL)).
		OverrideByName("summary", wrapColumn(520)).OverrideByName("advice", wrapColumn(420)).
		OverrideByName("kind", labelTexts("loops.kind", loopPaints()...)).
		Height(7)
}

// loopPaints colours the kinds of loops: those in which something fails red, those that only cost amber.
func loopPaints() []paint {
	return []paint{
		{"^" + string(trail.LoopDualRetry) + "$|^" + string(trail.LoopEndlessRetry) + "$", colourBad},
		{"^" + string(trail.LoopPingPong) + "$|^" + string(trail.LoopChurn) + "$", colourDescheduler},
		{".", colourBlocked},
	}
}

// The triggers of each cause; all others are unknown.
const (
	byDescheduler = "trigger = '" + string(trail.TriggerDescheduler) + "'"
	byDrain       = "trigger IN ('" + string(trail.TriggerDrain) + "', '" + string(trail.TriggerDrainTaint) + "')"
	byUser        = "trigger IN ('" + string(trail.TriggerUser) + "', '" + string(trail.TriggerNamedNode) + "')"
	byKubeVirt    = "trigger IN ('" + string(trail.TriggerWorkloadUpdate) + "', '" + string(trail.TriggerHotplug) + "', '" +
		string(trail.TriggerStorage) + "', '" + string(trail.TriggerDecentralized) + "')"
	byOther      = "trigger = '" + string(trail.TriggerEviction) + "'"
	byController = "trigger = '" + string(trail.TriggerController) + "'"
)

// causeOfTrigger is the cause of a migration, from column trigger.
const causeOfTrigger = `CASE
    WHEN ` + byDescheduler + ` THEN '` + causeDescheduler + `'
    WHEN ` + byDrain + ` THEN '` + causeDrain + `'
    WHEN ` + byUser + ` THEN '` + causeUser + `'
    WHEN ` + byKubeVirt + ` THEN '` + causeKubeVirt + `'
    WHEN ` + byOther + ` THEN '` + causeOther + `'
    WHEN ` + byController + ` THEN '` + causeController + `'
    ELSE '` + causeUnknown + `'
  END`

// ofCauses chooses migrations by their cause. Which causes are chosen is known before any row is read, and Postgres has counted the triggers: of what a CASE returns
// it expects so few that it compares each migration with each request.
const ofCauses = `(
    ` + byDescheduler + ` AND '` + causeDescheduler + `' ` + amongCauses + `
    OR ` + byDrain + ` AND '` + causeDrain + `' ` + amongCauses + `
    OR ` + byUser + ` AND '` + causeUser + `' ` + amongCauses + `
    OR ` + byKubeVirt + ` AND '` + causeKubeVirt + `' ` + amongCauses + `
    OR ` + byOther + ` AND '` + causeOther + `' ` + amongCauses + `
    OR ` + byController + ` AND '` + causeController + `' ` + amongCauses + `
    OR NOT (` + byDescheduler + ` OR ` + byDrain + ` OR ` + byUser + ` OR ` + byKubeVirt + ` OR ` + byOther + `
        OR ` + byController + `) AND '` + causeUnknown + `' ` + amongCauses + `
  )`

const amongCauses = `= ANY (ARRAY[${cause:sqlstring}]::text[])`

var movesByCauseSQL = `
WITH ` + foundOf("created_at, trigger", ofCluster+`
  AND `+ofNodes+`
  AND `+ofNamespaces+`
  AND `+ofCauses+`
  AND $__timeFilter(created_at)`) + `
SELECT
  ` + barOf("created_at") + ` AS time,
  ` + causeOfTrigger + ` AS metric,
  sum(counts) AS value
FROM found
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 10000`

func newMovesByCausePanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Started migrations by cause", "Migrations begun in each 10 minutes (hours over long ranges), by who is behind them. Each attempt of an evacuation counts. "+estimates).
		Datasource(postgresSource()).WithTarget(newPostgresQuery("A", formatSeries, movesByCauseSQL)).Overrides(asSeries(causePaints())).Interval("10m").MaxDataPoints(mostBars).
		Span(12).Height(8)
}

var movesThatHelpedSQL = `
SELECT
  ` + barOf("finished_at") + ` AS time,
  benefit AS metric,
  count(*) AS value
FROM evictrail_v1.migrations
WHERE ` + ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND benefit IS NOT NULL
  AND $__timeFilter(finished_at)
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT 10000`

func newMovesThatHelpedPanel() cog.Builder[dashboard.Panel] {
	return newBarsPanel("Moves by benefit", "Moves made to relieve a node, in each 10 minutes (hours over long ranges), by result: "+
		"the source is relieved (helped), is not or needed no relief (no_effect), or the target went over its threshold (harmed). Unknown where the load of nodes is not recorded: docs/node-load.md.").
		Datasource(postgresSource()).WithTarget(newPostgresQuery("A", formatSeries, movesThatHelpedSQL)).Overrides(labelSeries("migrations.benefit", []paint{
		{string(trail.Helped), colourGood}, {string(trail.NoEffect), colourBlocked}, {string(trail.Harmed), colourBad}, {string(trail.BenefitUnknown), colourUnknown},
	}...)).Interval("10m").MaxDataPoints(mostBars).
		Span(fullWidth).Height(7)
}

// ofMigrations chooses migrations that began.
const ofMigrations = ofCluster + `
  AND ` + ofNodes + `
  AND ` + ofNamespaces + `
  AND ` + ofCauses + `
  AND $__timeFilter(created_at)`

// whoAsked is who asked for a migration m, and what was said.
const whoAsked = `coalesce(r.requester, m.requester, 'nobody was seen') AS requester,
    coalesce(r.stated_reason, 'none given') AS stated_reason,
    ` + causeOfTrigger + ` AS cause`

// Of the requests that met an evacuation one brought it about. Guests do not add up: where migrations are a sample, guests are one of their own. OFFSET keeps Postgres
// from sorting the requests of the whole cluster.
var statedReasonsSQL = `
WITH ` + foundOf("requester, evacuation_id, trigger, outcome, vmi_uid", ofMigrations) + `, guests AS (
  SELECT DISTINCT requester, evacuation_id, trigger, vmi_uid, counts
  FROM found
  WHERE ` + fromAll + `
  UNION ALL
  SELECT DISTINCT requester, evacuation_id, trigger, vmi_uid, ` + fmt.Sprint(guestShare) + `
  FROM evictrail_v1.migrations
  WHERE ` + ofMigrations + `
    AND ` + ofSampledGuest + `
    AND ` + fromSample + `
), moves AS (
  SELECT
    requester,
    evacuation_id,
    trigger,
    sum(counts) AS migrations,
    sum(counts) FILTER (WHERE outcome = 'succeeded') AS moves,
    sum(counts) FILTER (WHERE outcome = 'failed') AS failed,
    sum(counts) FILTER (WHERE outcome IS NULL) AS running
  FROM found
  GROUP BY requester, evacuation_id, trigger
), reasons AS MATERIALIZED (
  SELECT evacuation_id, r.requester, r.stated_reason
  FROM (
    SELECT evacuation_id
    FROM moves
    UNION
    SELECT evacuation_id
    FROM guests
  ) AS its
  CROSS JOIN LATERAL (
    SELECT requester, stated_reason
    FROM evictrail_v1.eviction_requests
    WHERE ` + ofCluster + `
      AND effect = 'evacuation'
      AND evacuation_id = its.evacuation_id
    OFFSET 0
  ) AS r
), asked AS (
  SELECT
    ` + whoAsked + `,
    sum(migrations) AS migrations,
    coalesce(sum(moves), 0) AS moves,
    coalesce(sum(failed), 0) AS failed,
    coalesce(sum(running), 0) AS running
  FROM moves AS m
  LEFT JOIN reasons AS r USING (evacuation_id)
  GROUP BY 1, 2, 3
  ORDER BY migrations DESC, 1, 2
  LIMIT 10
), guests_asked AS (
  SELECT DISTINCT
    ` + whoAsked + `,
    vmi_uid,
    counts
  FROM guests AS m
  LEFT JOIN reasons AS r USING (evacuation_id)
  WHERE vmi_uid IS NOT NULL
)
SELECT
  requester,
  stated_reason,
  cause,
  (SELECT sum(counts) FROM guests_asked AS g WHERE (g.requester, g.stated_reason, g.cause) = (asked.requester, asked.stated_reason, asked.cause)) AS vms,
  moves::bigint AS moves,
  failed::bigint AS failed,
  running::bigint AS running
FROM asked
ORDER BY migrations DESC, requester, stated_reason
LIMIT 10`

func newStatedReasonsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Requesters and stated reasons", "The ten most frequent reasons given for migrations: who asked, what they said, how many VMs it moved, how often it failed. "+estimates).
		Unit(units.Short).WithTarget(newPostgresQuery("A", formatTable, statedReasonsSQL)).
		OverrideByName("cause", colourTexts(causePaints()...)).OverrideByName("stated_reason", wrapColumn(280)).
		Span(12).Height(8)
}

// The worst of what a node has at each moment: a retry loop, evacuations that fail, a drain, evacuations. Each begin and end is
// a moment; what has begun more often than it has ended is what the node has from then on. Nodes that had worse come first, and each begin is
// drawn, so that those after nodes with enough begins need not be looked at.
const nodeStatesSQL = `
WITH episodes AS (
  SELECT node, opened_at AS from_at, closed_at AS to_at, 5 AS rank
  FROM evictrail_v1.loops
  WHERE ` + ofCluster + `
    AND kind = 'dual_retry'
    AND closed_by IS DISTINCT FROM 'refuted'
    AND ` + openInRange + `
  UNION ALL
  SELECT node, first_failed_at, ended_at, 4
  FROM evictrail_v1.evacuations
  WHERE ` + ofCluster + `
    AND first_failed_at IS NOT NULL
    AND ` + markedInRange + `
  UNION ALL
  SELECT node, started_at, ended_at, 3
  FROM evictrail_v1.drains
  WHERE ` + ofCluster + `
    AND ` + drainedInRange + `
  UNION ALL
  SELECT node, marked_at, ended_at, 2
  FROM evictrail_v1.evacuations
  WHERE ` + ofCluster + `
    AND trigger = 'descheduler'
    AND ` + markedInRange + `
  UNION ALL
  SELECT node, $__timeFrom()::timestamptz, $__timeTo()::timestamptz, 1
  FROM unnest(ARRAY[${node:sqlstring}]::text[]) AS node
  CROSS JOIN LATERAL (
    SELECT
    FROM evictrail_v1.placements AS p
    WHERE ` + ofCluster + `
      AND p.node = node.node
      AND ` + thereInRange + `
    ORDER BY from_at DESC
    LIMIT 1
  ) AS a_guest
), bounded AS MATERIALIZED (
  SELECT
    node,
    greatest(from_at, $__timeFrom()) AS from_at,
    least(coalesce(to_at, 'infinity'), $__timeTo()) AS to_at,
    rank
  FROM episodes
  WHERE ` + ofNodes + `
    AND node IS NOT NULL
), nodes AS (
  SELECT node, max(rank) AS worst, sum(count(*)) OVER (ORDER BY max(rank) DESC, node) - count(*) AS before
  FROM bounded
  WHERE to_at > from_at
  GROUP BY node
), changes AS (
  SELECT node, nodes.worst AS worst_of_node, moment.at, rank, (to_at > from_at)::int * moment.change AS change
  FROM bounded
  JOIN nodes USING (node)
  CROSS JOIN LATERAL (VALUES (from_at, 1), (to_at, -1)) AS moment (at, change)
  WHERE before < 5000
), spans AS (
  SELECT
    node,
    worst_of_node,
    at AS from_at,
    lead(at) OVER w AS to_at,
    CASE
      WHEN sum(sum(change) FILTER (WHERE rank = 5)) OVER w > 0 THEN 5
      WHEN sum(sum(change) FILTER (WHERE rank = 4)) OVER w > 0 THEN 4
      WHEN sum(sum(change) FILTER (WHERE rank = 3)) OVER w > 0 THEN 3
      WHEN sum(sum(change) FILTER (WHERE rank = 2)) OVER w > 0 THEN 2
      WHEN sum(sum(change) FILTER (WHERE rank = 1)) OVER w > 0 THEN 1
    END AS worst
  FROM changes
  GROUP BY node, worst_of_node, at
  WINDOW w AS (PARTITION BY node ORDER BY at)
)
SELECT
  from_at AS time,
  to_at AS time_end,
  node AS lane,
  (ARRAY['calm', 'balancing', 'draining', 'retrying', 'LOOP'])[worst] AS "Value"
FROM spans
WHERE to_at > from_at
  AND worst IS NOT NULL
ORDER BY worst_of_node DESC, node, from_at
LIMIT 5000`

func newNodeStatesPanel() cog.Builder[dashboard.Panel] {
	return newLanesPanel("Node states", "A lane for each node: calm, balancing (the descheduler evicts), draining, retrying (an evacuation has failed), LOOP (a dual retry loop is open). "+
		"Worst node first. Click a state to investigate its node.",
		paint{"^LOOP$", colourBad}, paint{"^retrying$", colourBlocked}, paint{"^draining$", colourDrain}, paint{"^balancing$", colourDescheduler}, paint{"^calm$", colourCalm}).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, nodeStatesSQL)).
		DataLinks(dataLinks(linkTo("Investigate this node", UIDLoop, "node", "${__field.labels.lane}"), linkTo("The drain of this node", UIDDrain, "node", "${__field.labels.lane}"))).
		Height(9)
}

// ofMoves chooses migrations that ended and whose both nodes are known.
const ofMoves = ofCluster + `
  AND ` + ofNamespaces + `
  AND ` + ofCauses + `
  AND outcome IS NOT NULL
  AND source_node IS NOT NULL
  AND target_node IS NOT NULL
  AND $__timeFilter(created_at)`

// Each end of an edge must be a node, else Grafana draws nothing: both queries choose the same migrations, and there is room for more
// nodes than edges can have ends.
var graphNodesSQL = `
WITH ` + foundOf("source_node, target_node, outcome", ofMoves) + `
SELECT
  node AS id,
  node AS title,
  sum(gone)::text || ' left' AS "mainstat",
  sum(come)::text || ' came' AS "secondarystat",
  CASE WHEN sum(ok + bad) > 0 THEN sum(ok)::float8 / sum(ok + bad) ELSE 1 END AS "arc__succeeded",
  CASE WHEN sum(ok + bad) > 0 THEN sum(bad)::float8 / sum(ok + bad) ELSE 0 END AS "arc__failed"
FROM (
  SELECT
    source_node AS node,
    counts * (outcome = 'succeeded')::int AS gone,
    0 AS come,
    counts * (outcome = 'succeeded')::int AS ok,
    counts * (outcome = 'failed')::int AS bad
  FROM found
  UNION ALL
  SELECT target_node, 0, counts * (outcome = 'succeeded')::int, 0, 0
  FROM found
) AS ends
GROUP BY node
ORDER BY node
LIMIT 2000`

// Which pairs of nodes have the most moves is estimated from the sample, how many each has is counted.
var graphEdgesSQL = `
WITH ` + sampleOf("source_node, target_node", ofMoves) + `, most AS MATERIALIZED (
  SELECT source_node, target_node
  FROM sample
  WHERE ` + fromSample + `
  GROUP BY source_node, target_node
  ORDER BY count(*) DESC, 1, 2
  LIMIT 300
), moves AS (
  SELECT source_node, target_node, outcome
  FROM evictrail_v1.migrations
  WHERE ` + ofMoves + `
    AND ` + fromAll + `
  UNION ALL
  SELECT source_node, target_node, outcome
  FROM most
  JOIN evictrail_v1.migrations USING (source_node, target_node)
  WHERE ` + ofMoves + `
)
SELECT
  source_node || ' > ' || target_node AS id,
  source_node AS source,
  target_node AS target,
  count(*) FILTER (WHERE outcome = 'succeeded')::text || ' moved' AS "mainstat",
  count(*) FILTER (WHERE outcome <> 'succeeded')::text || ' failed' AS "secondarystat",
  least(1 + count(*) FILTER (WHERE outcome = 'succeeded'), 12)::float8 AS thickness,
  CASE WHEN bool_or(outcome = 'failed') THEN '` + colourBad + `' WHEN bool_or(outcome = 'succeeded') THEN '` + colourGood + `' ELSE '` + colourBlocked + `' END AS color
FROM moves
GROUP BY source_node, target_node
ORDER BY count(*) DESC, 1
LIMIT 300`

func newMoveGraphPanel() cog.Builder[dashboard.Panel] {
	return nodegraph.NewPanelBuilder().Title("Moves between nodes").
		Description("An arrow is a pair of nodes: thicker with more moves, red where some failed. Two thick arrows between the same nodes are VMs that go back and forth. "+
			"Shows all nodes, whatever the variable says. "+foundBySample).
		Datasource(postgresSource()).Unit(units.Short).
		WithTarget(newPostgresQuery("nodes", formatTable, graphNodesSQL)).WithTarget(newPostgresQuery("edges", formatTable, graphEdgesSQL)).
		OverrideByName("arc__succeeded", []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": colourGood}}}).
		OverrideByName("arc__failed", []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": colourBad}}}).
		Span(fullWidth).Height(11)
}

// onInstances matches the scrape address or the name of nodes: the descheduler operator and node_exporter have no label node.
func onInstances(nodes string) string { return matchRegexp(labelInstance, nodes+"(:[0-9]+)?") }

// newNodePressurePanel is of all nodes of the overview or of the one of the investigator.
func newNodePressurePanel(title, nodes string) cog.Builder[dashboard.Panel] {
	recorded := maxBy(selectSeries(foreignPressureCPU, nodes), labelInstance)
	exported := maxBy(rateOf(selectSeries(foreignNodeExporterCPU, nodes)), labelInstance)
	return newLinesPanel(title, "What the descheduler looks at: the share of time in which something waited for a CPU, and the share of CPUs in use. "+
		"From the recording rules of the descheduler operator, else from node_exporter. Evictions are marked: a line that falls after them was helped.", units.PercentUnit).
		Max(1).WithTarget(queryRange("A", recorded+" or "+exported, "pressure {{"+labelInstance+"}}")).
		WithTarget(queryRange("B", maxBy(selectSeries(foreignUtilisationCPU, nodes), labelInstance), "use {{"+labelInstance+"}}")).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeOff)).
		Span(fullWidth).Height(8)
}

func newFiringAlertsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Firing alerts", "Alerts of evictrail that fire now, with node and VM.").
		Datasource(prometheusSource()).Unit(units.NoUnit).
		WithTarget(rowsOf("A", aggregateExpr("max", selectSeries(foreignAlerts, matchRegexp(labelAlertName, "Evictrail.+"), matchLabel(labelAlertState, "firing")),
			[]string{labelAlertName, labelSeverity, metrics.LabelNode, metrics.LabelNamespace, metrics.LabelVMI}))).
		WithTransformation(hideColumns("Time", "Value")).
		OverrideByName(labelSeverity, colourTexts(paint{"critical", colourBad}, paint{"warning", colourBlocked}, paint{".", colourCalm})).
		Span(12).Height(7)
}

// hideColumns leaves columns out of a table.
func hideColumns(columns ...string) dashboard.DataTransformerConfig {
	out := map[string]bool{}
	for _, c := range columns {
		out[c] = true
	}
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": out}}
}

const gapsSQL = `
SELECT
  opened_at,
  closed_at,
  extract(epoch FROM coalesce(closed_at, $__timeTo()::timestamptz) - opened_at)::float8 AS lasted,
  source,
  cause,
  detail
FROM evictrail_v1.gaps
WHERE ` + ofCluster + `
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 100`

func newGapListPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Gaps in the record", "When a source could not be observed. What happened in that time was rebuilt where an object still says so; the rest is missing.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, gapsSQL)).OverrideByName("lasted", setColumnUnit(units.Seconds)).
		Span(12).Height(7)
}
