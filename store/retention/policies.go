package retention

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

const (
	setPolicyQuery = `
UPDATE evictrail.clusters
SET keep_facts = @facts, keep_rows = @rows, keep_requesters = @requesters
WHERE cluster = @cluster
  AND (keep_facts, keep_rows, keep_requesters)
    IS DISTINCT FROM (@facts::interval, @rows::interval, @requesters::interval)`
	// policiesQuery leaves out clusters of which only a part is there.
	policiesQuery = `
SELECT cluster, keep_facts, keep_rows, keep_requesters
FROM evictrail.clusters AS c
WHERE NOT EXISTS (SELECT 1 FROM evictrail.moves AS m WHERE m.cluster = c.cluster AND m.state <> 'arrived')
ORDER BY cluster`
)

// SetPolicy notes for how long a cluster is kept: from then on Retain keeps it for so long, no matter who calls that.
func SetPolicy(ctx context.Context, db *pg.DB, cluster string, r Policy) error {
	_, err := db.Exec(ctx, setPolicyQuery, pgx.StrictNamedArgs{
		"cluster": cluster, "facts": r.Facts, "rows": r.Rows, "requesters": r.Requesters,
	})
	return pg.Explain("note for how long the cluster is kept", err)
}

// kept is for how long a cluster is kept.
type kept struct {
	cluster string
	Policy
}

// policies returns for how long each cluster is kept: as was noted, else as others says.
func (s months) policies(ctx context.Context, others Policy) ([]kept, error) {
	const doing = "read for how long clusters are kept"
	rows, err := s.Query(ctx, policiesQuery)
	if err != nil {
		return nil, pg.Explain(doing, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (kept, error) {
		of := kept{Policy: others}
		var facts, derived, requesters *time.Duration
		err := row.Scan(&of.cluster, &facts, &derived, &requesters)
		if facts != nil && derived != nil && requesters != nil {
			of.Policy = Policy{Facts: *facts, Rows: *derived, Requesters: *requesters}
		}
		return of, err
	})
	return all, pg.Explain(doing, err)
}

// firstBoundary returns before which month no cluster needs its facts any more; false where one needs all.
func firstBoundary(all []kept, now time.Time) (first time.Time, ok bool) {
	for _, of := range all {
		if of.Facts == 0 {
			return time.Time{}, false
		}
		if at := of.boundary(now); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, !first.IsZero()
}

// boundary returns the first month of which facts are kept.
func (k kept) boundary(now time.Time) time.Time { return tables.MonthOf(now.Add(-k.Facts)) }
