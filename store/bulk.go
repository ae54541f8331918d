package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const markStaleQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, stale_since)
SELECT @cluster, n.subject, '-infinity', n.since
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET stale_since = least(s.stale_since, excluded.stale_since)`

const knowClusterQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at)
VALUES (@cluster, to_timestamp(0))
ON CONFLICT DO NOTHING`

// Import stores facts of one cluster without deriving their subjects, and tells how many were new: DeriveStale does the
// rest, however the caller ends. It is for facts in bulk whose time never depends on who saw them and when, such as
// those of audit events: only then the same fact meets its own row. See the package comment for its errors.
func (s *Store) Import(ctx context.Context, cluster string, facts []trail.Fact) (int, error) {
	if err := s.ensureFor(ctx, facts); err != nil {
		return 0, err
	}
	added := 0
	err := s.inTx(ctx, "import facts", func(tx pgx.Tx) error {
		fresh, err := insertFacts(ctx, tx, cluster, facts)
		if err != nil {
			return err
		}
		added = len(fresh)
		if _, err := tx.Exec(ctx, knowClusterQuery, pgx.StrictNamedArgs{"cluster": cluster}); err != nil {
			return explain("note the cluster", err)
		}
		since := map[string]time.Time{}
		for _, f := range fresh {
			if at, known := since[f.Subject]; !known || f.OccurredAt.Before(at) {
				since[f.Subject] = f.OccurredAt
			}
		}
		subjects, times := make([]string, 0, len(since)), make([]time.Time, 0, len(since))
		for subject, at := range since {
			subjects, times = append(subjects, subject), append(times, at)
		}
		_, err = tx.Exec(ctx, markStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": times})
		return explain("note what is to be derived", err)
	})
	return added, err
}

// What is derived in one transaction when there is much: so many subjects, of about so many facts.
const (
	deriveBatch = 100
	deriveFacts = 10_000
)

// sizedRow is a subject with how many facts it has.
type sizedRow struct {
	Subject string `db:"subject"`
	Facts   int    `db:"facts"`
}

const countFacts = `(SELECT count(*) FROM evictrail.events e WHERE e.cluster = s.cluster AND e.subject = s.subject) AS facts`

const staleSubjectsQuery = `
SELECT subject, ` + countFacts + `
FROM evictrail.subjects s
WHERE cluster = @cluster
  AND stale_since IS NOT NULL
ORDER BY subject
LIMIT @limit`

// everything is the time from which on a subject is stale that is to be derived whatever its facts are, with nothing
// around it: the others are, too.
var everything = time.Unix(0, 0).UTC()

// DeriveStale derives what Import left or what new rules change, a few subjects at a time, and tells how many it did.
// done, which may be nil, is told after each of these steps how many there were so far.
func (s *Store) DeriveStale(ctx context.Context, cluster string, done func(subjects int)) (int, error) {
	for count := 0; ; {
		subjects, err := s.stale(ctx, cluster)
		if err != nil || len(subjects) == 0 {
			return count, err
		}
		err = s.inTx(ctx, "derive", func(tx pgx.Tx) error {
			d, err := newDerivation(ctx, tx, cluster, time.Time{})
			if err != nil {
				return err
			}
			if err := d.hold(ctx, subjects); err != nil {
				return err
			}
			return d.refresh(ctx, subjects)
		})
		if err != nil {
			return count, err
		}
		if count += len(subjects); done != nil {
			done(count)
		}
	}
}

// stale gives the next subjects that are to be derived, none when all are.
func (s *Store) stale(ctx context.Context, cluster string) ([]trail.Subject, error) {
	rows, err := s.pool.Query(ctx, staleSubjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "limit": deriveBatch})
	if err != nil {
		return nil, explain("read what is to be derived", err)
	}
	sized, err := pgx.CollectRows(rows, pgx.RowToStructByName[sizedRow])
	if err != nil {
		return nil, explain("read what is to be derived", err)
	}
	return upTo(deriveFacts, sized)
}

const makeStaleQuery = `
UPDATE evictrail.subjects
SET stale_since = @since
WHERE cluster = @cluster`

// Rederive derives everything of a cluster anew from its facts, and tells how many subjects that were.
func (s *Store) Rederive(ctx context.Context, cluster string) (int, error) {
	_, err := s.pool.Exec(ctx, makeStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": everything})
	if err != nil {
		return 0, explain("note what is to be derived", err)
	}
	return s.DeriveStale(ctx, cluster, nil)
}

// upTo gives the first subjects that have about so many facts together; at least one.
func upTo(facts int, sized []sizedRow) ([]trail.Subject, error) {
	var out []trail.Subject
	for _, r := range sized {
		if facts -= r.Facts; facts < 0 && len(out) > 0 {
			break
		}
		s, err := trail.ParseSubject(r.Subject)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// staleRow is a subject that is to be derived.
type staleRow struct {
	Subject    string    `db:"subject"`
	StaleSince time.Time `db:"stale_since"`
}

const (
	staleSinceQuery = `
SELECT subject, stale_since
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND stale_since IS NOT NULL`
	freshQuery = `
UPDATE evictrail.subjects
SET stale_since = NULL
WHERE cluster = @cluster
  AND subject = ANY(@subjects)`
)

// refresh derives held subjects, and what their facts concern from the time on that they are stale since. A subject that
// another writer derived meanwhile is not stale any more, and is left alone.
func (d *derivation) refresh(ctx context.Context, subjects []trail.Subject) error {
	args := pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects)}
	rows, err := d.tx.Query(ctx, staleSinceQuery, args)
	if err != nil {
		return explain("read what is stale", err)
	}
	stale, err := pgx.CollectRows(rows, pgx.RowToStructByName[staleRow])
	if err != nil {
		return explain("read what is stale", err)
	}
	since := map[string]time.Time{}
	for _, r := range stale {
		since[r.Subject] = r.StaleSince
	}
	var fresh []trail.Fact
	var anew []trail.Subject
	for _, s := range subjects {
		from, stale := since[clean(s.String())]
		if stale && from.Equal(everything) {
			anew = append(anew, s)
			continue
		}
		for _, f := range d.facts[s] {
			if stale && !f.OccurredAt.Before(from) {
				fresh = append(fresh, f)
			}
		}
	}
	if err := d.derive(ctx, fresh); err != nil {
		return err
	}
	if err := d.replace(ctx, anew, true); err != nil {
		return err
	}
	_, err = d.tx.Exec(ctx, freshQuery, args)
	return explain("note what is derived", err)
}
