package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// deleteTogether is how many rows are deleted in one transaction; tests have fewer.
var deleteTogether = 5_000

const (
	// leaveQuery notes that a cluster is deleted: from then on only a part of it may be there.
	leaveQuery = `
INSERT INTO evictrail.moves AS m (cluster, state, peer)
VALUES (@cluster, 'leaving', '')
ON CONFLICT (cluster) DO UPDATE SET state = 'leaving', digests = NULL
WHERE m.state = 'arrived'`
	forgetQuery = `
DELETE FROM evictrail.moves
WHERE cluster = @cluster`
	// partsQuery names the tables, and partitions of tables, that rows are in.
	partsQuery = `
SELECT c.relname::text
FROM pg_catalog.pg_class AS c
WHERE c.relkind = 'r'
  AND c.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree(@path::regclass) UNION SELECT @path::regclass)
ORDER BY 1`
	deleteQuery = `
DELETE FROM %[1]s
WHERE ctid = ANY(ARRAY(SELECT ctid FROM %[1]s WHERE cluster = @cluster LIMIT @limit))`
)

// dropSource deletes the cluster from the source, and returns how many rows that were. Where it was cut off before it
// goes on.
func (m *Mover) dropSource(ctx context.Context, all []table) (deleted int64, err error) {
	known, err := m.hasRows(ctx, m.From, "clusters")
	if err != nil || !known {
		return 0, err
	}
	if _, err := m.From.Exec(ctx, leaveQuery, pgx.StrictNamedArgs{"cluster": m.Cluster}); err != nil {
		return 0, pg.Explain("begin to delete the cluster from the source", err)
	}
	counted := m.countDeleted(&deleted)
	for i := range all {
		if err := counted.deleteRows(ctx, m.From, all[i].Name); err != nil {
			return deleted, err
		}
	}
	_, err = m.From.Exec(ctx, forgetQuery, pgx.StrictNamedArgs{"cluster": m.Cluster})
	return deleted, pg.Explain("end deleting the cluster from the source", err)
}

// countDeleted returns the Mover with progress that adds up what is deleted.
func (m *Mover) countDeleted(deleted *int64) *Mover {
	counted := *m
	counted.Progress = func(p Progress) {
		*deleted += p.Rows
		m.report(p)
	}
	return &counted
}

// Abandon removes from the destination what was copied of the cluster, where its move has not ended, and returns how
// many rows that were. The source stays as it is.
func (m *Mover) Abandon(ctx context.Context) (deleted int64, err error) {
	at, begun, err := m.positionIn(ctx, m.To)
	switch {
	case err != nil:
		return 0, err
	case !begun:
		return 0, fmt.Errorf("no move of cluster %q into the destination has begun: there is nothing to abandon", m.Cluster)
	case at.State != arriving:
		return 0, fmt.Errorf("the move of cluster %q has ended: the destination has all of it, and nothing is removed",
			m.Cluster)
	}
	to, err := m.lockEnd(ctx, "destination", m.To)
	if err != nil {
		return 0, err
	}
	defer to.release()
	all, err := tablesOf(ctx, m.To)
	if err != nil {
		return 0, err
	}
	counted := m.countDeleted(&deleted)
	for i := range all {
		if err := counted.deleteRows(ctx, m.To, all[i].Name); err != nil {
			return deleted, err
		}
	}
	_, err = m.To.Exec(ctx, forgetQuery, pgx.StrictNamedArgs{"cluster": m.Cluster})
	return deleted, pg.Explain("end abandoning the move", err)
}

// deleteRows deletes the rows of the cluster from a table, some at a time.
func (m *Mover) deleteRows(ctx context.Context, db *pg.DB, name string) error {
	doing, path := "delete from evictrail."+name, pgx.Identifier{"evictrail", name}.Sanitize()
	rows, err := db.Query(ctx, partsQuery, pgx.StrictNamedArgs{"path": path})
	if err != nil {
		return pg.Explain(doing, err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pg.Explain(doing, err)
	}
	args := pgx.StrictNamedArgs{"cluster": m.Cluster, "limit": deleteTogether}
	for _, part := range parts {
		sql := fmt.Sprintf(deleteQuery, pgx.Identifier{"evictrail", part}.Sanitize())
		for n := int64(deleteTogether); n == int64(deleteTogether); {
			err := runWriting(ctx, db, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, sql, pg.Planned, args)
				n = tag.RowsAffected()
				return err
			})
			if err != nil {
				return pg.Explain(doing, err)
			}
			if n > 0 {
				m.report(Progress{Doing: "deleted", Table: name, Rows: n})
			}
		}
	}
	return nil
}
