package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// What migrations cost, by who asked for them: the sums of view weekly_move_costs over the time that is shown.
var moveCostsSQL = `
WITH ` + foundOf("requester_class, requester, trigger, outcome, need, copy_time, reserved_time, guest_memory, data_processed, running_at", ofCluster+`
  AND `+ofNodes+`
  AND `+ofNamespaces+`
  AND finished_at IS NOT NULL
  AND $__timeFilter(created_at)`) + `
SELECT
  requester_class AS asked_by,
  requester,
  trigger,
  sum(counts) FILTER (WHERE outcome = 'succeeded') AS moves,
  sum(counts) FILTER (WHERE outcome IN ('failed', 'aborted')) AS failed,
  sum(counts) FILTER (WHERE need = 'not_needed') AS not_needed,
  sum(counts * date_part('epoch', copy_time)) AS copying,
  sum(counts * date_part('epoch', reserved_time)) AS held_twice,
  sum(counts * guest_memory / 1073741824.0 * date_part('epoch', reserved_time) / 3600) AS gib_hours,
  sum(counts * data_processed)::double precision AS copied,
  (count(data_processed)::double precision / nullif(count(running_at), 0)) AS measured
FROM found
GROUP BY requester_class, requester, trigger
ORDER BY held_twice DESC NULLS LAST, asked_by, requester, trigger
LIMIT 50`

func newMoveCostsPanel() cog.Builder[dashboard.Panel] {
	return newTablePanel("Cost of migrations by requester", "What the migrations of each requester cost: how long data moved, how long two pods held the resources of one guest, that "+
		"time times the guest's memory, and what was copied. The last needs --prometheus-url; measured is the share of migrations of which it is known. "+estimates).
		Unit(units.NoUnit).WithTarget(newPostgresQuery("A", formatTable, moveCostsSQL)).
		OverrideByName("asked_by", labelTexts("migrations.requester_class")).OverrideByName("trigger", labelTexts("migrations.trigger", triggerPaints()...)).
		OverrideByName("copying", setColumnUnit(units.Seconds)).OverrideByName("held_twice", setColumnUnit(units.Seconds)).
		OverrideByName("copied", setColumnUnit(units.BytesIEC)).OverrideByName("measured", setColumnUnit(units.PercentUnit)).Height(8)
}
