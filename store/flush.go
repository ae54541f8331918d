package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail/fold"
)

const (
	// derivedQuery notes when subjects that were derived are due again, and that those are not dirty any more of which nothing was recorded since: whose version is that
	// which was folded; NULL is of none. A node may have no row before.
	derivedQuery = `
WITH n AS (
  SELECT n.*, CASE WHEN n.derived THEN now() END AS derived_at
  FROM unnest(@subjects::text[], @derived::boolean[], @next::timestamptz[], @versions::bigint[]) AS n(subject, derived, next_at, version)
), locked AS MATERIALIZED (
  SELECT s.subject
  FROM evictrail.subjects AS s
  JOIN n ON n.subject = s.subject
  WHERE s.cluster = @cluster
  ORDER BY s.subject
  FOR NO KEY UPDATE OF s
), noted AS (
  UPDATE evictrail.subjects AS s
  SET
    derived_at = coalesce(n.derived_at, s.derived_at),
    next_at = CASE WHEN n.derived THEN n.next_at ELSE s.next_at END,
    dirty_since = CASE WHEN s.version = n.version THEN NULL ELSE s.dirty_since END
  FROM locked
  JOIN n ON n.subject = locked.subject
  WHERE s.cluster = @cluster
    AND s.subject = locked.subject
)
INSERT INTO evictrail.subjects (cluster, subject, derived_at, next_at)
SELECT @cluster, n.subject, now(), n.next_at
FROM n
WHERE n.derived
  AND n.subject NOT IN (SELECT subject FROM locked)
ON CONFLICT DO NOTHING`
	deferQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, dirty_since)
SELECT @cluster, n.subject, '-infinity', n.since
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET dirty_since = least(s.dirty_since, excluded.dirty_since)`
)

// flushChanges writes what a fold brought, in one transaction of a term. Its error is ErrDeposed where the term has ended. Where it fails for what a row is, careful
// writes the rows of each subject by themselves, and leaves out the subjects for which that fails. Those that had failed before and are derived now are no failures
// any more.
func (d *deriver) flushChanges(ctx context.Context, c *fold.Changes, careful bool) error {
	var failed []DeriveFailure
	err := d.store.DB.InBatches(ctx, "write derived rows", func(tx *pg.Batches) error {
		failed = nil
		var batch pgx.Batch
		queueTermFence(&batch, d.cluster, d.term)
		if !careful {
			if err := queueRows(&batch, d.cluster, c); err != nil {
				return err
			}
			d.queueSubjects(&batch, c)
		}
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		if careful {
			if err := d.flushEach(ctx, tx, c); err != nil {
				return err
			}
		}
		for _, of := range tables.SortedSubjects(c.Failed) {
			f, err := leaveOut(ctx, tx, d.cluster, of, c.Failed[of])
			if err != nil {
				return err
			}
			failed = append(failed, f)
		}
		return nil
	})
	if err == nil {
		d.store.reportFailed(failed)
	}
	return err
}

// flushEach writes the rows of each subject by themselves, and notes as failed those for which that fails.
func (d *deriver) flushEach(ctx context.Context, tx pg.Sender, c *fold.Changes) error {
	for _, its := range c.BySubject() {
		err := flushOne(ctx, tx, d.cluster, its)
		if err != nil && (ctx.Err() != nil || !pg.MayBeOfRecord(err)) {
			return err
		}
		if err != nil {
			c.Failed[its.Subject] = err
			delete(c.Due, its.Subject)
		}
	}
	var batch pgx.Batch
	d.queueSubjects(&batch, c)
	return tx.SendBatch(ctx, &batch).Close()
}

// flushOne writes the rows of one subject, or none of them.
func flushOne(ctx context.Context, tx pg.Sender, cluster string, c *fold.Changes) error {
	var batch, back pgx.Batch
	batch.Queue("SAVEPOINT one")
	if err := queueRows(&batch, cluster, c); err != nil {
		return err
	}
	batch.Queue("RELEASE SAVEPOINT one")
	err := tx.SendBatch(ctx, &batch).Close()
	if err == nil {
		return nil
	}
	back.Queue("ROLLBACK TO SAVEPOINT one")
	return pg.Explain("write derived rows", errors.Join(err, tx.SendBatch(ctx, &back).Close()))
}

// queueRows queues what brings the derived tables to what was folded: first all that goes, as what comes may have the same key.
func queueRows(batch *pgx.Batch, cluster string, c *fold.Changes) error {
	texts := make([]string, len(tables.Derived))
	for i := range tables.Derived {
		t := &tables.Derived[i]
		var subjects, keys []string
		var written []any
		for key, value := range c.Rows[t.Name] {
			subject := pg.CleanText(key.Subject.String())
			if value == nil {
				subjects, keys = append(subjects, subject), append(keys, pg.CleanText(key.Key))
			} else {
				written = append(written, t.Row(tables.Owned{Cluster: cluster, Subject: subject}, value))
			}
		}
		if len(keys) > 0 {
			batch.Queue(t.Delete, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "keys": keys})
		}
		if len(written) > 0 {
			var err error
			if texts[i], err = pg.JSONText(written); err != nil {
				return fmt.Errorf("write %s: %w", t.Name, err)
			}
		}
	}
	for i, text := range texts {
		if text != "" {
			batch.Queue(tables.Derived[i].Put, pgx.StrictNamedArgs{"rows": text})
		}
	}
	return nil
}

// queueSubjects notes which subjects are derived, which are due, and which were deferred.
func (d *deriver) queueSubjects(batch *pgx.Batch, c *fold.Changes) {
	cluster := d.cluster
	var healed []string
	for s := range c.Due {
		if _, failed := d.failing[s]; failed {
			healed = append(healed, pg.CleanText(s.String()))
		}
	}
	if len(healed) > 0 {
		batch.Queue(healedQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": healed})
	}
	if len(c.Due)+len(c.Clean) > 0 {
		batch.Queue(derivedQuery, derivedArgs(cluster, c))
	}
	if len(c.Deferred) > 0 {
		var subjects []string
		var since []time.Time
		for s, at := range c.Deferred {
			subjects, since = append(subjects, pg.CleanText(s.String())), append(since, pg.SendableTime(at))
		}
		batch.Queue(deferQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since})
	}
}

// derivedArgs returns the arguments of derivedQuery.
func derivedArgs(cluster string, c *fold.Changes) pgx.StrictNamedArgs {
	var subjects []string
	var derived []bool
	var next []*time.Time
	var versions []*int64
	for s, at := range c.Due {
		subjects, derived, next = append(subjects, pg.CleanText(s.String())), append(derived, true), append(next, pg.NullTime(at))
		var folded *int64
		if v, dirty := c.Clean[s]; dirty {
			folded = &v
		}
		versions = append(versions, folded)
	}
	for s, v := range c.Clean {
		if _, also := c.Due[s]; !also { // left out, or left to a later Fold
			subjects, derived, next, versions = append(subjects, pg.CleanText(s.String())), append(derived, false), append(next, nil), append(versions, &v)
		}
	}
	return pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "derived": derived, "next": next, "versions": versions}
}
