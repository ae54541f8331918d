package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/evictrail/evictrail/metrics"
)

// newObjectiveKeptPanel compares the share of evacuations that were done in time with the share that should be. Who asked for none that was decided shows nothing.
func newObjectiveKeptPanel() cog.Builder[dashboard.Panel] {
	decided := "(" + sumBy(overRange(metrics.EvacuationObjectiveTotal), metrics.LabelRequester) + " > 0)"
	late := sumBy(overRange(selectSeries(metrics.EvacuationObjectiveTotal, matchLabel(metrics.LabelResult, metrics.ObjectiveMissed))), metrics.LabelRequester) + " / " + decided
	target := "scalar(max(" + recordTarget + "))"
	return newNumbersPanel("Evacuation objective and error budget", "Of the evacuations decided in the time range, by requester class: "+
		"the share within its objective (evictrail run --evacuation-objective), the target share (evictrail generate alerts --evacuation-target), and how much of the error budget is left; below 0 it is overspent.").
		WithTarget(queryInstant("A", "1 - "+late, "{{"+metrics.LabelRequester+"}}: in time")).
		WithTarget(queryInstant("B", "max("+recordTarget+")", "wanted")).
		WithTarget(queryInstant("C", "1 - ("+late+") / (1 - "+target+")", "{{"+metrics.LabelRequester+"}}: budget left")).
		OverrideByQuery("A", styleNumber(units.PercentUnit, 1, newThresholds(colourCalm))).
		OverrideByQuery("B", styleNumber(units.PercentUnit, 2, newThresholds(colourCalm))).
		OverrideByQuery("C", styleNumber(units.PercentUnit, 0, newThresholds(colourBad, step{0, colourBlocked}, step{0.5, colourGood}))).
		NoValue("nothing was decided").Span(fullWidth).Height(4)
}

const lateSQL = `
SELECT
  namespace,
  vmi,
  node,
  requester_class,
  marked_at,
  extract(epoch FROM objective)::float8 AS objective,
  extract(epoch FROM coalesce(ended_at, $__timeTo()::timestamptz) - marked_at)::float8 AS took,
  outcome,
  attempts,
  failed_attempts AS failed,
  last_failure_class AS last_failure
FROM evictrail_v1.evacuations
WHERE ` + ofCluster + `
  AND node = ANY (ARRAY[${node:sqlstring}]::text[])
  AND NOT objective_met
  AND marked_at + objective <= $__timeTo()
  AND ` + markedInRange + `
ORDER BY ended_at IS NOT NULL, took DESC
LIMIT 200`

func newLatePanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Late evacuations", "Evacuations that missed their objective: allowed time, time taken, and why the last attempt failed. Open ones first.").
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, lateSQL)).OverrideByName("objective", setColumnUnit(units.Seconds)).OverrideByName("took", setColumnUnit(units.Seconds)).
		OverrideByName("outcome", colourTexts(paint{"migrated", colourGood}, paint{".", colourBlocked})).Height(7)
}
