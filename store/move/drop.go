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
	return m.deleteCluster(ctx, m.From, all, "end deleting the cluster from the source")
}

// deleteCluster deletes the cluster from a database, and last that it moves there, or away; ending says what that is. It
// returns how many rows that were.
func (m *Mover) deleteCluster(ctx context.Context, db *pg.DB, all []table, ending string) (deleted int64, err error) {
	for i := range all {
		n, err := m.deleteRows(ctx, db, all[i].Name)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	_, err = db.Exec(ctx, forgetQuery, pgx.StrictNamedArgs{"cluster": m.Cluster})
	return deleted, pg.Explain(ending, err)
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
	return m.deleteCluster(ctx, m.To, all, "end abandoning the move")
}

// deleteRows deletes the rows of the cluster from a table, some at a time, and returns how many those were.
func (m *Mover) deleteRows(ctx context.Context, db *pg.DB, name string) (deleted int64, err error) {
	doing, path := "delete from evictrail."+name, pgx.Identifier{"evictrail", name}.Sanitize()
	rows, err := db.Query(ctx, partsQuery, pgx.StrictNamedArgs{"path": path})
	if err != nil {
		return 0, pg.Explain(doing, err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, pg.Explain(doing, err)
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
				return deleted, pg.Explain(doing, err)
			}
			if deleted += n; n > 0 {
				m.report(Progress{Doing: "deleted", Table: name, Rows: n})
			}
		}
	}
	return deleted, nil
}
