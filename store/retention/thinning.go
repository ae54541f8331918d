package retention

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

const (
	// lockPatiently bounds how long one who records or moves the cluster is waited for.
	lockPatiently = `SET LOCAL lock_timeout = '5s'`
	thinningQuery = `
SELECT facts_from, thinned_to
FROM evictrail.clusters
WHERE cluster = @cluster
FOR NO KEY UPDATE`
	// oldFactsQuery asks whether a cluster has facts that are to be dropped, and whether something is still to be
	// derived of them.
	oldFactsQuery = `
SELECT
    EXISTS (SELECT 1 FROM evictrail.events WHERE cluster = @cluster AND occurred_at < @boundary AND occurred_at >= @since),
    EXISTS (SELECT 1 FROM evictrail.subjects WHERE cluster = @cluster AND dirty_since < @boundary)`
	beginThinningQuery = `
UPDATE evictrail.clusters
SET facts_from = @boundary, thinned_to = ''
WHERE cluster = @cluster`
	thinnedQuery = `
UPDATE evictrail.clusters
SET thinned_to = @subject
WHERE cluster = @cluster`
	subjectsAfterQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject > @subject
ORDER BY subject
LIMIT @limit`
	// thinFactsQuery deletes the facts of subjects from before a time that keepFactsQuery would not keep.
	thinFactsQuery = `
SELECT evictrail.drop_facts(@cluster, array_agg(f.subject), array_agg(f.occurred_at), array_agg(f.id))
FROM unnest(@subjects::text[], @since::timestamptz[]) AS s(of, since)
CROSS JOIN LATERAL (
  WITH ` + tables.StateBefore + `
  SELECT subject, occurred_at, id
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at < @boundary
    AND NOT ` + isKept + `
  OFFSET 0
) AS f`
)

// thinFacts deletes the facts of one cluster before a boundary, within months that other clusters still need, but for
// those that are kept. That they are not all there is noted first: then what is deleted matters to nothing any more,
// and the next time goes on where this one was cut off.
func (s months) thinFacts(ctx context.Context, cluster string, boundary time.Time, out *Retained) error {
	begun := false
	err := s.InTx(ctx, "begin to drop facts of a cluster", func(tx pgx.Tx) (err error) {
		begun, err = beginThinning(ctx, tx, cluster, boundary, out)
		return err
	})
	if pg.IsLocked(err) {
		out.Waits = inUse
		return nil
	}
	var r *reach
	for begun && err == nil {
		err = s.InTx(ctx, "drop facts of a cluster", func(tx pgx.Tx) error {
			var n int64
			var err error
			if r, n, begun, err = thinSome(ctx, tx, cluster, r); err == nil {
				out.Thinned += n
			}
			return err
		})
	}
	return needsRole("drop facts of a cluster", err)
}

// beginThinning notes that facts of a cluster are dropped. It reports whether some are, also from before.
func beginThinning(ctx context.Context, tx pgx.Tx, cluster string, boundary time.Time, out *Retained) (bool, error) {
	if _, err := tx.Exec(ctx, lockPatiently); err != nil {
		return false, err
	}
	args := pgx.StrictNamedArgs{"cluster": cluster}
	if _, err := tx.Exec(ctx, tables.RecordAloneQuery, args); err != nil {
		return false, err
	}
	var from *time.Time
	var at *string
	if err := tx.QueryRow(ctx, thinningQuery, args).Scan(&from, &at); err != nil || at != nil {
		return err == nil, err
	}
	args["boundary"] = boundary
	if from != nil && !from.Before(boundary) {
		return false, nil
	}
	var old, dirty bool
	err := tx.QueryRow(ctx, oldFactsQuery, pg.Planned, pgx.StrictNamedArgs{
		"cluster": cluster, "boundary": boundary, "since": pg.SendableTime(pg.TimeOrZero(from)),
	}).Scan(&old, &dirty)
	switch {
	case err != nil || !old:
		return false, err
	case dirty:
		out.Waits = "something is still to be derived of them"
		return false, nil
	}
	_, err = tx.Exec(ctx, beginThinningQuery, args)
	return true, err
}

// thinSome is one step of thinFacts. It returns how far back facts matter, for the next step, how many facts were
// deleted, and whether more may be.
func thinSome(ctx context.Context, tx pgx.Tx, cluster string, r *reach) (_ *reach, n int64, more bool, err error) {
	args := pgx.StrictNamedArgs{"cluster": cluster}
	if _, err := tx.Exec(ctx, tables.DropNoFactsQuery); err != nil {
		return r, 0, false, err
	}
	var from *time.Time
	var at *string
	if err := tx.QueryRow(ctx, thinningQuery, args).Scan(&from, &at); err != nil || at == nil || from == nil {
		return r, 0, false, err // done, perhaps by another
	}
	if r == nil || !r.boundary.Equal(*from) {
		if r, err = newReach(ctx, tx, cluster, from.UTC()); err != nil {
			return r, 0, false, err
		}
	}
	rows, err := tx.Query(ctx, subjectsAfterQuery, pgx.StrictNamedArgs{
		"cluster": cluster, "subject": *at, "limit": keptTogether,
	})
	if err != nil {
		return r, 0, false, err
	}
	subjects, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return r, 0, false, err
	}
	var next *string
	if more = len(subjects) == keptTogether; more {
		next = &subjects[len(subjects)-1]
	}
	if len(subjects) > 0 {
		n, err = r.thinSubjectFacts(ctx, tx, subjects)
	}
	if err == nil {
		_, err = tx.Exec(ctx, thinnedQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": next})
	}
	return r, n, more, err
}

// thinSubjectFacts deletes the facts of subjects that do not matter, and returns how many.
func (r *reach) thinSubjectFacts(ctx context.Context, tx pgx.Tx, subjects []string) (n int64, err error) {
	since, err := r.subjectsSince(ctx, tx, subjects)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, thinFactsQuery, pg.Planned, pgx.StrictNamedArgs{
		"cluster": r.cluster, "boundary": r.boundary, "subjects": subjects, "since": since,
	}).Scan(&n)
	return n, err
}
