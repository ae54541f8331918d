package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/evictrail/evictrail/trail"
)

// A subject that cannot be derived, for what its facts are or for a bug, must stop nothing: its facts are stored, the others are derived, and it is tried again
// later, each time after twice as long. Its rows stay as they are until then.
const (
	failedQuery = `
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
	// What is left out is not stale, nor touched, nor due: dropping facts does not wait for it, and nobody looks for it.
	leaveOutQuery = `
UPDATE evictrail.subjects
SET stale_since = NULL, touched_since = NULL, next_at = NULL
WHERE cluster = @cluster
  AND subject = @subject`
	healedQuery = `
DELETE FROM evictrail.derive_failures
WHERE cluster = @cluster
  AND subject = ANY(@subjects)`
	retryFailedQuery = `
UPDATE evictrail.subjects AS s
SET stale_since = CASE WHEN s.subject LIKE 'node:%' OR s.subject LIKE 'cluster:%' THEN @around::timestamptz ELSE @vms::timestamptz END
FROM evictrail.derive_failures AS f
WHERE f.cluster = @cluster
  AND f.retry_at <= now()
  AND s.cluster = f.cluster
  AND s.subject = f.subject
  AND s.stale_since IS NULL`
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
func (s *Reader) DeriveFailures(ctx context.Context, most int) ([]DeriveFailure, error) {
	rows, err := s.pool.Query(ctx, listFailedQuery, pgx.StrictNamedArgs{"most": most})
	if err != nil {
		return nil, explain("list what cannot be derived", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeriveFailure])
	return out, explain("list what cannot be derived", err)
}

// derive is trail.Derive; tests have one that panics.
var derive = trail.Derive

// deriveSubject derives one subject. A panic is an error.
func deriveSubject(of trail.Subject, facts []trail.Fact, env *trail.Env, now time.Time) (out trail.Derived, err error) {
	defer func() { err = cmp.Or(err, panicked(recover())) }()
	return derive(of, facts, env, now), nil
}

// panicked returns what was recovered of a panic as an error; nil for none.
func panicked(what any) error {
	if what == nil {
		return nil
	}
	return fmt.Errorf("panic: %v\n%s", what, debug.Stack())
}

// readFailed asks which subjects could not be derived, and which of them are left out now.
func (d *derivation) readFailed(batch *pgx.Batch) {
	batch.Queue(failedQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(each(func(row pgx.CollectableRow) error {
		var subject string
		var leftOut bool
		err := row.Scan(&subject, &leftOut)
		if d.failed == nil {
			d.failed = map[string]bool{}
		}
		d.failed[subject] = leftOut
		return err
	}))
}

// derivable returns the subjects but for those that are left out.
func (d *derivation) derivable(subjects since) since {
	if len(d.failed) == 0 {
		return subjects
	}
	out := make(since, len(subjects))
	for s, at := range subjects {
		if !d.failed[nameOf(s)] {
			out[s] = at
		}
	}
	return out
}

// heal forgets that subjects could not be derived before, as they are now.
func (d *derivation) heal(ctx context.Context, subjects []string) error {
	healed := slices.DeleteFunc(subjects, func(s string) bool { _, failed := d.failed[s]; return !failed })
	if len(healed) == 0 {
		return nil
	}
	_, err := d.tx.Exec(ctx, healedQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": healed})
	return explain("note what is derived again", err)
}

// deriveEach derives subjects, and leaves out those for which that fails.
func (d *derivation) deriveEach(ctx context.Context, subjects []trail.Subject, env *trail.Env) ([]trail.Subject, []trail.Derived, error) {
	good, derived := make([]trail.Subject, 0, len(subjects)), make([]trail.Derived, 0, len(subjects))
	for _, s := range subjects {
		rows, err := deriveSubject(s, d.facts[s], env, d.now)
		if err == nil {
			good, derived = append(good, s), append(derived, rows)
			continue
		}
		if err := d.noteFailed(leaveOut(ctx, d.tx, d.cluster, nameOf(s), err)); err != nil {
			return nil, nil, err
		}
	}
	return good, derived, nil
}

// eachAlone derives subjects one after the other, and leaves out those for which that fails: what was written for one of them is taken back.
func (d *derivation) eachAlone(ctx context.Context, subjects []trail.Subject, derive func(trail.Subject) error) error {
	for _, s := range subjects {
		before, news := *d, d.news
		before.locked, before.held = maps.Clone(d.locked), maps.Clone(d.held) // what is locked for it is not any more
		err := guard(ctx, deriveWithin, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, before.tx, func(tx pgx.Tx) error {
				d.tx, d.careful = tx, false
				return derive(s)
			})
		})
		d.tx, d.careful = before.tx, true
		if err == nil {
			continue
		}
		if ctx.Err() != nil || !mayBeOfRecord(err) {
			return err
		}
		d.locked, d.held, d.news, d.firstFailed = before.locked, before.held, news, before.firstFailed
		if err := d.noteFailed(leaveOut(ctx, d.tx, d.cluster, nameOf(s), err)); err != nil {
			return err
		}
	}
	return nil
}

// noteFailed notes a subject that failed for the first time, to be reported once the transaction is committed.
func (d *derivation) noteFailed(f *DeriveFailure, err error) error {
	if f != nil && f.Failures == 1 {
		d.firstFailed = append(d.firstFailed, *f)
	}
	return err
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// mostReason bounds the reason that is kept, in bytes: a stack is long.
const mostReason = 4 << 10

// leaveOut notes that a subject could not be derived and is left out for a while.
func leaveOut(ctx context.Context, in execer, cluster, subject string, cause error) (*DeriveFailure, error) {
	reason := trail.ClipText(strings.ToValidUTF8(clean(cause.Error()), ""), mostReason)
	f := &DeriveFailure{Cluster: cluster, Subject: subject, Reason: reason}
	args := pgx.StrictNamedArgs{"cluster": cluster, "subject": subject, "reason": reason}
	if err := in.QueryRow(ctx, failQuery, args).Scan(&f.Failures); err != nil {
		return nil, explain("note what cannot be derived", err)
	}
	_, err := in.Exec(ctx, leaveOutQuery, pgx.StrictNamedArgs{"cluster": cluster, "subject": subject})
	return f, explain("note what cannot be derived", err)
}

// reportFailed reports subjects that failed for the first time.
func (s *Store) reportFailed(failed ...DeriveFailure) {
	for _, f := range failed {
		if s.Underived != nil {
			s.Underived(f)
		}
	}
}

// retryFailed has what could not be derived derived again where its time has come.
func (s *Store) retryFailed(ctx context.Context, cluster string) error {
	_, err := s.pool.Exec(ctx, retryFailedQuery, pgx.StrictNamedArgs{"cluster": cluster, "vms": everything, "around": onceVMsDone})
	return explain("look for what could not be derived", err)
}

// deriveWithin is how long deriving may take that fails otherwise for what is derived. It is far longer than anything takes.
const deriveWithin = 30 * time.Second

// isolated derives subjects by a function, together. Where that fails for what one of them is, it has the function be careful: derive each by itself and leave out
// which fails. What fails even so is tried in halves, and what fails alone, while the database takes what others write, is left out. Errors are those of a database
// that is away, and ErrDeposed.
func isolated[S any](ctx context.Context, s *Store, cluster string, subjects []S, name func(S) string, derive func(ctx context.Context, some []S, careful bool) error) error {
	var err error
	for _, careful := range []bool{false, true} {
		err = guard(ctx, deriveWithin, func(ctx context.Context) error { return derive(ctx, subjects, careful) })
		if err == nil || ctx.Err() != nil || !mayBeOfRecord(err) {
			return err
		}
	}
	if half := len(subjects) / 2; half > 0 {
		return cmp.Or(isolated(ctx, s, cluster, subjects[:half], name, derive), isolated(ctx, s, cluster, subjects[half:], name, derive))
	}
	if probed := s.probe(ctx, cluster); probed != nil {
		return errors.Join(err, probed)
	}
	f, leaveErr := leaveOut(ctx, s.pool, cluster, name(subjects[0]), err)
	if leaveErr != nil {
		return errors.Join(err, leaveErr)
	}
	if f.Failures == 1 {
		s.reportFailed(*f)
	}
	return nil
}

// guard runs what derives within a time of its own. A panic is an error.
func guard(ctx context.Context, within time.Duration, derive func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer func() { err = cmp.Or(err, panicked(recover())) }()
	return derive(ctx)
}

func nameOf(s trail.Subject) string { return clean(s.String()) }

func sameName(s string) string { return s }
