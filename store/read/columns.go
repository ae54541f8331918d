package read

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const columnsQuery = `
SELECT c.relname AS view, a.attname AS name, format_type(a.atttypid, NULL) AS type, col_description(c.oid, a.attnum) AS about
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE n.nspname = 'evictrail_v1'
  AND c.relkind = 'v'
  AND a.attnum > 0
  AND NOT a.attisdropped
ORDER BY c.relname, a.attnum`

// Columns describes the columns of all views of evictrail_v1, by view and in their order, with their comments.
func (s Whole) Columns(ctx context.Context) ([]trail.Column, error) {
	rows, err := s.db.Query(ctx, columnsQuery)
	if err != nil {
		return nil, pg.Explain("describe views", err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByName[trail.Column])
	return columns, pg.Explain("describe views", err)
}
