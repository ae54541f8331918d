package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A plan for all values is right where all statements read few rows, and is made once.
const (
	planOnce = `set_config('plan_cache_mode', 'force_generic_plan', true)`
	planEach = `set_config('plan_cache_mode', 'force_custom_plan', true)`
)

// PlanOnce returns the expression that has Postgres plan statements for all values up to the end of a transaction. On
// Citus it has them planned for each: that refuses others with "could not create distributed plan". q is asked where
// that is not known yet.
func (db *DB) PlanOnce(ctx context.Context, q RowQueryer) string {
	if is, err := db.OnCitus(ctx, q); err == nil && is {
		return planEach
	}
	return planOnce // a database that does not answer says so at the statement
}

// RowQueryer is what one row is asked with: a *DB or a transaction.
type RowQueryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const citusQuery = `
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'citus')`

// OnCitus reports whether the database has the extension Citus. It asks once: nothing that writes runs while tables are
// distributed.
func (db *DB) OnCitus(ctx context.Context, q RowQueryer) (bool, error) {
	if is := db.onCitus.Load(); is != nil {
		return *is, nil
	}
	var is bool
	err := q.QueryRow(ctx, citusQuery).Scan(&is)
	if err == nil {
		db.onCitus.Store(&is)
	}
	return is, err
}

// Sizes of a table c, in bytes with its indexes. On Citus those of the tables that are spread are those of their parts
// on all servers.
const (
	LocalSize = `pg_total_relation_size(c.oid)`
	citusSize = `CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_dist_partition AS d WHERE d.logicalrelid = c.oid)
    THEN citus_total_relation_size(c.oid) ELSE pg_total_relation_size(c.oid) END`
)

// TableSize returns the SQL of the size of a table c, which is a row of pg_class.
func (db *DB) TableSize(ctx context.Context) (string, error) {
	if is, err := db.OnCitus(ctx, db); err != nil || !is {
		return LocalSize, err
	}
	return citusSize, nil
}
