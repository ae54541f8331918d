package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// What a report of weeks adds up: the views have more columns. Pools of nodes are for who sees the whole cluster.
const (
	weeklyDowntimesQuery = `
SELECT
    week,
    namespace,
    coalesce(sum(downtimes) FILTER (WHERE NOT planned), 0)::bigint,
    coalesce(sum(minutes) FILTER (WHERE NOT planned), 0)::double precision,
    coalesce(sum(downtimes) FILTER (WHERE planned), 0)::bigint,
    coalesce(sum(minutes) FILTER (WHERE planned), 0)::double precision
FROM evictrail_v1.weekly_downtimes
WHERE cluster = @cluster
  AND week >= @from
  AND week <= @to
  AND (@namespace = '' OR namespace = @namespace)
  AND (@everyone OR namespace = ANY(@seen))
GROUP BY week, namespace
ORDER BY week DESC, namespace`
	weeklyObjectivesQuery = `
SELECT
    week,
    namespace,
    CASE WHEN @everyone THEN coalesce(pool, '') ELSE '' END AS pool_shown,
    sum(met)::bigint,
    sum(missed)::bigint
FROM evictrail_v1.weekly_objectives
WHERE cluster = @cluster
  AND week >= @from
  AND week <= @to
  AND (@namespace = '' OR namespace = @namespace)
  AND (@everyone OR namespace = ANY(@seen))
GROUP BY week, namespace, pool_shown
ORDER BY week DESC, namespace, pool_shown`
	weeklyMovesQuery = `
SELECT
    week,
    namespace,
    sum(moves)::bigint,
    sum(failed)::bigint,
    sum(not_needed)::bigint,
    extract(epoch FROM sum(reserved_time))::double precision,
    sum(data_processed)::bigint,
    sum(measured)::bigint,
    sum(not_measured)::bigint
FROM evictrail_v1.weekly_move_costs
WHERE cluster = @cluster
  AND week >= @from
  AND week <= @to
  AND (@namespace = '' OR namespace = @namespace)
  AND (@everyone OR namespace = ANY(@seen))
GROUP BY week, namespace
ORDER BY week DESC, namespace`
)

// Weekly reports, by cluster, what happened week by week to the VMs that the caller may see.
func (s *Reader) Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	if err := q.Bound(); err != nil {
		return nil, err
	}
	clusters, err := s.Signs(ctx, q.Cluster)
	if err != nil {
		return nil, err
	}
	var out []trail.Weekly
	for _, c := range clusters {
		w, err := s.addUpWeeks(ctx, c.Cluster, q)
		if err != nil {
			return nil, pg.Explain("add up weeks", err)
		}
		out = append(out, w)
	}
	return out, nil
}

// addUpWeeks reports what happened in a cluster, up to when it was last seen.
func (s *Reader) addUpWeeks(ctx context.Context, cluster string, q trail.WeeklyQuery) (w trail.Weekly, err error) {
	at, err := s.LastSeen(ctx, cluster, s.asOf())
	if err != nil {
		return w, err
	}
	present := q.Until.IsZero() || q.Until.After(at)
	if !present {
		at = q.Until
	}
	w = trail.Weekly{
		Cluster: cluster, From: q.FirstWeek(at), To: at.UTC(), Target: q.Target,
		Downtimes: []trail.WeeklyDowntimes{}, Objectives: []trail.WeeklyObjectives{}, Moves: []trail.WeeklyMoves{},
	}
	args := s.addScopeArgs(
		pgx.StrictNamedArgs{"cluster": cluster, "from": w.From, "to": w.To, "namespace": pg.CleanText(q.Namespace)},
	)
	err = s.runReadOnly(ctx, "add up weeks", func(tx pgx.Tx) error { return loadWeeks(ctx, tx, args, &w) })
	if err != nil {
		return w, err
	}
	w.Recorder, w.NotObserved, err = s.recordingOf(ctx, cluster, present, w.From, w.To)
	return w, err
}

// loadWeeks reads the rows of a report.
func loadWeeks(ctx context.Context, tx pgx.Tx, args pgx.StrictNamedArgs, w *trail.Weekly) (err error) {
	w.Downtimes, err = collectRows(
		ctx,
		tx,
		weeklyDowntimesQuery,
		args,
		func(row pgx.CollectableRow) (d trail.WeeklyDowntimes, err error) {
			var unplanned, planned float64 // minutes
			err = row.Scan(&d.Week, &d.Namespace, &d.Unplanned, &unplanned, &d.Planned, &planned)
			d.Week, d.UnplannedTime, d.PlannedTime = d.Week.UTC(), spanOf(unplanned*60), spanOf(planned*60)
			return d, err
		},
	)
	if err != nil {
		return err
	}
	w.Objectives, err = collectRows(
		ctx,
		tx,
		weeklyObjectivesQuery,
		args,
		func(row pgx.CollectableRow) (o trail.WeeklyObjectives, err error) {
			err = row.Scan(&o.Week, &o.Namespace, &o.Pool, &o.Met, &o.Missed)
			o.Week = o.Week.UTC()
			o.SpendBudget(w.Target)
			return o, err
		},
	)
	if err != nil {
		return err
	}
	w.Moves, err = collectRows(
		ctx,
		tx,
		weeklyMovesQuery,
		args,
		func(row pgx.CollectableRow) (m trail.WeeklyMoves, err error) {
			var reserved float64
			err = row.Scan(
				&m.Week,
				&m.Namespace,
				&m.Moves,
				&m.Failed,
				&m.NotNeeded,
				&reserved,
				&m.Bytes,
				&m.Measured,
				&m.NotMeasured,
			)
			m.Week, m.ReservedTime = m.Week.UTC(), spanOf(reserved)
			return m, err
		},
	)
	return err
}

// spanOf returns so many seconds, to the microsecond: Postgres has no more.
func spanOf(seconds float64) trail.Span {
	return trail.Span(time.Duration(seconds * float64(time.Second)).Round(time.Microsecond))
}
