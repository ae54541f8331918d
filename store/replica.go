package store

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// For returns the store as the Sink of one cluster, for one of the replicas that record it. It follows until Lead is called.
func (s *Store) For(cluster, replica string) *ClusterStore {
	return &ClusterStore{store: s, cluster: cluster, replica: replica}
}

// ClusterStore is the store seen from one replica's collector. It is safe for concurrent use.
type ClusterStore struct {
	store   *Store
	cluster string
	replica string
	program string                  // that leads
	deriver atomic.Pointer[deriver] // nil: it follows
	acked   atomic.Int64            // how often this replica was acknowledged, as far as it knows
}

// Append records facts, and hands them over to be derived where this replica leads. It returns those that were new, in the order given, and may return a
// *RewoundError. Gaps in what this replica saw are left out where another was watching. See the package comment for its errors.
func (c *ClusterStore) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	facts, err := c.dropCoveredGaps(ctx, facts)
	if err != nil {
		return trail.News{}, err
	}
	var seq int64
	recorded, err := c.store.recordFacts(ctx, c.cluster, facts, func(batch *pgx.Batch, at time.Time) { c.queueAcknowledgement(batch, at, &seq) })
	if err != nil {
		return trail.News{}, c.explainRewind(ctx, err)
	}
	c.advanceAcknowledged(seq)
	if d := c.deriver.Load(); d != nil {
		d.addRecording(recorded)
	}
	return recorded.buildNews(), nil
}

// Alive is Store.Alive with what this replica has been watching.
func (c *ClusterStore) Alive(ctx context.Context, at time.Time, watching []trail.Watching) error {
	if err := checkWhole(ctx, c.store.DB, c.cluster); err != nil {
		return err
	}
	var seq int64
	var batch pgx.Batch
	c.queueAcknowledgement(&batch, at, &seq)
	if err := c.store.DB.SendBatch(ctx, &batch).Close(); err != nil {
		return c.explainRewind(ctx, pg.Explain("count what is acknowledged", err))
	}
	c.advanceAcknowledged(seq)
	if err := c.store.Alive(ctx, c.cluster, at); err != nil {
		return err
	}
	return c.noteWatching(ctx, at, watching)
}

const noteWatchingQuery = `
WITH now AS (
  INSERT INTO evictrail.watching AS w (cluster, replica, source, since, upto)
  SELECT @cluster, @replica, n.source, n.since, @at::timestamptz
  FROM unnest(@sources::text[], @since::timestamptz[]) AS n(source, since)
  ON CONFLICT (cluster, replica, source) DO UPDATE SET since = excluded.since, upto = excluded.upto
)
DELETE FROM evictrail.watching
WHERE cluster = @cluster
  AND replica IN (
    SELECT replica
    FROM evictrail.watching
    WHERE cluster = @cluster
    GROUP BY replica
    HAVING max(upto) + interval '1 day' < @at
  )`

// noteWatching notes what this replica has been watching without a break; what it has not stays as it was. Replicas that have been away
// for long are forgotten.
func (c *ClusterStore) noteWatching(ctx context.Context, at time.Time, watching []trail.Watching) error {
	if len(watching) == 0 {
		return nil
	}
	sources, since := make([]string, len(watching)), make([]time.Time, len(watching))
	for i, w := range watching {
		sources[i], since[i] = w.Source, w.Since
	}
	_, err := c.store.DB.Exec(ctx, noteWatchingQuery, pgx.StrictNamedArgs{
		"cluster": c.cluster, "replica": c.replica, "at": at, "sources": sources, "since": since,
	})
	return pg.Explain("note what is watched", err)
}

// LastWatched returns up to when this replica was watching before, by source; nothing where that is not known.
func (c *ClusterStore) LastWatched(ctx context.Context) (map[string]time.Time, error) {
	const query = `
SELECT source, upto
FROM evictrail.watching
WHERE cluster = @cluster
  AND replica = @replica`
	const doing = "read when this replica was last watching"
	rows, err := c.store.DB.Query(ctx, query, pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica})
	if err != nil {
		return nil, pg.Explain(doing, err)
	}
	type noted struct {
		Source string
		Upto   time.Time
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[noted])
	upto := make(map[string]time.Time, len(all))
	for _, n := range all {
		upto[n.Source] = n.Upto.UTC()
	}
	return upto, pg.Explain(doing, err)
}

// A replica notes every 10 s that it is watching: one that did so within three times that is taken to watch still. Should it not, the
// gap is recorded when it, or the one that takes its place, lists again.
const coveredQuery = `
SELECT EXISTS (
  SELECT 1
  FROM evictrail.watching
  WHERE cluster = @cluster
    AND replica <> @replica
    AND source = @source
    AND since <= @opened_at
    AND upto + interval '30 seconds' >= @seen_at
)`

// dropCoveredGaps leaves out the gaps in which another replica was watching.
func (c *ClusterStore) dropCoveredGaps(ctx context.Context, facts []trail.Fact) ([]trail.Fact, error) {
	covered := map[string]bool{} // by the source and the key of the gap
	for _, f := range facts {
		d, gap := f.Detail.(*trail.GapDetail)
		if !gap || f.Kind != trail.KindGapOpened || d.Cause.IsBreak() {
			continue
		}
		var is bool
		err := c.store.DB.QueryRow(ctx, coveredQuery, pgx.StrictNamedArgs{
			"cluster": c.cluster, "replica": c.replica, "source": f.Object.UID, "opened_at": f.OccurredAt, "seen_at": f.ObservedAt,
		}).Scan(&is)
		if err != nil {
			return nil, pg.Explain("read what other replicas watch", err)
		}
		covered[f.Object.UID+" "+d.Key] = is
	}
	if len(covered) == 0 {
		return facts, nil
	}
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool {
		d, gap := f.Detail.(*trail.GapDetail)
		return gap && covered[f.Object.UID+" "+d.Key]
	}), nil
}

// Moved is Store.Moved of this cluster.
func (c *ClusterStore) Moved(ctx context.Context, since time.Time) ([]trail.Moved, error) {
	return c.store.Moved(ctx, c.cluster, since)
}
