package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// What a forecast reads of a node, and of the migrations of its cluster: those under way, and the newest that ended.
const (
	forecastGuestsQuery = `
SELECT namespace, vmi, vmi_uid, node, coalesce(strategy, '') AS strategy, coalesce(not_migratable, '') AS not_migratable
FROM evictrail.placements
WHERE cluster = @cluster
  AND node = @node
  AND to_at IS NULL
ORDER BY namespace, vmi, vmi_uid`
	forecastEvacuationsQuery = `
SELECT vmi_uid, node, failed_attempts, next_retry_at, coalesce(outlook, '') AS outlook, coalesce(outlook_because, '') AS outlook_because
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND node = @node
  AND ended_at IS NULL`
	forecastRequestsQuery = `
SELECT vmi_uid, requested_at, coalesce(answer, '') AS answer, coalesce(answer_text, '') AS answer_text, dry_run
FROM evictrail.eviction_requests
WHERE cluster = @cluster
  AND node = @node
  AND requested_at >= @recent
  AND vmi_uid IS NOT NULL
ORDER BY requested_at`
	forecastMigrationsQuery = `
SELECT namespace, vmi, coalesce(vmi_uid, ''), evacuation_id, coalesce(source_node, ''), created_at, scheduling_at, finished_at, coalesce(outcome, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND scheduling_at >= @since
ORDER BY scheduling_at DESC
LIMIT 5000`
	forecastDrainQuery = `
SELECT max(started_at)
FROM evictrail.drains
WHERE cluster = @cluster
  AND node = @node
  AND ended_at IS NULL`
)

// DrainForecast says how a drain of a node would go, or goes on, as of now. Guests that the reader may not see are played, as slots are
// shared, and neither listed nor counted. Errors are those of Ask.
func (s *Reader) DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error) {
	node := q.Of.Name
	cluster, err := s.ClusterOf(ctx, q.Cluster, q.Of)
	if err != nil {
		return forecast.Drain{}, err
	}
	at, err := s.LastSeen(ctx, cluster, s.asOf())
	if err != nil {
		return forecast.Drain{}, err
	}
	d, err := s.forecastDrain(ctx, cluster, node, at)
	if err != nil {
		return forecast.Drain{}, err
	}
	d.Recorder, d.NotObserved, err = s.recordingOf(ctx, cluster, true, pg.EarlierTime(d.DrainingSince, at.Add(-lookback)), at)
	return d.SeenBy(s.scope), err
}

// DrainForecastAt says how the drain of a node of a cluster would go, or goes on, as of a time up to which it is known.
func (s Whole) DrainForecastAt(ctx context.Context, cluster, node string, at time.Time) (forecast.Drain, error) {
	return s.forecastDrain(ctx, cluster, node, at)
}

func (s *Reader) forecastDrain(ctx context.Context, cluster, node string, at time.Time) (forecast.Drain, error) {
	var n forecast.Node
	err := s.runReadOnly(ctx, "forecast the drain of "+node, func(tx pgx.Tx) (err error) {
		n, err = loadForecastNode(ctx, tx, cluster, node, at)
		return err
	})
	if err != nil {
		return forecast.Drain{}, err
	}
	return n.Forecast(), nil
}

// loadForecastNode returns a node with what a forecast rests on, as of a time.
func loadForecastNode(ctx context.Context, tx pgx.Tx, cluster, node string, at time.Time) (forecast.Node, error) {
	var rows forecast.Rows
	inForce, err := loadKubeVirt(ctx, tx, cluster)
	if err != nil {
		return forecast.Node{}, err
	}
	args := pgx.StrictNamedArgs{"cluster": cluster, "node": pg.CleanText(node)}
	if rows.Placements, err = collectRows(ctx, tx, forecastGuestsQuery, args, func(row pgx.CollectableRow) (*trail.Placement, error) {
		p := &trail.Placement{}
		return p, row.Scan(&p.Namespace, &p.VMI, &p.VMIUID, &p.Node, &p.Strategy, &p.NotMigratable)
	}); err != nil {
		return forecast.Node{}, err
	}
	if rows.Evacuations, err = collectRows(ctx, tx, forecastEvacuationsQuery, args, func(row pgx.CollectableRow) (*trail.Evacuation, error) {
		e := &trail.Evacuation{}
		var retry *time.Time
		err := row.Scan(&e.VMIUID, &e.Node, &e.FailedAttempts, &retry, &e.Outlook, &e.OutlookBecause)
		e.NextRetryAt = pg.TimeOrZero(retry)
		return e, err
	}); err != nil {
		return forecast.Node{}, err
	}
	recent := pgx.StrictNamedArgs{"cluster": cluster, "node": pg.CleanText(node), "recent": at.Add(-forecast.RefusalLasts)}
	if rows.Requests, err = collectRows(ctx, tx, forecastRequestsQuery, recent, func(row pgx.CollectableRow) (*trail.EvictionRequest, error) {
		r := &trail.EvictionRequest{}
		return r, row.Scan(&r.VMIUID, &r.RequestedAt, &r.Answer, &r.AnswerText, &r.DryRun)
	}); err != nil {
		return forecast.Node{}, err
	}
	since := pgx.StrictNamedArgs{"cluster": cluster, "since": at.Add(-forecast.HistoryLength)}
	if rows.Migrations, err = collectRows(ctx, tx, forecastMigrationsQuery, since, scanAttempt); err != nil {
		return forecast.Node{}, err
	}
	var draining *time.Time
	if err := tx.QueryRow(ctx, forecastDrainQuery, args).Scan(&draining); err != nil {
		return forecast.Node{}, err
	}
	n := forecast.NewNode(cluster, node, at, inForce, rows)
	n.DrainingSince = pg.TimeOrZero(draining)
	return n, nil
}

// scanAttempt reads a row of forecastMigrationsQuery.
func scanAttempt(row pgx.CollectableRow) (*trail.Migration, error) {
	m := &trail.Migration{}
	var of *[16]byte
	var scheduling, finished *time.Time
	err := row.Scan(&m.Namespace, &m.VMI, &m.VMIUID, &of, &m.SourceNode, &m.CreatedAt, &scheduling, &finished, &m.Outcome)
	m.EvacuationID, m.SchedulingAt, m.FinishedAt = (*trail.FactID)(of), pg.TimeOrZero(scheduling), pg.TimeOrZero(finished)
	return m, err
}

// collectRows returns all rows of a query.
func collectRows[R any](ctx context.Context, tx pgx.Tx, query string, args pgx.StrictNamedArgs, read pgx.RowToFunc[R]) ([]R, error) {
	rows, err := tx.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}
