package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const aliveQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at)
VALUES (@cluster, @at)
ON CONFLICT (cluster) DO UPDATE SET alive_at = greatest(clusters.alive_at, excluded.alive_at)`

// appendedQuery is aliveQuery with the time of the newest event.
const appendedQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, last_event_at)
VALUES (@cluster, @at, @event)
ON CONFLICT (cluster) DO UPDATE SET
    alive_at = greatest(clusters.alive_at, excluded.alive_at),
    last_event_at = greatest(clusters.last_event_at, excluded.last_event_at)`

// Alive notes that everything that a cluster's collector saw until at is stored.
func (s *Store) Alive(ctx context.Context, cluster string, at time.Time) error {
	_, err := s.DB.Exec(ctx, aliveQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": at})
	return pg.Explain("note that we are alive", err)
}

const markReplayedQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, replayed)
VALUES (@cluster, to_timestamp(0), true)
ON CONFLICT (cluster) DO UPDATE SET replayed = true`

// MarkReplayed notes that a cluster is played from a recording.
func (s *Store) MarkReplayed(ctx context.Context, cluster string) error {
	_, err := s.DB.Exec(ctx, markReplayedQuery, pgx.StrictNamedArgs{"cluster": cluster})
	return pg.Explain("note that the cluster is a recording", err)
}

const judgeQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, thresholds)
VALUES (@cluster, to_timestamp(0), @thresholds)
ON CONFLICT (cluster) DO UPDATE SET thresholds = excluded.thresholds`

// Judge sets the thresholds of loops for a cluster. Where they are others than before, everything is to be derived again:
// DeriveStale does that.
func (s *Store) Judge(ctx context.Context, cluster string, t trail.Thresholds) error {
	before, err := s.Thresholds(ctx, cluster)
	if err != nil || before.Equal(t) {
		return err
	}
	return s.DB.InTx(ctx, "set thresholds", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, judgeQuery, pgx.StrictNamedArgs{"cluster": cluster, "thresholds": t}); err != nil {
			return err
		}
		return tables.MarkAllDirty(ctx, tx, cluster)
	})
}
