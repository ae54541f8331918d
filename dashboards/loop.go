package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
)

// newLoopDashboard is where the alerts about loops lead: one node, one episode.
func newLoopDashboard() Dashboard {
	return Dashboard{
		UID: UIDLoop, Title: "evictrail / Loops: which two controllers retry against each other on this node?",
		Short: "One node and what its evacuations and the descheduler do to each other.",
		variables: append(newCommonVariables(),
			newQueryVariable(varNode, "Node", nodesSQL), newMultiVariable(varIncident, "Incident", incidentChoiceSQL)),
		annotations: append(newAnnotations(), deschedulerEvictions()),
		rows: []row{
			{question: "Who retries, and who is moved during that time?", panels: []cog.Builder[dashboard.Panel]{newTwoLanesPanel(), newLoopSentencesPanel()}},
			{question: "What proves it?", panels: []cog.Builder[dashboard.Panel]{newProofPanel()}},
			{question: "Does KubeVirt back off, and does it help?", panels: []cog.Builder[dashboard.Panel]{newRetryCadencePanel()}},
			{question: "Who holds the descheduler's slots?", panels: []cog.Builder[dashboard.Panel]{newSlotHoldersPanel(), newSlotsInUsePanel()}},
			{question: "Did moving VMs help the node?", panels: []cog.Builder[dashboard.Panel]{
				newNodePressurePanel("Pressure and usage of this node", onInstances("$node"))}},
			{question: "What can be done?", panels: []cog.Builder[dashboard.Panel]{newActionsPanel()}},
		},
	}
}

// ofNode is the one node of this dashboard.
const ofNode = "node = ${node:sqlstring}"

// incidentChoiceSQL names the loops of the node, the newest first.
var incidentChoiceSQL = `
SELECT
  to_char(opened_at AT TIME ZONE 'UTC', 'MM-DD HH24:MI') || ' ' || ` + labelSQL("kind", "loops.kind") + ` || coalesce(' ' || namespace || '/' || vmi, '') AS __text,
  loop_id::text AS __value
FROM evictrail_v1.loops
WHERE ` + ofCluster + `
  AND ` + ofNode + `
  AND closed_by IS DISTINCT FROM 'refuted'
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 100`

// The four sorts of lanes. Begins are moments and states; a state lasts until the next begin of its lane, or the end of its
// evacuation; attempts are looked for from a day before the time range on, by the index on their times. A tick is a state that has no length by itself: it is drawn a sixtieth of the time range long.
var twoLanesSQL = `
WITH evacuated AS (
  SELECT
    evacuation_id,
    cluster,
    namespace,
    vmi,
    namespace || '/' || vmi AS vm,
    requester_class,
    failed_attempts,
    marked_at,
    ended_at,
    outcome,
    least(coalesce(ended_at, 'infinity'), $__timeTo()) AS until,
    lead(marked_at) OVER (PARTITION BY namespace, vmi ORDER BY marked_at) AS next_at
  FROM evictrail_v1.evacuations
  WHERE ` + ofCluster + `
    AND ` + ofNode + `
    AND ` + markedInRange + `
  ORDER BY failed_attempts DESC, marked_at
  LIMIT 200
), attempts AS (
  SELECT e.evacuation_id, e.vm, e.marked_at, e.until, e.failed_attempts AS failures, m.attempt, m.cluster, m.namespace, m.vmi, m.wait_reason, m.created_at, m.scheduling_at, m.finished_at, m.outcome, m.failure_class
  FROM evacuated AS e
  JOIN evictrail_v1.migrations AS m ON m.cluster = e.cluster AND m.namespace = e.namespace AND m.vmi = e.vmi AND m.evacuation_id = e.evacuation_id
    AND m.created_at BETWEEN $__timeFrom()::timestamptz - interval '1 day' AND $__timeTo()
), stuck_begins AS (
  SELECT evacuation_id, vm, until, marked_at AS at, 0 AS turn, 'marked' AS state
  FROM evacuated
  WHERE failed_attempts > 0
  UNION ALL
  SELECT evacuation_id, vm, until, greatest(created_at, marked_at), 1, 'attempt ' || attempt || ' pending' || coalesce(': ' || ` + labelSQL("wait_reason", "migrations.wait_reason") + `, '')
  FROM attempts
  WHERE failures > 0
  UNION ALL
  SELECT evacuation_id, vm, until, greatest(scheduling_at, marked_at), 2, 'attempt ' || attempt || ' ' ||
    CASE outcome WHEN 'succeeded' THEN 'succeeds' WHEN 'failed' THEN 'fails: ' || coalesce(` + labelSQL("failure_class", "migrations.failure_class") + `, 'unknown') WHEN 'aborted' THEN 'is aborted' ELSE 'runs' END
  FROM attempts
  WHERE failures > 0
    AND scheduling_at IS NOT NULL
  UNION ALL
  SELECT a.evacuation_id, a.vm, a.until, a.finished_at, 3,
    coalesce('backoff until ' || to_char(d.until AT TIME ZONE 'UTC', 'HH24:MI:SS "UTC"'), 'waits after attempt ' || a.attempt)
  FROM attempts AS a
  LEFT JOIN evictrail_v1.cooldown_decisions AS d ON d.cluster = a.cluster AND d.namespace = a.namespace AND d.vmi = a.vmi
    AND d.layer = 'kubevirt_backoff' AND d.verdict = 'holds' AND d.decided_at = a.finished_at
  WHERE a.failures > 0
    AND a.outcome IN ('failed', 'aborted')
), stuck AS (
  SELECT 1 AS part, 'A  ' || vm || ' cannot leave' AS lane, at AS from_at, least(lead(at) OVER (PARTITION BY evacuation_id ORDER BY at, turn), until) AS to_at, state
  FROM stuck_begins
), other_begins AS (
  SELECT evacuation_id, vm, until, marked_at AS at, 0 AS turn, 'evicted by the descheduler' AS state
  FROM evacuated
  WHERE failed_attempts = 0
    AND requester_class = 'descheduler'
  UNION ALL
  SELECT a.evacuation_id, a.vm, a.until, greatest(a.scheduling_at, a.marked_at), 1, 'migrates'
  FROM attempts AS a
  JOIN evacuated AS e USING (evacuation_id)
  WHERE a.failures = 0
    AND a.scheduling_at IS NOT NULL
    AND e.requester_class = 'descheduler'
), others AS (
  SELECT 2 AS part, 'B  ' || vm AS lane, at AS from_at, least(lead(at) OVER (PARTITION BY evacuation_id ORDER BY at, turn), until) AS to_at, state
  FROM other_begins
  UNION ALL
  SELECT 2, 'B  ' || vm, ended_at, least(next_at, ended_at + ($__timeTo()::timestamptz - $__timeFrom()::timestamptz) / 60),
    ` + labelSQL("outcome", "evacuations.outcome") + `
  FROM evacuated
  WHERE failed_attempts = 0
    AND requester_class = 'descheduler'
    AND ended_at <= $__timeTo()
  UNION ALL
  SELECT 2, 'B  ' || namespace || '/' || coalesce(vmi, pod) || ', asked again', requested_at,
    least(
      lead(requested_at) OVER (PARTITION BY namespace, vmi, pod ORDER BY requested_at),
      requested_at + ($__timeTo()::timestamptz - $__timeFrom()::timestamptz) / 60),
    CASE answer WHEN 'already_marked' THEN 'asked again' ELSE ` + labelSQL("answer", "eviction_requests.answer") + ` END
  FROM evictrail_v1.eviction_requests
  WHERE ` + ofCluster + `
    AND ` + ofNode + `
    AND requester_class = 'descheduler'
    AND answer NOT IN ('marked', 'allowed', 'unknown')
    AND NOT dry_run
    AND $__timeFilter(requested_at)
), seen_begins AS (
  SELECT evacuation_id, vm, failed_attempts, until, marked_at AS at, 0 AS turn, 'annotation not there' AS state
  FROM evacuated
  UNION ALL
  SELECT s.evacuation_id, s.vm, s.failed_attempts, s.until, greatest(e.at, s.marked_at), 1,
    CASE e.kind WHEN 'annotation_set' THEN 'annotation there' ELSE 'annotation not there' END
  FROM evacuated AS s
  JOIN evictrail_v1.events AS e ON e.cluster = s.cluster AND e.namespace = s.namespace AND e.vmi = s.vmi
  WHERE e.reason = 'eviction_in_progress'
    AND e.kind IN ('annotation_set', 'annotation_cleared')
    AND e.at BETWEEN s.marked_at - interval '1 minute' AND s.until
), seen AS (
  SELECT vm, failed_attempts, at AS from_at, least(lead(at) OVER (PARTITION BY evacuation_id ORDER BY at, turn), until) AS to_at, state
  FROM seen_begins
), changes AS (
  SELECT greatest(from_at, $__timeFrom()) AS at, 1 AS change
  FROM seen
  WHERE state = 'annotation there'
    AND to_at > $__timeFrom()
  UNION ALL
  SELECT to_at, -1
  FROM seen
  WHERE state = 'annotation there'
    AND to_at > $__timeFrom()
  UNION ALL
  SELECT $__timeFrom()::timestamptz, 0
), levels AS (
  SELECT at, sum(sum(change)) OVER (ORDER BY at) AS used
  FROM changes
  WHERE at < $__timeTo()
  GROUP BY at
), rules AS (
  SELECT (detail -> 'descheduler' ->> 'limit_per_node')::int AS most
  FROM evictrail_v1.events
  WHERE ` + ofCluster + `
    AND namespace IS NULL
    AND vmi IS NULL
    AND kind = 'config_seen'
    AND reason = 'descheduler_policy'
    AND at <= $__timeTo()
  ORDER BY at DESC
  LIMIT 1
), slots AS (
  SELECT 3 AS part, 'C  slots in use' AS lane, at AS from_at, least(lead(at) OVER (ORDER BY at), $__timeTo()) AS to_at,
    used || coalesce(' of ' || most, '') || CASE WHEN used > 0 AND used >= most THEN ': full' ELSE '' END AS state
  FROM levels
  LEFT JOIN rules ON true
), drawn AS (
  SELECT * FROM stuck
  UNION ALL
  SELECT * FROM others
  UNION ALL
  SELECT * FROM slots
  UNION ALL
  SELECT 4, 'D  the descheduler sees ' || vm, from_at, to_at, state
  FROM seen
  WHERE failed_attempts > 0
)
` + clipDrawn + `
ORDER BY part, min(from_at) OVER (PARTITION BY lane), lane, from_at
LIMIT 5000`

func newTwoLanesPanel() cog.Builder[dashboard.Panel] {
	return newLanesPanel("Timeline of the stuck VM and of those moved in its place",
		"A: VMs of this node whose evacuation has failed, attempt by attempt. B: other VMs that the descheduler evicted from here, or tried to. C: "+
			"VMs of this node with the annotation that the descheduler counts, against its limit for a node. D: whether the stuck VM has it. "+
			"Red bars repeating in A while purple ones go on in B are a dual retry loop. D red: the descheduler lost track of the stuck VM; D not red: C shows the free slot that it uses.",
		paint{"fails|not there|VMI ended", colourBad}, paint{"succeeds|^moved", colourGood}, paint{"pending|^backoff|^waits|refused|pod not found|^error|full|cancelled|aborted", colourBlocked},
		paint{"descheduler|asked again", colourDescheduler}, paint{"migrates|runs", "#CA95E5"}, paint{"annotation there", colourCooling}, paint{".", colourCalm}).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, twoLanesSQL)).Height(13)
}

const loopSentencesSQL = `
SELECT
  opened_at,
  closed_at,
  kind,
  path,
  namespace,
  vmi,
  summary,
  advice,
  node,
  loop_id::text AS loop_id
FROM evictrail_v1.loops
WHERE ` + ofCluster + `
  AND ` + ofNode + `
  AND loop_id::text = ANY (ARRAY[${incident:sqlstring}]::text[])
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 20`

func newLoopSentencesPanel() cog.Builder[dashboard.Panel] {
	return linkLoop(newTablePanel("Incidents and advice", "The chosen incidents. Indented lines of the advice can be pasted into a shell.")).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, loopSentencesSQL)).
		OverrideByName("summary", wrapColumn(520)).OverrideByName("advice", wrapColumn(620)).OverrideByName("kind", labelTexts("loops.kind", loopPaints()...)).OverrideByName("path", labelTexts("loops.path")).
		Height(8)
}

// OFFSET has each exhibit looked up by itself: joined, Postgres reads all facts of the cluster.
const proofSQL = `
SELECT
  p.at AS happened,
  e.observed_at AS seen,
  coalesce(e.detail ->> 'source', e.object_kind, 'derived') AS source,
  p.text AS what,
  coalesce(e.detail ->> 'user', r.requester) AS actor,
  e.reason,
  nullif(split_part(p.vmi, '/', 1), '') AS namespace,
  nullif(split_part(p.vmi, '/', 2), '') AS vmi,
  e.object_kind || ' ' || e.object_uid AS object,
  e.object_version AS version,
  p.event_id
FROM evictrail_v1.loops AS l
CROSS JOIN LATERAL jsonb_to_recordset(l.evidence) AS p (at timestamptz, vmi text, text text, event_id uuid)
LEFT JOIN LATERAL (
  SELECT event_id, observed_at, detail, object_kind, object_uid, object_version, reason
  FROM evictrail_v1.events
  WHERE cluster = l.cluster
    AND namespace = split_part(p.vmi, '/', 1)
    AND at BETWEEN p.at - interval '5 minutes' AND p.at + interval '5 minutes'
    AND event_id = p.event_id
  OFFSET 0
) AS e ON true
LEFT JOIN LATERAL (
  SELECT requester
  FROM evictrail_v1.eviction_requests
  WHERE cluster = l.cluster
    AND namespace = split_part(p.vmi, '/', 1)
    AND vmi = split_part(p.vmi, '/', 2)
    AND event_id = e.event_id
  OFFSET 0
) AS r ON true
WHERE l.` + ofCluster + `
  AND l.` + ofNode + `
  AND l.loop_id::text = ANY (ARRAY[${incident:sqlstring}]::text[])
  AND l.opened_at <= $__timeTo()
  AND coalesce(l.closed_at, 'infinity') >= $__timeFrom()
ORDER BY p.at, p.event_id
LIMIT 500`

func newProofPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Evidence", "What the chosen incidents rest on: the cluster's time, when evictrail saw it, the object and its version, who did it, and the fact in view events.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, proofSQL)).OverrideByName("what", wrapColumn(380)).Height(10)
}

// The wait before an attempt counts from the end of the last failure to the making of the target pod.
const retryCadenceSQL = `
SELECT
  vm || ' #' || attempt AS attempt,
  waited,
  rule
FROM (
  SELECT
    m.vmi AS vm,
    m.attempt,
    m.created_at,
    extract(epoch FROM coalesce(m.scheduling_at, $__timeTo()::timestamptz) - lag(m.finished_at) OVER w)::float8 AS waited,
    least(20 * 2 ^ (count(*) FILTER (WHERE m.outcome = 'failed') OVER (PARTITION BY m.evacuation_id ORDER BY m.attempt ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - 1), 320)::float8 AS rule,
    lag(m.outcome) OVER w AS before
  FROM evictrail_v1.evacuations AS e
  JOIN evictrail_v1.migrations AS m ON m.cluster = e.cluster AND m.namespace = e.namespace AND m.vmi = e.vmi AND m.evacuation_id = e.evacuation_id
    AND m.created_at BETWEEN $__timeFrom()::timestamptz - interval '1 day' AND $__timeTo()
  WHERE e.` + ofCluster + `
    AND e.` + ofNode + `
    AND e.failed_attempts > 0
    AND e.marked_at <= $__timeTo()
    AND coalesce(e.ended_at, 'infinity') >= $__timeFrom()
  WINDOW w AS (PARTITION BY m.evacuation_id ORDER BY m.attempt)
) AS attempts
WHERE before = 'failed'
ORDER BY created_at
LIMIT 60`

func newRetryCadencePanel() cog.Builder[dashboard.Panel] {
	return newBarChartPanel("Backoff before each attempt", "How long KubeVirt waited after each failure, beside its rule: 20 s, doubled with each failure that it remembers, at most 320 s, without end.",
		units.Seconds, "attempt").WithTarget(newPostgresQuery("A", formatTable, retryCadenceSQL)).
		OverrideByName("waited", []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": colourBlocked}}}).
		OverrideByName("rule", []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": colourCalm}}}).
		Span(fullWidth).Height(8)
}

var slotHoldersSQL = `
SELECT
  node,
  namespace,
  vmi,
  marked_at AS since,
  extract(epoch FROM $__timeTo()::timestamptz - marked_at)::float8 AS age,
  attempts,
  failed_attempts AS failed,
  next_retry_at AS next_attempt,
  extract(epoch FROM overdue)::float8 AS overdue,
  CASE WHEN in_progress_lost_at <= $__timeTo() THEN 'lost' ELSE coalesce(in_progress, 'never seen') END AS annotation,
  CASE
    WHEN strategy = 'External' THEN 'its owner, by moving it'
    WHEN in_progress_lost_at <= $__timeTo() THEN 'nobody: the descheduler has forgotten it, the slot is free'
    WHEN failed_attempts >= 3 THEN 'you: it fails again and again (' || coalesce(` + labelSQL("last_failure_class", "evacuations.last_failure_class") + `, 'unknown') || '); cancel it or fix the cause'
    WHEN failed_attempts > 0 THEN 'KubeVirt, if a further attempt succeeds'
    ELSE 'KubeVirt, when the migration is over'
  END AS who_frees_it
FROM evictrail_v1.evacuations
WHERE ` + ofCluster + `
  AND (requester_class = 'descheduler' OR in_progress IS NOT NULL)
  AND marked_at <= $__timeTo()
  AND coalesce(ended_at, 'infinity') > $__timeTo()
ORDER BY ` + ofNode + ` DESC, marked_at
LIMIT 100`

func newSlotHoldersPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Slot holders", "Each takes a slot of the descheduler, of its node and in total, no matter who asked, until its annotation goes. This node first.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, slotHoldersSQL)).OverrideByName("age", setColumnUnit(units.Seconds)).OverrideByName("overdue", setColumnUnit(units.Seconds)).OverrideByName("who_frees_it", wrapColumn(320)).
		Span(16).Height(8)
}

func newSlotsInUsePanel() cog.Builder[dashboard.Panel] {
	scoped := func(name, scope string, more ...string) string {
		return maxBy(selectSeries(name, append([]string{matchLabel(metrics.LabelScope, scope)}, more...)...))
	}
	return newLinesPanel("Slots in use and limits", "Slots in use on this node and in total, with their limits. At a limit the descheduler evicts no further VM.", units.Short).
		WithTarget(queryRange("A", scoped(metrics.SlotsInUse, metrics.ScopeNode, matchLabel(metrics.LabelNode, "$node")), "this node")).
		WithTarget(queryRange("B", scoped(metrics.SlotsLimit, metrics.ScopeNode), "limit of a node")).
		WithTarget(queryRange("C", scoped(metrics.SlotsInUse, metrics.ScopeTotal), "in total")).
		WithTarget(queryRange("D", scoped(metrics.SlotsLimit, metrics.ScopeTotal), "limit in total")).
		Span(8).Height(8)
}

func newActionsPanel() cog.Builder[dashboard.Panel] {
	return text.NewPanelBuilder().Title("Actions for this node").
		Description("Commands for this node. Those for one VM are in the advice above.").Mode(text.TextModeMarkdown).
		Content("1. **Read on the spot** what evictrail knows of this node:\n\n" +
			"   `evictrail loops --cluster \"${cluster}\" --node \"${node}\"` and `evictrail why-not node \"${node}\" --cluster \"${cluster}\"`\n\n" +
			"2. **Stop the bleeding**: keep the descheduler from evicting others while the first VM is stuck (operator: `spec.mode: Predictive`), or let no pods come:\n\n" +
			"   `kubectl cordon \"${node}\"`\n\n" +
			"3. **Cancel or fix**: the advice of each incident has the command that cancels its evacuation, and what to look at where it fails.\n\n" +
			"4. **Undo**: `kubectl uncordon \"${node}\"`.\n\n" +
			"The runbook of the alert says more: docs/runbooks/EvictrailDualRetryLoop.md.").
		Span(fullWidth).Height(7)
}
