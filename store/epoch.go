package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Who writes first decides: a later epoch takes the place of an earlier one, a cluster is tied to a name that has none, and nothing else changes.
const tieQuery = `
INSERT INTO evictrail.clusters AS c (cluster, alive_at, uid, epoch)
VALUES (@cluster, to_timestamp(0), nullif(@uid, ''), @epoch)
ON CONFLICT (cluster) DO UPDATE
SET uid = coalesce(excluded.uid, c.uid), epoch = excluded.epoch
WHERE c.epoch < excluded.epoch OR c.epoch = excluded.epoch AND c.uid IS NULL AND excluded.uid IS NOT NULL`

const identityQuery = `
SELECT coalesce(uid, ''), epoch
FROM evictrail.clusters
WHERE cluster = @cluster`

// Tie ties the name of the cluster to an identity, where the database has none of that epoch or of a later one, and returns the one that it has then.
func (c *ClusterStore) Tie(ctx context.Context, id trail.Identity) (trail.Identity, error) {
	const doing = "tie the cluster to its name"
	if err := checkWhole(ctx, c.store.DB, c.cluster); err != nil {
		return trail.Identity{}, err
	}
	if _, err := c.store.DB.Exec(ctx, tieQuery, pgx.StrictNamedArgs{"cluster": c.cluster, "uid": pg.CleanText(id.UID), "epoch": int64(id.Epoch)}); err != nil {
		return trail.Identity{}, pg.Explain(doing, err)
	}
	if _, err := c.store.DB.Exec(ctx, forgetAcknowledgedQuery, pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica}); err != nil {
		return trail.Identity{}, pg.Explain(doing, err)
	}
	var uid string
	var epoch int64
	if err := c.store.DB.QueryRow(ctx, identityQuery, pgx.StrictNamedArgs{"cluster": c.cluster}).Scan(&uid, &epoch); err != nil {
		return trail.Identity{}, pg.Explain(doing, err)
	}
	return trail.Identity{UID: uid, Epoch: trail.Epoch(epoch)}, nil
}

const othersWatchingQuery = `
SELECT replica
FROM evictrail.watching
WHERE cluster = @cluster
  AND replica <> @replica
  AND upto > @since
ORDER BY upto DESC
LIMIT 1`

// OtherWatching names another replica that has been watching the cluster after a time; empty where none has.
func (c *ClusterStore) OtherWatching(ctx context.Context, since time.Time) (string, error) {
	var replica string
	err := c.store.DB.QueryRow(ctx, othersWatchingQuery, pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica, "since": since}).Scan(&replica)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return replica, pg.Explain("read who else watches", err)
}

// RewoundError says that the database no longer has what it acknowledged to this replica: it was restored, or failed over to a standby that was behind.
// Nothing was written.
type RewoundError struct {
	From time.Time // up to when it has what this replica saw; zero where it has nothing of it
}

// Error says what is missing.
func (e *RewoundError) Error() string {
	return fmt.Sprintf("the database has lost what it had stored since %s", e.From.Format(time.RFC3339))
}

// Each write counts in the same transaction how often this replica was acknowledged. It is written only by a replica that knows of no more.
const acknowledgeQuery = `
WITH was AS (
  SELECT seq
  FROM evictrail.acknowledged
  WHERE cluster = @cluster
    AND replica = @replica
)
INSERT INTO evictrail.acknowledged AS a (cluster, replica, seq, at)
SELECT @cluster, @replica, 1, @at
WHERE coalesce((SELECT seq FROM was), 0) >= @known
ON CONFLICT (cluster, replica) DO UPDATE SET seq = a.seq + 1, at = greatest(a.at, excluded.at)
RETURNING seq`

const acknowledgedQuery = `
SELECT at
FROM evictrail.acknowledged
WHERE cluster = @cluster
  AND replica = @replica`

// Unwrap is ErrUnavailable: nothing is wrong with what was to be written.
func (e *RewoundError) Unwrap() error { return pg.ErrUnavailable }

// errUnacknowledged ends a transaction of a database that does not know what it had acknowledged.
var errUnacknowledged = errors.New("the database has lost what it acknowledged")

// queueAcknowledgement counts a write that has what this replica saw up to a time, and returns its number, for acknowledged once it is committed. The error of the batch is
// errUnacknowledged where the database has lost something.
func (c *ClusterStore) queueAcknowledgement(batch *pgx.Batch, at time.Time, seq *int64) {
	of := pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica, "at": at, "known": c.acked.Load()}
	batch.Queue(acknowledgeQuery, of).QueryRow(func(row pgx.Row) error {
		err := row.Scan(seq)
		if errors.Is(err, pgx.ErrNoRows) {
			return errUnacknowledged
		}
		return err
	})
}

// explainRewind returns an error of a write, and as a *RewoundError where the database has lost something.
func (c *ClusterStore) explainRewind(ctx context.Context, err error) error {
	if !errors.Is(err, errUnacknowledged) {
		return err
	}
	var from time.Time
	err = c.store.DB.QueryRow(ctx, acknowledgedQuery, pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica}).Scan(&from)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return pg.Explain("read what is acknowledged", err)
	}
	return &RewoundError{From: from.UTC()}
}

// advanceAcknowledged notes that a write was committed.
func (c *ClusterStore) advanceAcknowledged(seq int64) {
	for {
		known := c.acked.Load()
		if seq <= known || c.acked.CompareAndSwap(known, seq) {
			return
		}
	}
}

// Rewind has the store go on with a database that has lost what it acknowledged: what is known of it is forgotten.
func (c *ClusterStore) Rewind() {
	c.acked.Store(0)
	if d := c.deriver.Load(); d != nil {
		d.resetAll()
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	clear(c.store.months)
}

// What replicas were acknowledged that have not been here for long is forgotten: their names are those of pods.
const forgetAcknowledgedQuery = `
DELETE FROM evictrail.acknowledged
WHERE cluster = @cluster
  AND replica <> @replica
  AND at < now() - interval '90 days'`
