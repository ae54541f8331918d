package read

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Migrations that go on, or that ended not long ago, with when their evacuation was asked for and what was recorded of the load of their nodes.
const loadMovedQuery = `
SELECT row_to_json(m), coalesce(r.requested_at, e.marked_at), p.left_at, l.looked
FROM (
  SELECT *
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND finished_at >= @since
  UNION ALL
  SELECT *
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND finished_at IS NULL
    AND target_node IS NOT NULL
) AS m
LEFT JOIN evictrail.evacuations AS e ON e.cluster = m.cluster AND e.subject = m.subject AND e.evacuation_id = m.evacuation_id
CROSS JOIN LATERAL (
  SELECT min(to_at) AS left_at
  FROM evictrail.placements AS p
  WHERE p.cluster = m.cluster
    AND p.subject = m.subject
    AND p.arrived_by = m.migration_uid
) AS p
CROSS JOIN LATERAL (
  SELECT min(requested_at) AS requested_at
  FROM evictrail.eviction_requests AS r
  WHERE r.cluster = m.cluster
    AND r.subject = m.subject
    AND r.evacuation_id = m.evacuation_id
    AND r.effect = 'evacuation'
    AND r.requested_at >= e.marked_at - interval '1 hour'
) AS r
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(f.what || ' ' || f.value), '{}') AS looked
  FROM evictrail.events AS f
  WHERE f.cluster = m.cluster
    AND f.subject = m.subject
    AND f.occurred_at >= least(m.created_at, e.marked_at, r.requested_at) - interval '1 minute'
    AND f.kind IN ('node_load', 'migration_transfer')
    AND f.migration_uid = m.migration_uid
) AS l
ORDER BY m.created_at, m.migration_uid`

// Moved returns the migrations of a cluster that go on or have ended since a time, in the order of their creation. Those whose target is not
// known yet are left out while they go on.
func (s Whole) Moved(ctx context.Context, cluster string, since time.Time) ([]trail.Moved, error) {
	rows, err := s.db.Query(ctx, loadMovedQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": since})
	if err != nil {
		return nil, pg.Explain("read what moved", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (trail.Moved, error) {
		m := trail.Moved{Looked: map[string]struct{}{}}
		var raw json.RawMessage
		var asked, left *time.Time
		var looked []string
		if err := row.Scan(&raw, &asked, &left, &looked); err != nil {
			return m, err
		}
		m.RequestedAt, m.LeftAt = pg.TimeOrZero(asked), pg.TimeOrZero(left)
		for _, l := range looked {
			m.Looked[l] = struct{}{}
		}
		return m, json.Unmarshal(raw, &m.Migration)
	})
	return out, pg.Explain("read what moved", err)
}
