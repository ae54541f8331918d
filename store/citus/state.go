package citus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// State is what lies where. The zero value is that of a plain Postgres.
type State struct {
	Version string   // of Citus; empty: it is not there
	Tables  []string // of evictrail that are spread or on each server, by name
	Nodes   []Node   // all servers, in the order of their names
}

// Node is a server of a Citus cluster.
type Node struct {
	Node   string // host:port
	Active bool
	Holds  bool  // it may have shards
	Shards int64 // of tables of evictrail
}

const (
	versionQuery = `
SELECT coalesce(max(extversion), '')
FROM pg_catalog.pg_extension
WHERE extname = 'citus'`
	spreadQuery = `
SELECT c.relname
FROM pg_catalog.pg_dist_partition AS d
JOIN pg_catalog.pg_class AS c ON c.oid = d.logicalrelid
WHERE c.relnamespace = to_regnamespace('evictrail')
  AND NOT c.relispartition
ORDER BY c.relname`
	nodesQuery = `
SELECT n.nodename || ':' || n.nodeport, n.isactive, n.shouldhaveshards, (
    SELECT count(*)
    FROM pg_catalog.pg_dist_placement AS p
    JOIN pg_catalog.pg_dist_shard AS s ON s.shardid = p.shardid
    JOIN pg_catalog.pg_class AS c ON c.oid = s.logicalrelid
    WHERE p.groupid = n.groupid
      AND c.relnamespace = to_regnamespace('evictrail')
)
FROM pg_catalog.pg_dist_node AS n
WHERE n.noderole = 'primary'
ORDER BY 1`
)

// Read returns what lies where.
func Read(ctx context.Context, q Querier) (State, error) {
	s, err := readState(ctx, q)
	return s, pg.Explain("read which tables are distributed", err)
}

func readState(ctx context.Context, q Querier) (s State, err error) {
	if err = q.QueryRow(ctx, versionQuery).Scan(&s.Version); err != nil || s.Version == "" {
		return s, err
	}
	if s.Tables, err = collectRows(ctx, q, spreadQuery, pgx.RowTo[string]); err != nil {
		return s, err
	}
	s.Nodes, err = collectRows(ctx, q, nodesQuery, pgx.RowToStructByPos[Node])
	return s, err
}

// IsDistributed reports whether tables are spread.
func (s *State) IsDistributed() bool { return len(s.Tables) > 0 }

// collectRows reads the rows of a query.
func collectRows[T any](ctx context.Context, q Querier, sql string, read pgx.RowToFunc[T]) ([]T, error) {
	rows, err := q.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}
