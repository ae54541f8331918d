package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
)

// newVMDashboard is where every link of a VM leads.
func newVMDashboard() Dashboard {
	return Dashboard{
		UID: UIDVM, Title: "evictrail / VM: what happened to it, and why?",
		Short: "The story of one VM: where it ran, who moved it, what holds it back now.",
		variables: append(newCommonVariables(),
			newQueryVariable(varNamespace, "Namespace", namespacesSQL), newQueryVariable(varVMI, "VM", vmsSQL), newSourceVariable(varLoki, "Loki", lokiType)),
		annotations: newAnnotations(),
		rows: []row{
			{question: "Where did it run, and what was done to it?", panels: []cog.Builder[dashboard.Panel]{newLifePanel(), newStoryPanel()}},
			{question: "What holds it now?", panels: []cog.Builder[dashboard.Panel]{newHoldsNowPanel(), newHoldsPanel()}},
			{question: "How did each attempt go?", panels: []cog.Builder[dashboard.Panel]{newVMMigrationsPanel()}},
			{question: "Who asked to evict it?", panels: []cog.Builder[dashboard.Panel]{newVMRequestsPanel()}},
			{question: "Is it part of a loop?", panels: []cog.Builder[dashboard.Panel]{newVMLoopsPanel()}},
			{question: "What did its launcher say? (needs Loki)", panels: []cog.Builder[dashboard.Panel]{newLauncherLogsPanel()}, collapsed: true},
		},
	}
}

// The VM of this dashboard.
const ofVM = "namespace = ${namespace:sqlstring}\n  AND vmi = ${vmi:sqlstring}"

const vmsSQL = `
SELECT DISTINCT vmi
FROM evictrail_v1.placements
WHERE ` + ofCluster + `
  AND namespace = ${namespace:sqlstring}
  AND ` + thereInRange + `
ORDER BY vmi
LIMIT 10000`

// What began long before the time range is looked for as far back as it can last: the tables have an index on times, not on VMs.
var lifeSQL = `
WITH drawn AS (
  SELECT 1 AS part, 'runs on' AS lane, from_at, to_at, node AS state
  FROM evictrail_v1.placements
  WHERE ` + ofCluster + `
    AND ` + ofVM + `
    AND ` + thereInRange + `
  UNION ALL
  SELECT 2, 'moved by', created_at, finished_at, cause || ': ' || coalesce(outcome, 'running') || coalesce(', ' || ` + labelSQL("nullif(failure_class, outcome)", "migrations.failure_class") + `, '')
  FROM (
    SELECT *, ` + causeOfTrigger + ` AS cause
    FROM evictrail_v1.migrations
    WHERE ` + ofCluster + `
      AND ` + ofVM + `
      AND created_at BETWEEN $__timeFrom()::timestamptz - interval '1 day' AND $__timeTo()
      AND coalesce(finished_at, 'infinity') >= $__timeFrom()
  ) AS m
  UNION ALL
  SELECT 3, 'marked to leave', marked_at, ended_at, 'by ' || ` + labelSQL("requester_class", "evacuations.requester_class") + ` || coalesce(': ' || ` + labelSQL("outcome", "evacuations.outcome") + `, ': not yet')
  FROM evictrail_v1.evacuations
  WHERE ` + ofCluster + `
    AND ` + ofVM + `
    AND ` + markedInRange + `
  UNION ALL
  SELECT
    4,
    CASE layer WHEN 'kubevirt_backoff' THEN 'backoff' ELSE 'cooldown' END,
    decided_at,
    least(until, lead(decided_at) OVER (PARTITION BY layer ORDER BY decided_at)),
    'held for ' || effective
  FROM evictrail_v1.cooldown_decisions
  WHERE ` + ofCluster + `
    AND ` + ofVM + `
    AND verdict = 'holds'
    AND decided_at BETWEEN $__timeFrom()::timestamptz - interval '2 days' AND $__timeTo()
    AND until >= $__timeFrom()
)
SELECT
  greatest(from_at, $__timeFrom()) AS time,
  least(coalesce(to_at, 'infinity'), $__timeTo()) AS time_end,
  lane,
  state AS "Value"
FROM drawn
WHERE (to_at IS NULL OR to_at > from_at)
  AND from_at < $__timeTo()
ORDER BY part, lane, from_at
LIMIT 5000`

func newLifePanel() cog.Builder[dashboard.Panel] {
	paints := []paint{
		{"^" + causeDescheduler + ":|^by " + causeDescheduler, colourDescheduler}, {"^" + causeDrain + ":", colourDrain}, {"^" + causeUser + ":", colourUser},
		{"^" + causeKubeVirt + ":", colourKubeVirt}, {"^" + causeOther + ":|^by ", colourOther}, {"^" + causeController + ":", colourController}, {"^" + causeUnknown + ":", colourUnknown}, {"^held for", colourCooling},
	}
	return newLanesPanel("VM timeline", "Where the VM ran, a colour for each node. Below: what moved it, by cause and outcome; when it was marked, and by whom; when a cooldown or backoff held it.",
		append(paints, nodePaints()...)...).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, lifeSQL)).Height(8)
}

const storySQL = `
SELECT
  at,
  sentence,
  kind,
  reason,
  node,
  seen_late,
  event_id::text
FROM evictrail_v1.timeline
WHERE ` + ofCluster + `
  AND ` + ofVM + `
  AND $__timeFilter(at)
ORDER BY at DESC
LIMIT 500`

func newStoryPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("VM history", "One line for each thing that matters, with its fact. Seen late: read from a list afterwards, not observed when it happened.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, storySQL)).OverrideByName("sentence", wrapColumn(760)).Height(10)
}

func newHoldsNowPanel() cog.Builder[dashboard.Panel] {
	this := []string{matchLabel(metrics.LabelNamespace, "$namespace"), matchLabel(metrics.LabelVMI, "$vmi")}
	left := func(name string) string { return "clamp_min(" + maxBy(selectSeries(name, this...)) + " - time(), 0)" }
	return newNumbersPanel("Time left", "How long the descheduler still leaves it alone, when KubeVirt tries again, since when it is marked, and failed attempts. A missing number: "+
		"nothing of that kind is open. Cooldowns show only above the base.").
		WithTarget(queryInstant("A", left(metrics.VMICooldownUntil), "Cooldown left")).
		WithTarget(queryInstant("B", left(metrics.VMINextRetryTimestamp), "Next attempt in")).
		WithTarget(queryInstant("C", "time() - "+maxBy(selectSeries(metrics.VMIMarkedTimestamp, this...)), "Marked to leave since")).
		WithTarget(queryInstant("D", maxBy(selectSeries(metrics.VMIFailedAttempts, this...)), "Failed attempts")).
		OverrideByQuery("A", styleNumber(units.Seconds, 0, newThresholds(colourCalm, step{1, colourCooling}))).
		OverrideByQuery("B", styleNumber(units.Seconds, 0, newThresholds(colourBlocked))).
		OverrideByQuery("C", styleNumber(units.Seconds, 0, newThresholds(colourCalm, step{600, colourBlocked}, step{1800, colourBad}))).
		OverrideByQuery("D", styleNumber(units.Short, 0, newThresholds(colourCalm, step{1, colourBlocked}, step{3, colourBad}))).
		Span(10).Height(6)
}

const holdsSQL = `
SELECT
  layer,
  extract(epoch FROM effective)::float8 AS holds_for,
  until,
  extract(epoch FROM remaining)::float8 AS remaining,
  descheduler_cooldown_until,
  kubevirt_backoff_until
FROM evictrail_v1.cooldowns_now
WHERE ` + ofCluster + `
  AND ` + ofVM + `
ORDER BY until DESC
LIMIT 10`

func newHoldsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Holds by layer", "What held the VM back when evictrail last saw the cluster, whatever the time range: the longest layer, and until when each holds.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, holdsSQL)).OverrideByName("holds_for", setColumnUnit(units.Seconds)).OverrideByName("remaining", setColumnUnit(units.Seconds)).OverrideByName("layer", labelTexts("cooldowns_now.layer")).
		NoValue("nothing holds it").Span(14).Height(6)
}

const vmMigrationsSQL = `
SELECT
  created_at,
  finished_at,
  ` + causeOfTrigger + ` AS cause,
  trigger_confidence AS known,
  attempt,
  source_node,
  target_node,
  outcome,
  failure_class AS class,
  failure_reason AS reason,
  wait_reason AS waited_for,
  extract(epoch FROM queue_wait)::float8 AS waited,
  extract(epoch FROM duration)::float8 AS duration,
  mode,
  policy,
  requester,
  migration,
  failure_text AS text
FROM evictrail_v1.migrations
WHERE ` + ofCluster + `
  AND ` + ofVM + `
  AND created_at BETWEEN $__timeFrom()::timestamptz - interval '1 day' AND $__timeTo()
  AND coalesce(finished_at, 'infinity') >= $__timeFrom()
ORDER BY created_at DESC
LIMIT 200`

func newVMMigrationsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Migrations of this VM", "Its migrations: why, how that is known, from where to where, how each ended, how long it waited and took.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, vmMigrationsSQL)).OverrideByName("waited", setColumnUnit(units.Seconds)).OverrideByName("duration", setColumnUnit(units.Seconds)).
		OverrideByName("outcome", colourTexts(resultPaints()...)).OverrideByName("known", labelTexts("migrations.trigger_confidence")).OverrideByName("class", labelTexts("migrations.failure_class")).
		OverrideByName("reason", labelTexts("migrations.failure_reason")).OverrideByName("waited_for", labelTexts("migrations.wait_reason")).OverrideByName("cause", colourTexts(causePaints()...)).OverrideByName("text", wrapColumn(380)).
		Height(9)
}

const vmRequestsSQL = `
SELECT
  requested_at,
  requester,
  requester_class,
  stated_reason,
  answer,
  answer_code AS code,
  effect,
  repeats,
  last_repeat_at,
  node,
  source,
  confidence,
  dry_run,
  answer_text
FROM evictrail_v1.eviction_requests
WHERE ` + ofCluster + `
  AND ` + ofVM + `
  AND repeat_of IS NULL
  AND requested_at BETWEEN $__timeFrom()::timestamptz - interval '1 day' AND $__timeTo()
  AND coalesce(last_repeat_at, requested_at) >= $__timeFrom()
ORDER BY requested_at DESC
LIMIT 200`

func newVMRequestsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Eviction requests", "Each request about its pods: who asked, why, and the answer. Repetitions are counted in one line.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, vmRequestsSQL)).OverrideByName("answer_text", wrapColumn(380)).OverrideByName("stated_reason", wrapColumn(260)).
		OverrideByName("answer", labelTexts("eviction_requests.answer", paint{"^marked$", colourGood}, paint{"^allowed$", colourBad}, paint{".", colourBlocked})).
		OverrideByName("requester_class", labelTexts("eviction_requests.requester_class")).OverrideByName("effect", labelTexts("eviction_requests.effect")).OverrideByName("source", labelTexts("eviction_requests.source")).
		Height(8)
}

const vmLoopsSQL = `
SELECT
  opened_at,
  closed_at,
  closed_by,
  kind,
  node,
  summary,
  advice,
  loop_id::text AS loop_id
FROM evictrail_v1.loops
WHERE ` + ofCluster + `
  AND ` + ofVM + `
  AND closed_by IS DISTINCT FROM 'refuted'
  AND ` + openInRange + `
ORDER BY opened_at DESC
LIMIT 50`

func newVMLoopsPanel() cog.Builder[dashboard.Panel] {
	return linkLoop(newTablePanel("Loops with this VM", "Loops around this VM: what happens, and what to do.")).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, vmLoopsSQL)).OverrideByName("summary", wrapColumn(480)).OverrideByName("advice", wrapColumn(480)).
		OverrideByName("kind", labelTexts("loops.kind", loopPaints()...)).OverrideByName("closed_by", labelTexts("loops.closed_by")).Height(7)
}

// lokiType is the type of Grafana's data source plugin.
const lokiType = "loki"

func newLauncherLogsPanel() cog.Builder[dashboard.Panel] {
	return logs.NewPanelBuilder().Title("Launcher logs").
		Description("Logs of its virt-launcher pods, where Loki has them under the labels namespace and pod. Open the row to query.").
		Datasource(dataSource(lokiType, varLoki)).Unit(units.NoUnit).
		WithTarget(loki.NewDataqueryBuilder().Datasource(dataSource(lokiType, varLoki)).RefId("A").QueryType("range").
			Expr(`{namespace="$namespace", pod=~"virt-launcher-$vmi-.+"}`)).
		ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).SortOrder(common.LogsSortOrderDescending).
		DedupStrategy(common.LogsDedupStrategyNone).
		Span(fullWidth).Height(12)
}
