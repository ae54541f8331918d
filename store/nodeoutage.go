package store

import (
	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const (
	openOutagesQuery = `
SELECT subject, row_to_json(t)
FROM evictrail.outages AS t
WHERE cluster = @cluster
  AND ended_at IS NULL`
)

// The attempts of others matter that hold slots and do not get on.
var stalledQuery = `
SELECT subject, ` + tables.ColumnsOf[trail.Migration]() + `
FROM evictrail.migrations
WHERE cluster = @cluster
  AND finished_at IS NULL
  AND wait_reason = 'target_node_not_ready'
  AND NOT subject = ANY(@but)`

// openOutages queues the questions which nodes are not ready and which migrations that stalls, but for those of some VMs.
func (q *inquiry) openOutages(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, but []string) {
	batch.Queue(openOutagesQuery, pgx.StrictNamedArgs{"cluster": q.cluster}).
		Query(tables.CollectOf(rows, func(d *trail.Derived) *[]trail.Outage { return &d.Outages }))
	batch.Queue(stalledQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "but": but}).
		Query(tables.CollectColumnsOf(rows, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
}
