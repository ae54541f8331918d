package read

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// LastAlive returns the time of the last Alive or Append of a cluster; zero where there was none.
func (s *Reader) LastAlive(ctx context.Context, cluster string) (time.Time, error) {
	const query = `
SELECT alive_at
FROM evictrail.clusters
WHERE cluster = @cluster`
	var at time.Time
	err := s.db.QueryRow(ctx, query, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) || at.Unix() == 0 { // only its thresholds are known
		return time.Time{}, nil
	}
	return at.UTC(), pg.Explain("read when we were last alive", err)
}

const clustersQuery = `
SELECT cluster
FROM evictrail_v1.clusters
ORDER BY cluster`

// Clusters names the clusters that are recorded, sorted.
func (s *Reader) Clusters(ctx context.Context) ([]string, error) {
	rows, err := s.db.Query(ctx, clustersQuery)
	if err != nil {
		return nil, pg.Explain("list clusters", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Explain("list clusters", err)
}

// Thresholds returns the thresholds of loops that are in force for a cluster.
func (s Whole) Thresholds(ctx context.Context, cluster string) (trail.Thresholds, error) {
	return tables.ThresholdsOf(ctx, s.db, cluster)
}

const namespacesQuery = `
SELECT DISTINCT split_part(substr(subject, strpos(subject, ':') + 1), '/', 1) COLLATE "C" AS namespace
FROM evictrail.subjects
WHERE cluster = @cluster
  AND (subject LIKE 'vmi:%' OR subject LIKE 'pod:%' OR subject LIKE 'namespace:%')
ORDER BY namespace`

// Namespaces names those of which anything is known in a cluster, sorted: what a caller may see is some of them.
func (s *Reader) Namespaces(ctx context.Context, cluster string) ([]string, error) {
	rows, err := s.db.Query(ctx, namespacesQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, pg.Explain("list namespaces", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, pg.Explain("list namespaces", err)
}
