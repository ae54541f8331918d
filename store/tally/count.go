package tally

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
)

const (
	// aloneQuery has two who count a cluster do so one after the other: else the older counts could be written last.
	aloneQuery = `SELECT pg_advisory_xact_lock(hashtextextended('evictrail days of ' || @cluster, 0))`
	// spanQuery reads up to when a cluster was recorded, when its days were last counted, and the first of them; both are
	// NULL before.
	spanQuery = `
SELECT
    alive_at,
    (SELECT max(counted_at) FROM evictrail.cluster_days WHERE cluster = @cluster),
    (SELECT min(day) FROM evictrail.cluster_days WHERE cluster = @cluster)
FROM evictrail.clusters
WHERE cluster = @cluster
  AND alive_at > to_timestamp(0)`
	// firstQuery reads when the oldest of what is counted happened; NULL: nothing did.
	firstQuery = `
SELECT least(
    (SELECT min(finished_at) FROM evictrail.migrations WHERE cluster = @cluster),
    (SELECT min(marked_at) FROM evictrail.evacuations WHERE cluster = @cluster AND objective_met IS NOT NULL),
    (SELECT min(opened_at) FROM evictrail.loops WHERE cluster = @cluster),
    (SELECT min(opened_at) FROM evictrail.gaps WHERE cluster = @cluster)
)`
	// forgetQuery takes away what was counted of @days before they are counted again.
	forgetQuery = `
DELETE FROM evictrail.cluster_days
WHERE cluster = @cluster
  AND day = ANY(@days::date[])`
	// countQuery counts @days, which follow each other: @begin is the first instant of the first, @end that after the
	// last.
	countQuery = `
WITH moves AS (
  SELECT
    (finished_at AT TIME ZONE 'UTC')::date AS day,
    count(*) FILTER (WHERE outcome = 'succeeded') AS moved,
    count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'aborted') AS aborted,
    count(*) FILTER (WHERE outcome = 'failed' AND failure_class = 'scheduling') AS failed_scheduling,
    count(*) FILTER (WHERE outcome = 'failed' AND failure_class = 'control_plane') AS failed_control_plane,
    count(*) FILTER (WHERE outcome = 'failed' AND failure_class = 'data_plane') AS failed_data_plane,
    count(*) FILTER (WHERE outcome = 'failed' AND failure_class = 'post_copy') AS failed_post_copy,
    count(*) FILTER (WHERE outcome = 'failed' AND failure_class = 'guest_lost') AS failed_guest_lost,
    count(*) FILTER (WHERE need = 'needed') AS needed,
    count(*) FILTER (WHERE need = 'not_needed') AS not_needed,
    count(*) FILTER (WHERE benefit = 'helped') AS helped,
    count(*) FILTER (WHERE benefit = 'harmed') AS harmed
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND finished_at >= @begin
    AND finished_at < @end
  GROUP BY 1
), objectives AS (
  SELECT
    (marked_at AT TIME ZONE 'UTC')::date AS day,
    count(*) FILTER (WHERE objective_met) AS met,
    count(*) FILTER (WHERE NOT objective_met) AS missed
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND marked_at >= @begin
    AND marked_at < @end
    AND objective_met IS NOT NULL
  GROUP BY 1
), looped AS (
  SELECT
    (opened_at AT TIME ZONE 'UTC')::date AS day,
    count(*) AS loops,
    count(*) FILTER (WHERE kind = 'dual_retry') AS dual
  FROM evictrail.loops
  WHERE cluster = @cluster
    AND opened_at >= @begin
    AND opened_at < @end
    AND closed_by IS DISTINCT FROM 'refuted'
  GROUP BY 1
)
INSERT INTO evictrail.cluster_days (
    cluster, day, kubevirt, rules, moved, failed, aborted,
    failed_scheduling, failed_control_plane, failed_data_plane, failed_post_copy, failed_guest_lost, failed_unknown,
    needed, not_needed, helped, harmed, objectives_met, objectives_missed, loops, dual_retry_loops, gaps, counted_at
)
SELECT
    @cluster, d.day, nullif(d.kubevirt, ''), nullif(d.rules, ''),
    coalesce(m.moved, 0), coalesce(m.failed, 0), coalesce(m.aborted, 0),
    coalesce(m.failed_scheduling, 0), coalesce(m.failed_control_plane, 0), coalesce(m.failed_data_plane, 0),
    coalesce(m.failed_post_copy, 0), coalesce(m.failed_guest_lost, 0),
    coalesce(m.failed - m.failed_scheduling - m.failed_control_plane - m.failed_data_plane - m.failed_post_copy - m.failed_guest_lost, 0),
    coalesce(m.needed, 0), coalesce(m.not_needed, 0), coalesce(m.helped, 0), coalesce(m.harmed, 0),
    coalesce(o.met, 0), coalesce(o.missed, 0), coalesce(l.loops, 0), coalesce(l.dual, 0),
    (
      SELECT count(*)
      FROM evictrail.gaps AS g
      WHERE g.cluster = @cluster
        AND g.opened_at < (d.day + 1)::timestamp AT TIME ZONE 'UTC'
        AND coalesce(g.closed_at, @alive) >= d.day::timestamp AT TIME ZONE 'UTC'
    ),
    @now
FROM unnest(@days::date[], @kubevirt::text[], @rules::text[]) AS d(day, kubevirt, rules)
LEFT JOIN moves AS m ON m.day = d.day
LEFT JOIN objectives AS o ON o.day = d.day
LEFT JOIN looped AS l ON l.day = d.day`
)

const (
	aDay      = 24 * time.Hour
	recent    = 35 // days that are counted once a day
	atOnce    = 31 // days that are counted in one transaction
	youngDays = 2  // that are counted each time
)

// Count counts the days of a cluster that are due at a time, up to that until which the cluster was recorded, and
// returns how many days those were. Where it fails, the days that were counted by then stay so.
func Count(ctx context.Context, db *pg.DB, cluster string, now time.Time) (int, error) {
	first, alive, err := findSpan(ctx, db, cluster, now)
	if err != nil || first.IsZero() {
		return 0, err
	}
	history, err := read.New(db).SettingsHistory(ctx, cluster)
	if err != nil {
		return 0, err
	}
	total := 0
	for first.Before(alive) || first.Equal(alive) {
		var days []time.Time
		for day := first; len(days) < atOnce && !day.After(alive); day = day.Add(aDay) {
			days = append(days, day)
		}
		if err := countDays(ctx, db, cluster, days, history, alive, now); err != nil {
			return total, err
		}
		total += len(days)
		first = days[len(days)-1].Add(aDay)
	}
	return total, nil
}

// findSpan returns the first day that is due at a time, and up to when the cluster was recorded; zero where there is
// nothing to count.
func findSpan(ctx context.Context, db *pg.DB, cluster string, now time.Time) (first, alive time.Time, err error) {
	args := pgx.StrictNamedArgs{"cluster": cluster}
	var counted, oldest *time.Time
	switch err := db.QueryRow(ctx, spanQuery, args).Scan(&alive, &counted, &oldest); {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, time.Time{}, nil
	case err != nil:
		return time.Time{}, time.Time{}, pg.Explain("read which days are counted", err)
	}
	switch last := startOfDay(alive); {
	case counted != nil && sameDay(*counted, now):
		return maxTime(last.AddDate(0, 0, 1-youngDays), *oldest), alive, nil
	case counted != nil && sameMonth(*counted, now):
		return maxTime(last.AddDate(0, 0, 1-recent), *oldest), alive, nil
	}
	if err := db.QueryRow(ctx, firstQuery, args).Scan(&oldest); err != nil || oldest == nil {
		return startOfDay(alive), alive, pg.Explain("read the first day", err)
	}
	return startOfDay(*oldest), alive, nil
}

// countDays counts days that follow each other.
func countDays(ctx context.Context, db *pg.DB, cluster string, days []time.Time, history []trail.SettingsInForce, alive, now time.Time) error {
	kubevirt, rules := make([]string, len(days)), make([]string, len(days))
	for i, day := range days {
		for _, s := range (trail.SettingsQuery{At: day.Add(aDay - 1)}).Select(history) { // one, or none is known
			rules[i] = s.Semantics
			if s.KubeVirt != nil {
				kubevirt[i] = s.KubeVirt.Version
			}
		}
	}
	args := pgx.StrictNamedArgs{
		"cluster": cluster, "days": days, "kubevirt": kubevirt, "rules": rules, "now": now, "alive": alive,
		"begin": days[0], "end": days[len(days)-1].Add(aDay),
	}
	return db.InTx(ctx, "count days", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, aloneQuery, pgx.StrictNamedArgs{"cluster": cluster}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetQuery, pgx.StrictNamedArgs{"cluster": cluster, "days": days}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, countQuery, args)
		return err
	})
}

func maxTime(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func startOfDay(t time.Time) time.Time { return t.UTC().Truncate(aDay) }

func sameDay(a, b time.Time) bool { return startOfDay(a).Equal(startOfDay(b)) }

func sameMonth(a, b time.Time) bool {
	return a.UTC().Year() == b.UTC().Year() && a.UTC().Month() == b.UTC().Month()
}
