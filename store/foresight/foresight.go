package foresight

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

const (
	// unforecastQuery reads the drains that go on and have no forecast.
	unforecastQuery = `
SELECT d.drain_id, d.node
FROM evictrail.drains AS d
WHERE d.cluster = @cluster
  AND d.ended_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM evictrail.drain_forecasts AS f
    WHERE f.cluster = d.cluster AND f.drain_id = d.drain_id
  )
ORDER BY d.started_at
LIMIT 100`
	// recordQuery keeps the first forecast of a drain.
	recordQuery = `
INSERT INTO evictrail.drain_forecasts (cluster, drain_id, node, made_at, moves, shuts_down, stays, low, mid, high)
VALUES (@cluster, @drain_id, @node, @made_at, @moves, @shuts_down, @stays, @low, @mid, @high)
ON CONFLICT (cluster, drain_id) DO NOTHING`
	// judgeQuery marks the forecasts whose drain is over, each once, and says how they fared.
	judgeQuery = `
WITH judged AS (
  UPDATE evictrail.drain_forecasts AS f
  SET judged_at = @at
  FROM evictrail.drains AS d
  WHERE f.cluster = @cluster
    AND f.judged_at IS NULL
    AND d.cluster = @cluster
    AND d.drain_id = f.drain_id
    AND d.ended_at IS NOT NULL
  RETURNING f.drain_id
)
SELECT v.result
FROM evictrail_v1.drain_forecasts AS v
JOIN judged AS j ON j.drain_id = v.drain_id
WHERE v.cluster = @cluster
  AND v.result IS NOT NULL`
)

// Record makes a forecast of each drain of a cluster that goes on and has none, as of a time, and returns how many it made.
func Record(ctx context.Context, db *pg.DB, cluster string, at time.Time) (int, error) {
	type drain struct {
		ID   [16]byte
		Node string
	}
	rows, err := db.Query(ctx, unforecastQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return 0, pg.Explain("look for drains", err)
	}
	drains, err := pgx.CollectRows(rows, pgx.RowToStructByPos[drain])
	if err != nil {
		return 0, pg.Explain("look for drains", err)
	}
	reader := read.New(db)
	for i, d := range drains {
		f, err := reader.DrainForecastAt(ctx, cluster, d.Node, at)
		if err != nil {
			return i, err
		}
		if _, err := db.Exec(ctx, recordQuery, newRow(cluster, d.ID, f)); err != nil {
			return i, pg.Explain("keep the forecast of a drain", err)
		}
	}
	return len(drains), nil
}

// newRow returns the arguments of recordQuery.
func newRow(cluster string, drain [16]byte, f forecast.Drain) pgx.StrictNamedArgs {
	length := func(s trail.Span) *time.Duration {
		if f.Band.IsZero() {
			return nil
		}
		d := time.Duration(s)
		return &d
	}
	return pgx.StrictNamedArgs{
		"cluster": cluster, "drain_id": drain, "node": f.Node, "made_at": f.At, "moves": f.Moving, "shuts_down": f.ShuttingDown, "stays": f.Staying,
		"low": length(f.Band.Low), "mid": length(f.Band.Mid), "high": length(f.Band.High),
	}
}

// Judge returns how the forecasts of a cluster fared whose drains have ended since it was last asked: sooner, within or
// later, as the view says; those that cannot be compared are left out. It returns each once.
func Judge(ctx context.Context, db *pg.DB, cluster string, at time.Time) ([]string, error) {
	rows, err := db.Query(ctx, judgeQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": at})
	if err != nil {
		return nil, pg.Explain("compare forecasts", err)
	}
	results, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return results, pg.Explain("compare forecasts", err)
}
