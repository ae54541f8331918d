package store

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// For gives the store as the Sink of one cluster, for one of the replicas that record it. It follows until Lead is called.
func (s *Store) For(cluster, replica string) *ClusterStore {
	return &ClusterStore{store: s, cluster: cluster, replica: replica}
}

// ClusterStore is the store seen from one replica's collector. It is safe for concurrent use.
type ClusterStore struct {
	store   *Store
	cluster string
	replica string
	term    atomic.Int64 // 0: it follows
	acked   atomic.Int64 // how often this replica was acknowledged, as far as it knows
}

// Append is Store.Append for the leader, and may return a *RewoundError besides. A follower's facts are stored alike, with the note that their subjects are to be derived. Gaps in
// what this replica saw are left out where another was watching.
func (c *ClusterStore) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	facts, err := c.uncovered(ctx, facts)
	if err != nil {
		return trail.News{}, err
	}
	var seq int64
	confirm := func(ctx context.Context, tx pgx.Tx, at time.Time) (err error) {
		seq, err = c.acknowledge(ctx, tx, at)
		return err
	}
	news, err := c.appendOrKeep(ctx, facts, confirm)
	if err == nil {
		c.acknowledged(seq)
	}
	return news, err
}

func (c *ClusterStore) appendOrKeep(ctx context.Context, facts []trail.Fact, confirm confirmation) (trail.News, error) {
	if term := c.term.Load(); term != 0 {
		news, err := c.store.append(ctx, c.cluster, facts, term, confirm)
		if !c.deposed(term, err) {
			return news, err
		}
	}
	return c.store.keep(ctx, c.cluster, facts, confirm)
}

// Alive is Store.Alive with what this replica has been watching. The leader derives again what time alone has changed; where that is
// much, the rest at the next times.
func (c *ClusterStore) Alive(ctx context.Context, at time.Time, watching []trail.Watching) (trail.News, error) {
	seq, err := c.acknowledge(ctx, c.store.pool, at)
	if err != nil {
		return trail.News{}, err
	}
	c.acknowledged(seq)
	if err := c.store.Alive(ctx, c.cluster, at); err != nil {
		return trail.News{}, err
	}
	if err := c.noteWatching(ctx, at, watching); err != nil {
		return trail.News{}, err
	}
	term := c.term.Load()
	if term == 0 {
		return trail.News{}, nil
	}
	_, news, err := c.store.deriveDue(ctx, c.cluster, at, term, dueAtOnce)
	if c.deposed(term, err) {
		err = nil // the leader does
	}
	return news, err
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
	_, err := c.store.pool.Exec(ctx, noteWatchingQuery, pgx.StrictNamedArgs{
		"cluster": c.cluster, "replica": c.replica, "at": at, "sources": sources, "since": since,
	})
	return explain("note what is watched", err)
}

// LastWatched gives up to when this replica was watching before, by source; nothing where that is not known.
func (c *ClusterStore) LastWatched(ctx context.Context) (map[string]time.Time, error) {
	const query = `
SELECT source, upto
FROM evictrail.watching
WHERE cluster = @cluster
  AND replica = @replica`
	const doing = "read when this replica was last watching"
	rows, err := c.store.pool.Query(ctx, query, pgx.StrictNamedArgs{"cluster": c.cluster, "replica": c.replica})
	if err != nil {
		return nil, explain(doing, err)
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
	return upto, explain(doing, err)
}

// A replica notes every 10 s that it is watching: one that did so within three times that is taken to watch still. Should it not, the
// gap is told when it, or the one that takes its place, lists anew.
const coveredQuery = `
SELECT EXISTS (
  SELECT
  FROM evictrail.watching
  WHERE cluster = @cluster
    AND replica <> @replica
    AND source = @source
    AND since <= @opened_at
    AND upto + interval '30 seconds' >= @seen_at
)`

// uncovered leaves out the gaps in which another replica was watching.
func (c *ClusterStore) uncovered(ctx context.Context, facts []trail.Fact) ([]trail.Fact, error) {
	covered := map[string]bool{} // by the source and the key of the gap
	for _, f := range facts {
		d, gap := f.Detail.(*trail.GapDetail)
		if !gap || f.Kind != trail.KindGapOpened || d.Cause.IsBreak() {
			continue
		}
		var is bool
		err := c.store.pool.QueryRow(ctx, coveredQuery, pgx.StrictNamedArgs{
			"cluster": c.cluster, "replica": c.replica, "source": f.Object.UID, "opened_at": f.OccurredAt, "seen_at": f.ObservedAt,
		}).Scan(&is)
		if err != nil {
			return nil, explain("read what other replicas watch", err)
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
