package load

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// The rows of VMs that touch nodes, as columns or, where these hold JSON, as JSON with the columns of the table as keys: those that were open at a time,
// and a little before where what comes then may look back.
var (
	placementsOfNodesQuery  = rowsOfNodes(tables.ColumnsOf[trail.Placement](), "placements", "node", "open_until >= n.before")
	evacuationsOfNodesQuery = rowsOfNodes(asJSON, "evacuations", "node", "open_until >= n.since")
	requestsOfNodesQuery    = rowsOfNodes(tables.ColumnsOf[trail.EvictionRequest](), "eviction_requests", "node", "salient AND requested_at >= n.since")
	migrationsOfNodesQuery  = rowsOfNodes(tables.ColumnsOf[trail.Migration](), "migrations", "source_node", "open_until >= n.before")
	arrivalsOfNodesQuery    = rowsOfNodes(tables.ColumnsOf[trail.Migration](), "migrations", "target_node", "(need = 'not_needed' OR benefit = 'harmed') AND outcome = 'succeeded' AND open_until >= n.before")
	swingsFromNodesQuery    = rowsOfNodes(tables.ColumnsOf[trail.Migration](), "migrations", "source_node", swings+` AND source_node < target_node COLLATE "C"`)
	swingsToNodesQuery      = rowsOfNodes(tables.ColumnsOf[trail.Migration](), "migrations", "target_node", swings+` AND target_node < source_node COLLATE "C"`)
	holdsOfNodesQuery       = rowsOfNodes(asJSON, "cooldown_decisions", "node", "verdict = 'holds' AND open_until >= n.before")
	stuckQuery              = `
SELECT '', ` + asJSON + `
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND (ended_at IS NULL OR ended_at - marked_at > interval '5 minutes')
  AND open_until >= @since`
)

// swings are the descheduler's moves, of those that the pair of their nodes may go to and fro with.
const swings = "trigger = 'descheduler' AND outcome = 'succeeded' AND open_until >= n.swung"

// rowsOfNodes asks for rows of a table that name nodes in a column. OFFSET is there for what FactsOfSubjectsQuery has it for.
func rowsOfNodes(columns, table, node, condition string) string {
	return `
SELECT n.name, ` + columns + `
FROM unnest(@nodes::text[], @since::timestamptz[], @before::timestamptz[], @swung::timestamptz[]) AS n(name, since, before, swung)
CROSS JOIN LATERAL (
  SELECT *
  FROM evictrail.` + table + `
  WHERE cluster = @cluster
    AND ` + node + ` = n.name
    AND ` + condition + `
  OFFSET 0
) AS t`
}

// collectColumnsAround reads rows that touch nodes, by column, into what is known of each node.
func collectColumnsAround[R any](around map[string]*trail.Rows, into func(*trail.Rows) *[]*R) func(pgx.Rows) error {
	return func(answer pgx.Rows) error {
		r := tables.NewRowReader[R]()
		_, err := pgx.ForEachRow(answer, r.Into, func() error {
			row, list := r.Row, into(around[r.Subject])
			*list = append(*list, &row)
			return nil
		})
		return err
	}
}

// collectAround reads rows that touch nodes into what is known of each node.
func collectAround[R any](around map[string]*trail.Rows, into func(*trail.Rows) *[]*R) func(pgx.Rows) error {
	return pg.EachRow(func(row pgx.CollectableRow) error {
		var node string
		var r R
		err := row.Scan(&node, &r)
		list := into(around[node])
		*list = append(*list, &r)
		return err
	})
}

// quietNodesQuery finds from when on nodes have to be derived for what changed since a time: since before that, when no evacuation, drain or loop was open there.
const quietNodesQuery = `
WITH wanted AS (
  SELECT w.subject, w.node, least(w.since, s.next_at) - @slack::interval AS since
  FROM unnest(@subjects::text[], @nodes::text[], @since::timestamptz[]) AS w(subject, node, since)
  LEFT JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = w.subject
), recorded AS (
  SELECT w.subject, t.marked_at AS begun, t.open_until
  FROM wanted AS w
  JOIN evictrail.evacuations AS t ON t.cluster = @cluster AND t.node = w.node
  UNION ALL
  SELECT w.subject, t.opened_at, t.open_until
  FROM wanted AS w
  JOIN evictrail.loops AS t ON t.cluster = @cluster AND t.subject = w.subject
  UNION ALL
  SELECT w.subject, t.started_at, t.open_until
  FROM wanted AS w
  JOIN evictrail.drains AS t ON t.cluster = @cluster AND t.subject = w.subject
), busy AS (
  SELECT subject, range_agg(tstzrange(begun - interval '1 second', open_until + interval '1 second', '[]')) AS times
  FROM recorded
  GROUP BY subject
)
SELECT w.subject, coalesce((SELECT lower(b) FROM unnest(busy.times) AS b WHERE b @> w.since), w.since)
FROM wanted AS w
LEFT JOIN busy ON busy.subject = w.subject`

// NodeRows returns what nodes, and the cluster as a whole, are derived from (fold.Source).
func (l Source) NodeRows(ctx context.Context, wants []fold.NodeWant) ([]*fold.NodeRows, error) {
	of := map[string]*fold.NodeRows{}
	out := make([]*fold.NodeRows, len(wants))
	var subjects, nodes []string
	var since []time.Time
	for i, want := range wants {
		out[i] = &fold.NodeRows{Subject: want.Subject, Since: want.Since}
		of[pg.CleanText(want.Subject.String())] = out[i]
		if want.Since.IsZero() {
			continue
		}
		node := ""
		if want.Subject.Kind == trail.SubjectNode {
			node = pg.CleanText(want.Subject.Name)
		}
		subjects, nodes, since = append(subjects, pg.CleanText(want.Subject.String())), append(nodes, node), append(since, want.Since)
	}
	err := l.runInTx(ctx, func(tx pgx.Tx, frozenTo time.Time) error {
		if len(subjects) > 0 {
			var batch pgx.Batch
			batch.Queue(quietNodesQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": subjects, "nodes": nodes, "since": since, "slack": tables.AroundSlack}).
				Query(pg.EachRow(func(row pgx.CollectableRow) error {
					var subject string
					var from time.Time
					err := row.Scan(&subject, &from)
					of[subject].From = from.UTC()
					return err
				}))
			if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
				return err
			}
		}
		return l.fillNodes(ctx, tx, out, wants, frozenTo)
	})
	return out, err
}

// fillNodes reads the rows of VMs that nodes are derived from, and their own.
func (l Source) fillNodes(ctx context.Context, tx pgx.Tx, out []*fold.NodeRows, wants []fold.NodeWant, frozenTo time.Time) error {
	inputs := map[string]*trail.Rows{}
	var subjects, nodes []string
	var from, nodesFrom, before, swung []time.Time
	for i, n := range out {
		n.FrozenTo = frozenTo
		subjects, from = append(subjects, pg.CleanText(n.Subject.String())), append(from, pg.SendableTime(n.From))
		if n.Subject.Kind != trail.SubjectNode {
			inputs[""] = &n.Inputs
			continue
		}
		nodes, nodesFrom, before = append(nodes, pg.CleanText(n.Subject.Name)), append(nodesFrom, pg.SendableTime(n.From)), append(before, pg.SendableTime(trail.BlocksSince(wants[i].Facts, n.From).Add(-tables.AroundSlack)))
		swung = append(swung, pg.SendableTime(n.From.Add(-wants[i].SwingReach-tables.AroundSlack)))
		inputs[pg.CleanText(n.Subject.Name)] = &n.Inputs
	}
	var batch pgx.Batch
	rows := map[trail.Subject]trail.Derived{}
	readRows(&batch, l.cluster, subjects, from, rows)
	if len(nodes) > 0 {
		args := pgx.StrictNamedArgs{"cluster": l.cluster, "nodes": nodes, "since": nodesFrom, "before": before, "swung": swung}
		batch.Queue(placementsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Placement { return &r.Placements }))
		batch.Queue(evacuationsOfNodesQuery, args).Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
		batch.Queue(requestsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.EvictionRequest { return &r.Requests }))
		batch.Queue(migrationsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Migration { return &r.Migrations }))
		batch.Queue(arrivalsOfNodesQuery, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Migration { return &r.Arrivals }))
		for _, query := range []string{swingsFromNodesQuery, swingsToNodesQuery} {
			batch.Queue(query, args).Query(collectColumnsAround(inputs, func(r *trail.Rows) *[]*trail.Migration { return &r.Swings }))
		}
		batch.Queue(holdsOfNodesQuery, args).Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Decision { return &r.Decisions }))
	}
	if all := inputs[""]; all != nil {
		for _, n := range out {
			if n.Subject.Kind != trail.SubjectNode {
				batch.Queue(stuckQuery, pgx.StrictNamedArgs{"cluster": l.cluster, "since": pg.SendableTime(n.From)}).
					Query(collectAround(inputs, func(r *trail.Rows) *[]*trail.Evacuation { return &r.Evacuations }))
			}
		}
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	for _, n := range out {
		n.Rows = rows[n.Subject]
	}
	return nil
}
