package read

import (
	"context"
	"time"

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
func (s Whole) StrangeRequests(ctx context.Context, cluster string) (int, error) {
	var n int
	err := s.db.QueryRow(ctx, strangeRequestsQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&n)
	return n, pg.Explain("count requests", err)
}

const coverageQuery = `
SELECT
    EXISTS (SELECT 1 FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('audit', 'admission+audit')),
    EXISTS (SELECT 1 FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('admission', 'admission+audit'))`

// loadCoverage returns which sources of requests a cluster has.
func (s *Reader) loadCoverage(ctx context.Context, cluster string) (trail.Coverage, error) {
	var c trail.Coverage
	err := s.db.QueryRow(ctx, coverageQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&c.Audit, &c.Observer)
	return c, pg.Explain("look for sources of requests", err)
}

// Heard says when each source last reported a request of a cluster.
type Heard struct {
	Audit    time.Time // when the last one was asked that audit events reported; zero: none
	Observer time.Time // likewise the observer of evictions
}

const heardQuery = `
SELECT
    (SELECT max(requested_at) FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('audit', 'admission+audit')),
    (SELECT max(requested_at) FROM evictrail.eviction_requests WHERE cluster = @cluster AND source IN ('admission', 'admission+audit'))`

// Heard returns when the sources of eviction requests last reported one.
func (s Whole) Heard(ctx context.Context, cluster string) (Heard, error) {
	var audit, observer *time.Time
	if err := s.db.QueryRow(ctx, heardQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&audit, &observer); err != nil {
		return Heard{}, pg.Explain("read when requests were last reported", err)
	}
	var h Heard
	if audit != nil {
		h.Audit = audit.UTC()
	}
	if observer != nil {
		h.Observer = observer.UTC()
	}
	return h, nil
}
