package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// newDrainsDashboard is for who waits for a node to become empty.
func newDrainsDashboard() Dashboard {
	return Dashboard{
		UID: UIDDrain, Title: "evictrail / Drains: why is this node not empty yet?",
		Short:       "Drains and maintenance: what is left on a node, and what each VM waits for.",
		variables:   append(newCommonVariables(), newMultiVariable(varNode, "Node", nodesSQL)),
		annotations: newAnnotations(),
		rows: []row{
			{question: "How far is it?", panels: []cog.Builder[dashboard.Panel]{newDrainVerdictPanel()}},
			{question: "What holds it up?", panels: []cog.Builder[dashboard.Panel]{newBlockersPanel(), newRemainingByBlockerPanel()}},
			{question: "How did it go so far?", panels: []cog.Builder[dashboard.Panel]{newDrainTimelinePanel()}},
			{question: "Which drains were there?", panels: []cog.Builder[dashboard.Panel]{newDrainListPanel()}},
			{question: "Who left too late?", panels: []cog.Builder[dashboard.Panel]{newObjectiveKeptPanel(), newLatePanel()}},
			{question: "Which VMs must somebody else move?", panels: []cog.Builder[dashboard.Panel]{newExternalVMsPanel()}},
		},
	}
}

func newDrainVerdictPanel() cog.Builder[dashboard.Panel] {
	remaining := "sum(" + maxBy(selectSeries(metrics.NodeDrainRemaining, onNodes), metrics.LabelNode, metrics.LabelBlocker) + ")"
	perSecond := "(sum(" + selectSeries(recordMigrated, onNodes) + ") / 1800 > 0)"
	return newNumbersPanel("Drain progress", "Nodes being drained, VMs still on them, when the longest drain began, and when the last VM will be gone at the pace of the last 30 minutes. "+
		"No estimate while none leaves.").
		WithTarget(queryInstant("A", orZero("sum("+maxBy(selectSeries(metrics.NodeDraining, onNodes), metrics.LabelNode)+")"), "Nodes being emptied")).
		WithTarget(queryInstant("B", orZero(remaining), "VMs still there")).
		WithTarget(queryInstant("C", "time() - min("+selectSeries(metrics.NodeDrainStart, onNodes)+")", "Longest drain")).
		WithTarget(queryInstant("D", remaining+" / "+perSecond, "Time left")).
		OverrideByQuery("A", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourDrain}))).
		OverrideByQuery("B", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBlocked}))).
		OverrideByQuery("C", styleNumber(units.Seconds, 0, newThresholds(colourCalm, step{1800, colourBlocked}, step{7200, colourBad}))).
		OverrideByQuery("D", styleNumber(units.Seconds, 0, newThresholds(colourCalm, step{3600, colourBlocked}))).
		Span(fullWidth).Height(4)
}

// What a drain that is under way waits for is in view drain_blockers, as of now. For an earlier moment it is derived from the
// guest's stay, its migrations and the answers to requests until then.
var blockersSQL = `
WITH guests AS (
  SELECT
    d.node,
    d.drain_id,
    d.started_at,
    least(coalesce(d.ended_at, 'infinity'), $__timeTo()) AS then,
    coalesce(d.ended_at, now()) <= $__timeTo()::timestamptz + interval '1 minute' AS is_now,
    p.cluster,
    p.namespace,
    p.vmi,
    p.vmi_uid,
    p.strategy,
    p.from_at,
    CASE WHEN p.not_migratable_since <= $__timeTo() THEN p.not_migratable END AS not_migratable
  FROM evictrail_v1.drains AS d
  JOIN evictrail_v1.placements AS p ON p.cluster = d.cluster AND p.node = d.node
    AND p.from_at <= least(coalesce(d.ended_at, 'infinity'), $__timeTo())
    AND coalesce(p.to_at, 'infinity') > least(coalesce(d.ended_at, 'infinity'), $__timeTo())
  WHERE d.` + ofCluster + `
    AND d.node = ANY (ARRAY[${node:sqlstring}]::text[])
    AND d.started_at <= $__timeTo()
    AND coalesce(d.ended_at, 'infinity') >= $__timeFrom()
  ORDER BY d.started_at DESC
  LIMIT 500
), drain_at AS (
  SELECT g.*, m.attempts, m.failed, m.running, m.last_failure, m.waits_for, r.answer, r.answer_text
  FROM guests AS g
  LEFT JOIN LATERAL (
    SELECT
      count(*) AS attempts,
      count(*) FILTER (WHERE outcome = 'failed' AND finished_at <= g.then) AS failed,
      bool_or(scheduling_at <= g.then AND coalesce(finished_at, 'infinity') > g.then) AS running,
      (array_agg(failure_class ORDER BY finished_at DESC) FILTER (WHERE outcome = 'failed' AND finished_at <= g.then))[1] AS last_failure,
      (array_agg(wait_reason ORDER BY created_at DESC))[1] AS waits_for
    FROM evictrail_v1.migrations
    WHERE cluster = g.cluster
      AND namespace = g.namespace
      AND vmi = g.vmi
      AND vmi_uid = g.vmi_uid
      AND source_node = g.node
      AND created_at BETWEEN g.started_at - interval '1 minute' AND g.then
  ) AS m ON true
  LEFT JOIN LATERAL (
    SELECT answer, answer_text
    FROM evictrail_v1.eviction_requests
    WHERE cluster = g.cluster
      AND namespace = g.namespace
      AND vmi = g.vmi
      AND requested_at BETWEEN g.started_at - interval '1 minute' AND g.then
    ORDER BY requested_at DESC
    LIMIT 1
  ) AS r ON true
)
SELECT *
FROM (
  SELECT
    t.node,
    t.namespace,
    t.vmi,
    t.strategy,
    coalesce(b.blocker, CASE
      WHEN t.answer = 'not_migratable' OR t.not_migratable IS NOT NULL AND t.answer IS DISTINCT FROM 'pdb' THEN 'not_migratable'
      WHEN t.strategy = 'External' THEN 'external'
      WHEN t.running THEN 'migrating'
      WHEN t.failed > 0 THEN 'failing'
      WHEN t.answer = 'pdb' THEN 'pdb'
      WHEN t.strategy = 'None' THEN 'opted_out'
      ELSE 'queued'
    END) AS blocker,
    coalesce(b.reason, t.not_migratable, ` + labelSQL("t.last_failure", "migrations.failure_class") + `, CASE t.answer WHEN 'pdb' THEN t.answer_text END, ` + labelSQL("t.waits_for", "migrations.wait_reason") + `) AS reason,
    coalesce(b.waiting_since, greatest(t.started_at, t.from_at)) AS waiting_since,
    extract(epoch FROM t.then - coalesce(b.waiting_since, greatest(t.started_at, t.from_at)))::float8 AS waited,
    t.attempts,
    t.failed,
    e.next_retry_at AS next_attempt,
    extract(epoch FROM e.overdue)::float8 AS overdue,
    b.next AS kubevirt_will
  FROM drain_at AS t
  LEFT JOIN evictrail_v1.drain_blockers AS b ON t.is_now AND b.cluster = t.cluster AND b.drain_id = t.drain_id AND b.vmi_uid = t.vmi_uid
  LEFT JOIN evictrail_v1.evacuations AS e ON t.is_now AND e.cluster = t.cluster AND e.namespace = t.namespace AND e.vmi = t.vmi AND e.node = t.node AND e.ended_at IS NULL
) AS blocked
ORDER BY node, array_position(ARRAY['not_migratable', 'external', 'pdb', 'opted_out', 'failing', 'queued', 'migrating'], blocker), namespace, vmi
LIMIT 500`

func newBlockersPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Blocked VMs and their blockers", "Each VM still on its node when the drain, or the time range, ends: "+
		"what blocks it and why, since when, and what KubeVirt will do by itself (for open drains). Those that need a person first.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, blockersSQL)).
		OverrideByName("waited", setColumnUnit(units.Seconds)).OverrideByName("overdue", setColumnUnit(units.Seconds)).OverrideByName("reason", wrapColumn(300)).OverrideByName("kubevirt_will", wrapColumn(240)).
		OverrideByName("blocker", labelTexts("drain_blockers.blocker", blockerPaints()...)).
		Span(18).Height(11)
}

// blockerPaints colours blockers: red needs a person, amber waits, blue moves.
func blockerPaints() []paint {
	return []paint{
		{"^" + string(trail.BlockerNotMigratable) + "$|^" + string(trail.BlockerFailing) + "$", colourBad},
		{"^" + string(trail.BlockerMigrating) + "$", colourDrain},
		{".", colourBlocked},
	}
}

func newRemainingByBlockerPanel() cog.Builder[dashboard.Panel] {
	return newGaugesPanel("Remaining VMs by blocker", "VMs left on nodes being drained, by what they wait for.", units.Short).
		WithTarget(queryInstant("A", "sum by ("+metrics.LabelBlocker+") ("+maxBy(selectSeries(metrics.NodeDrainRemaining, onNodes), metrics.LabelNode, metrics.LabelBlocker)+")", "{{"+metrics.LabelBlocker+"}}")).
		ColorScheme(newFixedColour(colourBlocked)).Overrides(labelSeries("drain_blockers.blocker")).Span(6).Height(11)
}

// A lane for each drain, whose states begin with each guest that leaves, and under it one for each guest.
var drainTimelineSQL = `
WITH drain AS (
  SELECT
    cluster,
    node,
    drain_id,
    requester,
    vmis_total,
    outcome,
    started_at,
    ended_at,
    least(coalesce(ended_at, 'infinity'), $__timeTo()) AS until
  FROM evictrail_v1.drains
  WHERE ` + ofCluster + `
    AND node = ANY (ARRAY[${node:sqlstring}]::text[])
    AND ` + drainedInRange + `
  ORDER BY started_at DESC
  LIMIT 20
), guests AS (
  SELECT d.node, d.drain_id, d.until, p.namespace, p.vmi, p.vmi_uid, p.ended_by, d.cluster, d.started_at,
    greatest(p.from_at, d.started_at) AS from_at,
    least(coalesce(p.to_at, 'infinity'), d.until) AS gone_at,
    p.to_at <= d.until AS has_left
  FROM drain AS d
  JOIN evictrail_v1.placements AS p ON p.cluster = d.cluster AND p.node = d.node AND p.from_at <= d.until AND coalesce(p.to_at, 'infinity') >= d.started_at
  ORDER BY d.started_at, p.to_at
  LIMIT 500
), node_begins AS (
  SELECT node, drain_id, until, started_at AS at, 0 AS gone
  FROM drain
  UNION ALL
  SELECT node, drain_id, until, gone_at, 1
  FROM guests
  WHERE has_left
    AND gone_at >= started_at
), node_levels AS (
  SELECT node, drain_id, until, at, sum(sum(gone)) OVER (PARTITION BY drain_id ORDER BY at) AS gone
  FROM node_begins
  GROUP BY node, drain_id, until, at
), guest_begins AS (
  SELECT node, namespace, vmi, vmi_uid, drain_id, from_at AS at, gone_at, 'on the node' AS state
  FROM guests
  UNION ALL
  SELECT g.node, g.namespace, g.vmi, g.vmi_uid, g.drain_id, m.created_at, g.gone_at,
    CASE WHEN m.outcome = 'failed' THEN 'attempt fails: ' || coalesce(` + labelSQL("m.failure_class", "migrations.failure_class") + `, 'unknown') WHEN m.outcome = 'aborted' THEN 'attempt aborted' ELSE 'migrates' END
  FROM guests AS g
  JOIN evictrail_v1.migrations AS m ON m.cluster = g.cluster AND m.namespace = g.namespace AND m.vmi = g.vmi AND m.vmi_uid = g.vmi_uid
    AND m.created_at BETWEEN g.from_at AND g.gone_at
  UNION ALL
  SELECT g.node, g.namespace, g.vmi, g.vmi_uid, g.drain_id, m.finished_at, g.gone_at, 'on the node'
  FROM guests AS g
  JOIN evictrail_v1.migrations AS m ON m.cluster = g.cluster AND m.namespace = g.namespace AND m.vmi = g.vmi AND m.vmi_uid = g.vmi_uid
    AND m.finished_at BETWEEN g.from_at AND g.gone_at
), drawn AS (
  SELECT node, 0 AS part, node AS lane, l.at AS from_at, least(lead(l.at) OVER (PARTITION BY drain_id ORDER BY l.at), l.until) AS to_at,
    greatest(d.vmis_total - l.gone, 0) || ' of ' || d.vmis_total || ' VMs left' || coalesce(', asked by ' || d.requester, '') AS state
  FROM node_levels AS l
  JOIN drain AS d USING (node, drain_id)
  UNION ALL
  SELECT node, 1, '  ' || namespace || '/' || vmi, at, least(lead(at) OVER (PARTITION BY drain_id, vmi_uid ORDER BY at), gone_at), state
  FROM guest_begins
)
` + clipDrawn + `
ORDER BY node, part, min(from_at) OVER (PARTITION BY lane), lane, from_at
LIMIT 5000`

func newDrainTimelinePanel() cog.Builder[dashboard.Panel] {
	return newLanesPanel("Drain timeline", "A lane for each node from the first request to the end, with the number of VMs left; under it a lane for each VM until it is gone, with its attempts.",
		paint{"fails", colourBad}, paint{"migrates", colourGood}, paint{"aborted", colourBlocked}, paint{"^0 of", colourGood}, paint{" left", colourDrain}, paint{".", colourCalm}).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, drainTimelineSQL)).Height(11)
}

const drainListSQL = `
SELECT
  node,
  started_at,
  ended_at,
  extract(epoch FROM coalesce(ended_at, $__timeTo()::timestamptz) - started_at)::float8 AS lasted,
  requester,
  requester_class,
  vmis_total AS vms,
  vmis_left AS vms_left,
  outcome,
  last_asked_at
FROM evictrail_v1.drains
WHERE ` + ofCluster + `
  AND node = ANY (ARRAY[${node:sqlstring}]::text[])
  AND ` + drainedInRange + `
ORDER BY started_at DESC
LIMIT 200`

func newDrainListPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Drains", "Each drain: who asked, how many VMs there were and are, how it ended.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, drainListSQL)).OverrideByName("lasted", setColumnUnit(units.Seconds)).
		OverrideByName("outcome", labelTexts("drains.outcome", paint{"emptied", colourGood}, paint{".", colourBlocked})).Height(7)
}

const externalSQL = `
SELECT
  namespace,
  vmi,
  node,
  marked_at,
  extract(epoch FROM coalesce(ended_at, $__timeTo()::timestamptz) - marked_at)::float8 AS unanswered_for,
  requester,
  requester_class,
  outcome
FROM evictrail_v1.evacuations
WHERE ` + ofCluster + `
  AND node = ANY (ARRAY[${node:sqlstring}]::text[])
  AND strategy = 'External'
  AND ` + markedInRange + `
ORDER BY ended_at IS NOT NULL, marked_at
LIMIT 200`

func newExternalVMsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("VMs with eviction strategy External", "KubeVirt does nothing for these: the controller that owns the VM must answer. Since when each waits, and how it ended.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, externalSQL)).OverrideByName("unanswered_for", setColumnUnit(units.Seconds)).
		OverrideByName("requester_class", labelTexts("evacuations.requester_class")).OverrideByName("outcome", labelTexts("evacuations.outcome")).Height(7)
}
