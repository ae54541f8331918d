package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// A subject that cannot be derived, for what its facts are or for a bug, must stop nothing: its facts are recorded, the others are derived, and it is derived again
// later as a whole, each time after twice as long. Its rows stay as they are until then.
const (
	failuresQuery = `
SELECT subject, retry_at > now()
FROM evictrail.derive_failures
WHERE cluster = @cluster`
	failQuery = `
INSERT INTO evictrail.derive_failures AS f (cluster, subject, reason, failures, since, retry_at)
VALUES (@cluster, @subject, @reason, 1, now(), now() + interval '1 minute')
ON CONFLICT (cluster, subject) DO UPDATE SET
    reason = excluded.reason, failures = f.failures + 1,
    retry_at = now() + least(interval '1 minute' * 2 ^ least(f.failures, 10), interval '1 hour')
RETURNING failures`
	// What is left out is not due: nobody looks for it before it is derived again.
	notDueQuery = `
UPDATE evictrail.subjects
SET next_at = NULL
WHERE cluster = @cluster
  AND subject = @subject
  AND next_at IS NOT NULL`
	healedQuery = `
DELETE FROM evictrail.derive_failures
WHERE cluster = @cluster
  AND subject = ANY(@subjects)`
	retryAllQuery = `
UPDATE evictrail.derive_failures
SET retry_at = now()
WHERE cluster = @cluster`
	listFailedQuery = `
SELECT cluster, subject, reason, failures, since, retry_at
FROM evictrail.derive_failures
ORDER BY since, cluster, subject
LIMIT @most`
)

// deriveAgain notes that everything of a cluster is to be derived again, also what could not be derived.
func deriveAgain(ctx context.Context, tx pgx.Tx, cluster string) error {
	if err := tables.MarkAllDirty(ctx, tx, cluster); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, retryAllQuery, pgx.StrictNamedArgs{"cluster": cluster})
	return err
}

// DeriveFailure is a subject that could not be derived.
type DeriveFailure struct {
	Cluster  string
	Subject  string
	Reason   string
	Failures int       // attempts in a row
	Since    time.Time // the first of them, UTC
	RetryAt  time.Time // it is left out until then
}

// DeriveFailures lists at most so many subjects that could not be derived, those that failed first at the top.
func (s *Store) DeriveFailures(ctx context.Context, most int) ([]DeriveFailure, error) {
	rows, err := s.DB.Query(ctx, listFailedQuery, pgx.StrictNamedArgs{"most": most})
	if err != nil {
		return nil, pg.Explain("list what cannot be derived", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeriveFailure])
	return out, pg.Explain("list what cannot be derived", err)
}

// mostReason bounds the reason that is kept, in bytes: a stack is long.
const mostReason = 4 << 10

// leaveOut notes that a subject could not be derived, and is left out for a while.
func leaveOut(ctx context.Context, tx pg.Sender, cluster string, of trail.Subject, cause error) (DeriveFailure, error) {
	f := DeriveFailure{Cluster: cluster, Subject: pg.CleanText(of.String()), Reason: trail.ClipText(strings.ToValidUTF8(pg.CleanText(cause.Error()), ""), mostReason)}
	var batch pgx.Batch
	batch.Queue(failQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": f.Subject, "reason": f.Reason}).
		QueryRow(func(row pgx.Row) error { return row.Scan(&f.Failures) })
	batch.Queue(notDueQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": f.Subject})
	err := tx.SendBatch(ctx, &batch).Close()
	return f, pg.Explain("note what cannot be derived", err)
}

// reportFailed reports subjects that failed for the first time.
func (s *Store) reportFailed(failed []DeriveFailure) {
	for _, f := range failed {
		if s.Underived != nil && f.Failures == 1 {
			s.Underived(f)
		}
	}
}

// newPanicError returns what was recovered of a panic as an error; nil for none.
func newPanicError(what any) error {
	if what == nil {
		return nil
	}
	return fmt.Errorf("panic: %v\n%s", what, debug.Stack())
}

// deriveWithin is how long one step may take. It is far longer than anything takes.
const deriveWithin = 30 * time.Second

// runGuarded runs what derives within a time of its own. A panic is an error.
func runGuarded(ctx context.Context, within time.Duration, derive func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer func() { err = cmp.Or(err, newPanicError(recover())) }()
	return derive(ctx)
}

// isolateFailure folds a batch that failed for what one of its subjects is: in halves, until that one is alone and left out. While the database takes nothing that others
// write, that is the error.
func (d *deriver) isolateFailure(ctx context.Context, b fold.Batch, cause error) (news trail.News, err error) {
	for i := range b.Dirty { // what was in memory is gone
		b.Dirty[i].Facts = nil
	}
	if n := len(b.Dirty); n > 1 {
		for _, some := range [][]fold.Dirty{b.Dirty[:n/2], b.Dirty[n/2:]} {
			half := b
			half.Dirty = some
			brought, err := d.foldAndFlush(ctx, half)
			news.Add(brought)
			if err != nil {
				return news, err
			}
		}
		return news, nil
	}
	if err := d.store.probeWrites(ctx, d.cluster); err != nil {
		return news, errors.Join(cause, err)
	}
	one := b.Dirty[0]
	c := &fold.Changes{Clean: map[trail.Subject]int64{}, Failed: map[trail.Subject]error{one.Subject: cause}}
	if !one.Due {
		c.Clean[one.Subject] = one.Version
	}
	return news, d.flushChanges(ctx, c, false)
}
