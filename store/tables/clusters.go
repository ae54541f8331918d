package tables

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// ClusterQuery asks when a @cluster was last seen, for the thresholds of loops that were stated for it, and before which time facts of it were dropped (SettledQuery),
// which both may be NULL; no row where it is not known.
const ClusterQuery = `
SELECT alive_at, thresholds, facts_from
FROM evictrail.clusters
WHERE cluster = @cluster`

// ThresholdsQuery asks for the thresholds of loops that were stated for a @cluster (CollectThresholds).
const ThresholdsQuery = `
SELECT thresholds
FROM evictrail.clusters
WHERE cluster = @cluster
  AND thresholds IS NOT NULL`

// ThresholdsOf returns the thresholds of loops that are in force for a cluster.
func ThresholdsOf(ctx context.Context, q pg.Queryer, cluster string) (trail.Thresholds, error) {
	rows, err := q.Query(ctx, ThresholdsQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return trail.Thresholds{}, pg.Explain("read thresholds", err)
	}
	t, err := CollectThresholds(rows)
	return t, pg.Explain("read thresholds", err)
}

// CollectThresholds reads the answer to ThresholdsQuery: the thresholds that were stated, else the default ones.
func CollectThresholds(rows pgx.Rows) (trail.Thresholds, error) {
	stated, err := pgx.CollectRows(rows, pgx.RowTo[trail.Thresholds])
	if err != nil || len(stated) == 0 {
		return trail.DefaultThresholds(), err
	}
	return stated[0], nil
}

// MonthOf returns the first instant of the month of a time, UTC. The partitions of facts are such months.
func MonthOf(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

// RecordAloneQuery has replicas record a @cluster one after the other until the transaction ends: what one has recorded the
// next one sees. While a cluster is moved nobody records it.
const RecordAloneQuery = `SELECT pg_advisory_xact_lock(hashtextextended('evictrail records ' || @cluster, 0))`
