package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const strangeRequestsQuery = `
SELECT count(*)
FROM evictrail.eviction_requests
WHERE cluster = @cluster
  AND subject LIKE 'pod:%'`

// StrangeRequests counts the eviction requests of a cluster that are about pods that were never seen.
func (s *Store) StrangeRequests(ctx context.Context, cluster string) (int, error) {
	var n int
	err := s.DB.QueryRow(ctx, strangeRequestsQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&n)
	return n, pg.Explain("count requests", err)
}

const coverageQuery = `
SELECT
    EXISTS (SELECT FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('audit', 'admission+audit')),
    EXISTS (SELECT FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('admission', 'admission+audit'))`

// coverage tells which sources of requests a cluster has.
func (s *Reader) coverage(ctx context.Context, cluster string) (trail.Coverage, error) {
	var c trail.Coverage
	err := s.db.QueryRow(ctx, coverageQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&c.Audit, &c.Observer)
	return c, pg.Explain("look for sources of requests", err)
}
