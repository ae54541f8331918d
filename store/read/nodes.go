package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// What goes on is in partial indexes, each of them small: placements_open, evacuations_open, loops_open, drains_open, outages_open.
const nodesQuery = `
WITH nodes AS (
  SELECT cluster, substr(subject, 6) AS node
  FROM evictrail.subjects
  WHERE subject LIKE 'node:%'
    AND strpos(substr(subject, 6), @name) > 0
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR substr(subject, 6) IN (` + nodesSeen + `))
), guests AS (
  SELECT cluster, node, count(*) AS vms
  FROM evictrail.placements
  WHERE to_at IS NULL
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR namespace = ANY(@seen))
  GROUP BY cluster, node
), open_evacuations AS (
  SELECT cluster, node, count(*) AS leaving, count(*) FILTER (WHERE failed_attempts > 0) AS stuck
  FROM evictrail.evacuations
  WHERE ended_at IS NULL
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR namespace = ANY(@seen))
  GROUP BY cluster, node
), open_loops AS (
  SELECT cluster, at.node, count(*) AS loops
  FROM evictrail.loops
  CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(nodes, jsonb_build_array(node))) AS at(node)
  WHERE closed_at IS NULL
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR ` + loopSeen + `)
  GROUP BY cluster, at.node
), open_drains AS (
  SELECT cluster, node, min(started_at) AS draining_since
  FROM evictrail.drains
  WHERE ended_at IS NULL
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR ` + drainSeen + `)
  GROUP BY cluster, node
), open_outages AS (
  SELECT cluster, node, min(began_at) AS not_ready_since
  FROM evictrail.outages AS node_outages
  WHERE ended_at IS NULL
    AND (@cluster = '' OR cluster = @cluster)
    AND (@everyone OR ` + outageSeen + `)
  GROUP BY cluster, node
)
SELECT cluster, node, coalesce(vms, 0), coalesce(leaving, 0), coalesce(stuck, 0), coalesce(loops, 0), draining_since, not_ready_since
FROM nodes
LEFT JOIN guests USING (cluster, node)
LEFT JOIN open_evacuations USING (cluster, node)
LEFT JOIN open_loops USING (cluster, node)
LEFT JOIN open_drains USING (cluster, node)
LEFT JOIN open_outages USING (cluster, node)
ORDER BY
    CASE WHEN @order = 'trouble' AND not_ready_since IS NOT NULL THEN 0 ELSE 1 END,
    CASE WHEN @order = 'trouble' THEN coalesce(stuck, 0) END DESC,
    CASE WHEN @order = 'trouble' THEN coalesce(loops, 0) END DESC,
    CASE WHEN @order = 'trouble' AND draining_since IS NOT NULL THEN 0 ELSE 1 END,
    CASE WHEN @order <> 'name' THEN coalesce(vms, 0) END DESC,
    node COLLATE "C", cluster
LIMIT @limit`

// Nodes returns the nodes that a query asks for, in its order. Of a limited reader they are those that ever had one of its VMs, and their numbers
// count what it may see.
func (s *Reader) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	cluster, within := s.scope.Cluster(pg.CleanText(q.Cluster))
	if !within {
		return nil, nil
	}
	var out []trail.NodeSummary
	err := s.runReadOnly(ctx, "list nodes", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, nodesQuery, pg.Planned, s.addScopeArgs(pgx.StrictNamedArgs{
			"cluster": cluster, "name": pg.CleanText(q.Name), "order": string(q.Order), "limit": q.Limit,
		}))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n trail.NodeSummary, err error) {
			var draining, notReady *time.Time
			err = row.Scan(&n.Cluster, &n.Node, &n.VMs, &n.Leaving, &n.Stuck, &n.Loops, &draining, &notReady)
			n.DrainingSince, n.NotReadySince = pg.TimeOrZero(draining), pg.TimeOrZero(notReady)
			return n, err
		})
		return err
	})
	return out, err
}
