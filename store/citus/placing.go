package citus

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Table is a table of evictrail, and where Citus keeps it.
type Table struct {
	Name      string
	Reference bool // whole on every node; else its rows are spread by cluster
}

// Rows of a table can be spread by a column only where each of its keys has that column. Other tables are few rows for
// all clusters. What is being kept of facts that are dropped (functions/begin_drop.sql) lies with the coordinator until
// it is a partition.
const tablesQuery = `
SELECT c.relname, a.attnum IS NULL OR EXISTS (
    SELECT 1
    FROM pg_catalog.pg_index AS i
    WHERE i.indrelid = c.oid
      AND i.indisunique
      AND a.attnum <> ALL (i.indkey::int2[])
)
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'cluster' AND NOT a.attisdropped
WHERE c.relnamespace = 'evictrail'::regnamespace
  AND c.relkind IN ('r', 'p')
  AND NOT c.relispartition
  AND c.relname <> 'events_next'
ORDER BY c.relname`

// Querier is what the catalogue is read with: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Tables returns the tables of evictrail, by name: partitions come with theirs.
func Tables(ctx context.Context, q Querier) ([]Table, error) {
	rows, err := q.Query(ctx, tablesQuery)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
}
