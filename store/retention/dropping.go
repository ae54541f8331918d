package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const (
	dropStateQuery = `
SELECT facts_from, dropping, complete, done_cluster, done_subject
FROM evictrail.retention`
	beginDropQuery = `
SELECT evictrail.begin_drop(@boundary, current_user)`
	finishDropQuery = `
SELECT *
FROM evictrail.finish_drop()`
	dirtyPastQuery = `
SELECT EXISTS (SELECT 1 FROM evictrail.subjects WHERE dirty_since < @boundary)`
)

// dropState is how far dropping facts is.
type dropState struct {
	FactsFrom   *time.Time
	Dropping    *time.Time
	Complete    bool
	DoneCluster string
	DoneSubject string
}

func (s months) dropState(ctx context.Context) (dropState, error) {
	rows, err := s.Query(ctx, dropStateQuery)
	if err != nil {
		return dropState{}, pg.Explain("read how far facts are dropped", err)
	}
	state, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[dropState])
	return state, pg.Explain("read how far facts are dropped", err)
}

// dropFacts drops the facts of the months before a boundary.
func (s months) dropFacts(ctx context.Context, boundary time.Time, out *Retained) error {
	old, err := s.partitionsBefore(ctx, boundary)
	if err != nil || len(old) == 0 {
		return err
	}
	state, err := s.dropState(ctx)
	if err != nil {
		return err
	}
	var behind bool
	if err := s.QueryRow(ctx, dirtyPastQuery, pgx.StrictNamedArgs{"boundary": boundary}).Scan(&behind); err != nil {
		return pg.Explain("look for what is to be derived", err)
	}
	if behind {
		out.Waits = "something is still to be derived of them"
		return nil
	}
	if state.Dropping == nil || !state.Dropping.Equal(boundary) {
		begun, err := s.retryWhileLocked(ctx, func() error {
			_, err := s.Exec(ctx, beginDropQuery, pgx.StrictNamedArgs{"boundary": boundary})
			return err
		})
		if err != nil || !begun {
			out.Waits = inUse
			return needsRole("begin to drop facts", err)
		}
	}
	for i := range old { // what is there now is gone then
		if old[i].Facts, err = s.countFacts(ctx, old[i].From, old[i].To); err != nil {
			return err
		}
	}
	if state.FactsFrom != nil {
		if out.Old, err = s.countFacts(ctx, time.Time{}, *state.FactsFrom); err != nil {
			return err
		}
	}
	for range finishTries {
		if err := s.keepFacts(ctx, boundary); err != nil {
			return err
		}
		var names []string
		done, err := s.retryWhileLocked(ctx, func() error {
			rows, err := s.Query(ctx, finishDropQuery)
			if err == nil {
				names, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
		if err != nil || !done {
			out.Waits = inUse
			return needsRole("drop facts", err)
		}
		if state, err = s.dropState(ctx); err != nil {
			return err
		}
		if state.FactsFrom != nil && !state.FactsFrom.Before(boundary) {
			out.Dropped = slices.DeleteFunc(old, func(p Partition) bool { return !slices.Contains(names, p.Name) })
			for _, p := range out.Dropped {
				out.Old += p.Facts
			}
			out.Kept, err = s.countFacts(ctx, time.Time{}, boundary)
			return err
		}
	}
	out.Waits = "facts of that time still come in"
	return nil
}

const (
	// inUse says why facts were not dropped.
	inUse = "the history is in use: others read or write it without a pause"
	// finishTries is how often facts are dropped again, where facts of their time came in during that time, before the next time is waited for.
	finishTries = 3
)

// lockTries is how often is waited for a lock, each time for up to 0.2 s, in which others wait as well, and lockPause for how long they go on between.
var (
	lockTries = 20
	lockPause = 500 * time.Millisecond
)

// needsRole explains, for what is left to the owner or who has the role for it, an error of a right that is missing.
func needsRole(doing string, err error) error {
	if pg.IsDenied(err) {
		return fmt.Errorf("%s: %w: GRANT evictrail_retention to the database's user, after running the SQL of `evictrail schema roles`, or keep everything with 0: %w", doing, pg.ErrUnavailable, err)
	}
	return pg.Explain(doing, err)
}

// retryWhileLocked does what needs a lock that others must not wait for, again until it gets it; false where it does not.
func (s months) retryWhileLocked(ctx context.Context, run func() error) (bool, error) {
	for range lockTries {
		err := run()
		if !pg.IsLocked(err) {
			return err == nil, err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return false, nil
}

const partitionsQuery = `
SELECT c.relname, %s
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'evictrail.events'::regclass
  AND c.relname ~ '^events_\d{4}_\d{2}$'
ORDER BY c.relname`

// partitionsBefore returns the months before a boundary that have a partition, in their order; how many facts they have is left out.
func (s months) partitionsBefore(ctx context.Context, boundary time.Time) ([]Partition, error) {
	size, err := s.TableSize(ctx)
	if err != nil {
		return nil, pg.Explain("look for months", err)
	}
	rows, err := s.Query(ctx, fmt.Sprintf(partitionsQuery, size))
	if err != nil {
		return nil, pg.Explain("look for months", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]Partition, error) {
		var name string
		var bytes int64
		err := row.Scan(&name, &bytes)
		return partitionOf(name, 0, bytes, time.Time{}), err
	})
	months := slices.Concat(found...)
	return slices.DeleteFunc(months, func(p Partition) bool { return !p.From.Before(boundary) }), pg.Explain("look for months", err)
}

const countFactsQuery = `
SELECT count(*)
FROM evictrail.events
WHERE occurred_at >= @from
  AND occurred_at < @to`

// countFacts counts the facts from a time to another, exclusive.
func (s months) countFacts(ctx context.Context, from, to time.Time) (n int64, err error) {
	err = s.QueryRow(ctx, countFactsQuery, pgx.StrictNamedArgs{"from": from, "to": to}).Scan(&n)
	return n, pg.Explain("count facts", err)
}

const (
	dropFurtherQuery = `
SELECT dropping, complete, done_cluster, done_subject
FROM evictrail.retention
FOR UPDATE`
	nextSubjectsQuery = `
SELECT cluster, subject
FROM evictrail.subjects
WHERE (cluster, subject) > (@cluster, @subject)
ORDER BY cluster, subject
LIMIT @limit`
	doneQuery = `
UPDATE evictrail.retention
SET complete = @complete, done_cluster = @cluster, done_subject = @subject`
)

// keptTogether is of how many subjects facts are kept in one transaction; tests have fewer.
var keptTogether = 500

// keepFacts puts aside what is to be kept of the facts before a boundary, some subjects at a time, from where it was left on.
func (s months) keepFacts(ctx context.Context, boundary time.Time) error {
	reaches := map[string]*reach{}
	for done := false; !done; {
		err := s.InTx(ctx, "keep facts", func(tx pgx.Tx) (err error) {
			done, err = keepSome(ctx, tx, boundary, reaches)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keepSome is one step of keepFacts. It reports whether all is done.
func keepSome(ctx context.Context, tx pgx.Tx, boundary time.Time, reaches map[string]*reach) (done bool, err error) {
	if _, err := tx.Exec(ctx, tables.DropNoFactsQuery); err != nil {
		return false, err
	}
	var dropping *time.Time
	var cluster, subject string
	if err := tx.QueryRow(ctx, dropFurtherQuery).Scan(&dropping, &done, &cluster, &subject); err != nil {
		return false, err
	}
	if done || dropping == nil || !dropping.Equal(boundary) { // done, perhaps by another
		return true, nil
	}
	if cluster == "" && subject == "" { // from the beginning: rows may say something else by now
		clear(reaches)
	}
	rows, err := tx.Query(ctx, nextSubjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": subject, "limit": keptTogether})
	if err != nil {
		return false, err
	}
	type place struct{ Cluster, Subject string }
	next, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	if err != nil {
		return false, err
	}
	of := map[string][]string{}
	for _, p := range next {
		of[p.Cluster] = append(of[p.Cluster], p.Subject)
		cluster, subject = p.Cluster, p.Subject
	}
	for c, subjects := range of {
		if reaches[c] == nil {
			if reaches[c], err = newReach(ctx, tx, c, boundary); err != nil {
				return false, err
			}
		}
		if err := reaches[c].keepSubjectFacts(ctx, tx, subjects); err != nil {
			return false, err
		}
	}
	done = len(next) < keptTogether
	_, err = tx.Exec(ctx, doneQuery, pgx.StrictNamedArgs{"complete": done, "cluster": cluster, "subject": subject})
	return done, err
}

// keepLateQuery has those that drop facts look again for what is to be kept of them.
const keepLateQuery = `
UPDATE evictrail.retention
SET complete = false, done_cluster = '', done_subject = ''
WHERE dropping > @at`

// KeepLate has facts that were inserted kept as well, where facts of their time are being dropped.
func KeepLate(batch *pgx.Batch, inserted []trail.Fact) {
	var oldest time.Time
	for i := range inserted {
		oldest = pg.EarlierTime(oldest, inserted[i].OccurredAt)
	}
	if !oldest.IsZero() && time.Since(oldest) >= LeastFacts { // those of later are not dropped
		batch.Queue(keepLateQuery, pgx.StrictNamedArgs{"at": oldest})
	}
}
