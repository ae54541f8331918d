package store

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const dueQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND next_at <= @now
ORDER BY subject
LIMIT @limit`

// DeriveDue derives again what time alone has changed up to a moment: loops that open after a while, cooldowns that run
// out. It tells how many subjects that were, and what it brought.
func (s *Store) DeriveDue(ctx context.Context, cluster string, now time.Time) (int, trail.News, error) {
	return s.deriveDue(ctx, cluster, now, 0, math.MaxInt)
}

// dueAtOnce bounds what is derived each time that a cluster is noted as alive: facts wait meanwhile.
const dueAtOnce = 1000

// deriveDue is DeriveDue in a term, for about so many subjects.
func (s *Store) deriveDue(ctx context.Context, cluster string, now time.Time, term int64, most int) (int, trail.News, error) {
	count := 0
	var news trail.News
	for count < most {
		rows, err := s.pool.Query(ctx, dueQuery, pgx.StrictNamedArgs{"cluster": cluster, "now": now, "limit": deriveBatch})
		if err != nil {
			return count, news, explain("read what is due", err)
		}
		subjects, err := collectSubjects(rows)
		if err != nil || len(subjects) == 0 {
			return count, news, err
		}
		var split [][]trail.Subject
		err = s.inTx(ctx, "count facts", func(tx pgx.Tx) (err error) {
			split, err = portions(ctx, tx, cluster, sameSince(subjects, now))
			return err
		})
		if err != nil {
			return count, news, err
		}
		for _, some := range split {
			err := isolated(ctx, s, cluster, some, nameOf, func(ctx context.Context, some []trail.Subject, careful bool) error {
				more, err := s.deriveAgain(ctx, cluster, some, now, term, careful)
				news.Add(more)
				return err
			})
			if err != nil {
				return count, news, err
			}
			count += len(some)
		}
	}
	return count, news, nil
}

// deriveAgain derives subjects as they stand at a time.
func (s *Store) deriveAgain(ctx context.Context, cluster string, subjects []trail.Subject, now time.Time, term int64, careful bool) (news trail.News, err error) {
	var failed []DeriveFailure
	err = s.inTx(ctx, "derive", func(tx pgx.Tx) error {
		d, err := newDerivation(ctx, tx, cluster, now, term)
		if err != nil {
			return err
		}
		d.careful = careful
		due := sameSince(subjects, d.now)
		for _, some := range []since{due.of(onlyVMs(subjects)), due} {
			if err := d.hold(ctx, some); err != nil {
				return err
			}
		}
		if err := d.replace(ctx, due); err != nil {
			return err
		}
		news, failed = d.news, d.firstFailed
		return nil
	})
	if err != nil {
		return trail.News{}, err
	}
	s.reportFailed(failed...)
	return news, nil
}
