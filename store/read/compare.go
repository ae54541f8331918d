package read

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// compareQuery adds up the days of clusters: @first and @last are such days, or NULL.
const compareQuery = `
WITH summed AS (
  SELECT
    cluster,
    min(day) AS first,
    max(day) AS last,
    count(*) AS days,
    count(*) FILTER (WHERE gaps > 0) AS gap_days,
    sum(moved) AS moved,
    sum(failed) AS failed,
    sum(aborted) AS aborted,
    sum(needed) AS needed,
    sum(not_needed) AS not_needed,
    sum(helped) AS helped,
    sum(harmed) AS harmed,
    sum(objectives_met) AS met,
    sum(objectives_missed) AS missed,
    sum(loops) AS loops,
    sum(dual_retry_loops) AS dual,
    sum(failed_scheduling) AS scheduling,
    sum(failed_control_plane) AS control_plane,
    sum(failed_data_plane) AS data_plane,
    sum(failed_post_copy) AS post_copy,
    sum(failed_guest_lost) AS guest_lost,
    sum(failed_unknown) AS unknown
  FROM evictrail.cluster_days
  WHERE (@cluster = '' OR cluster = @cluster)
    AND (@first::date IS NULL OR day >= @first)
    AND (@last::date IS NULL OR day <= @last)
  GROUP BY cluster
)
SELECT
    s.cluster, coalesce(d.kubevirt, ''), coalesce(d.rules, ''), s.first, s.last, s.days, s.gap_days,
    s.moved, s.failed, s.aborted, s.needed, s.not_needed, s.helped, s.harmed, s.met, s.missed, s.loops, s.dual,
    s.scheduling, s.control_plane, s.data_plane, s.post_copy, s.guest_lost, s.unknown, d.counted_at
FROM summed AS s
JOIN evictrail.cluster_days AS d ON d.cluster = s.cluster AND d.day = s.last`

// Compare returns how clusters fared, in the order of trail.SortCompared; none to a caller who may not see all of a
// cluster, as the counts are those of all.
func (s *Reader) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	cluster, within := s.scope.Cluster(q.Cluster)
	if !within || s.scope.Limited() {
		return nil, nil
	}
	day := func(at time.Time) *time.Time {
		if at.IsZero() {
			return nil
		}
		at = at.UTC().Truncate(24 * time.Hour)
		return &at
	}
	var out []trail.ClusterComparison
	err := s.runReadOnly(ctx, "compare clusters", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, compareQuery, pgx.StrictNamedArgs{"cluster": cluster, "first": day(q.Since), "last": day(q.Until)})
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scanComparison)
		return err
	})
	if err != nil {
		return nil, pg.Explain("compare clusters", err)
	}
	out = slices.DeleteFunc(out, func(c trail.ClusterComparison) bool { return !q.Matches(c) })
	trail.SortCompared(out)
	return out, nil
}

// scanComparison reads a row of compareQuery.
func scanComparison(row pgx.CollectableRow) (c trail.ClusterComparison, err error) {
	classes := []trail.FailureClass{
		trail.FailureScheduling, trail.FailureControlPlane, trail.FailureDataPlane, trail.FailurePostCopy, trail.FailureGuestLost, trail.FailureUnknown,
	}
	counts := make([]int, len(classes))
	into := []any{
		&c.Cluster, &c.KubeVirt, &c.Rules, &c.First, &c.Last, &c.Days, &c.GapDays,
		&c.Moved, &c.Failed, &c.Aborted, &c.Needed, &c.Needless, &c.Helped, &c.Harmed, &c.Met, &c.Missed, &c.Loops, &c.Dual,
	}
	for i := range counts {
		into = append(into, &counts[i])
	}
	if err := row.Scan(append(into, &c.CountedAt)...); err != nil {
		return c, err
	}
	c.First, c.Last, c.CountedAt, c.Failures = c.First.UTC(), c.Last.UTC(), c.CountedAt.UTC(), map[trail.FailureClass]int{}
	for i, class := range classes {
		if counts[i] > 0 {
			c.Failures[class] = counts[i]
		}
	}
	return c, nil
}
