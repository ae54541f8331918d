package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// Condition is the state of a database, for its administrator.
type Condition struct {
	Server   string   // version of Postgres
	User     string   // as whom we are connected
	Standby  bool     // it cannot be written
	ReadOnly bool     // our transactions cannot write, by a setting of the server, the database or the role
	Lacking  []string // the rights that a writer needs and we lack, such as "INSERT on evictrail.events"
	Bytes    int64    // size of the database
	Facts    int64    // how many there are, as the planner estimates it; -1 where it never counted
	MayBuild bool     // we may make schemas in this database: bring its schema up to date
}

const conditionQuery = `
SELECT
    current_setting('server_version'),
    current_user,
    pg_is_in_recovery(),
    current_setting('default_transaction_read_only')::boolean,
    pg_database_size(current_database()),
    has_database_privilege(current_database(), 'CREATE'),
    coalesce((
        SELECT CASE WHEN bool_and(c.reltuples < 0) THEN -1 ELSE sum(greatest(c.reltuples, 0)) END
        FROM pg_catalog.pg_inherits AS i
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
        JOIN pg_catalog.pg_class AS parent ON parent.oid = i.inhparent AND parent.relname = 'events'
        JOIN pg_catalog.pg_namespace AS n ON n.oid = parent.relnamespace AND n.nspname = 'evictrail'
    ), 0)::bigint`

// Names are looked up in the catalogue: to ask by name for what is in a schema takes a right on that. Each privilege is asked for by itself: of a
// list, Postgres is content with any.
const lackingQuery = `
SELECT 'USAGE on schema ' || nspname
FROM pg_catalog.pg_namespace
WHERE nspname IN ('evictrail', 'evictrail_v1')
  AND NOT has_schema_privilege(oid, 'USAGE')
UNION ALL
SELECT privilege || ' on ' || name
FROM unnest(@privileges::text[], @tables::text[]) AS t (list, name)
CROSS JOIN LATERAL regexp_split_to_table(list, ', ') AS privilege
JOIN pg_catalog.pg_namespace AS n ON n.nspname = split_part(name, '.', 1)
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = split_part(name, '.', 2)
WHERE NOT has_table_privilege(c.oid, privilege)
UNION ALL
SELECT 'EXECUTE on function evictrail.ensure_month'
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = 'evictrail'
WHERE p.proname = 'ensure_month'
  AND NOT has_function_privilege(p.oid, 'EXECUTE')`

// Condition returns how the database is, and which rights of those that Roles grants to a writer are lacking. It reads the catalogue alone, so it works before there is a schema, and without any right.
func (s *Store) Condition(ctx context.Context) (Condition, error) {
	var c Condition
	err := s.DB.QueryRow(ctx, conditionQuery).Scan(&c.Server, &c.User, &c.Standby, &c.ReadOnly, &c.Bytes, &c.MayBuild, &c.Facts)
	if err != nil {
		return c, pg.Explain("read how the database is", err)
	}
	privileges, tables := []string{"SELECT", "SELECT, INSERT"}, []string{"public.evictrail_schema", "evictrail.events"}
	for _, table := range writtenTables {
		privileges, tables = append(privileges, "SELECT, INSERT, UPDATE, DELETE"), append(tables, table)
	}
	rows, err := s.DB.Query(ctx, lackingQuery, pgx.StrictNamedArgs{"privileges": privileges, "tables": tables})
	if err != nil {
		return c, pg.Explain("read our rights in the database", err)
	}
	c.Lacking, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return c, pg.Explain("read our rights in the database", err)
}
