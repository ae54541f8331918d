package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// toolHolder holds the term of a tool that a user runs, such as an import. A leader that runs beside it begins the next term as soon as there is something to derive,
// and derives what the tool left.
const toolHolder = "(a tool)"

// A tool is taken for the same program as the leader.
const leadByHandQuery = `
INSERT INTO evictrail.leaders AS l (cluster, term, holder, since)
VALUES (@cluster, 1, @holder, now())
ON CONFLICT (cluster) DO UPDATE SET
    term = l.term + 1, holder = excluded.holder, since = excluded.since,
    program_term = CASE WHEN l.program_term = l.term THEN l.term + 1 ELSE l.program_term END
RETURNING term`

// Append records facts of one cluster and derives what they mean. It returns the facts that were new, in the order given, and how rows changed, also with an
// error: of what was committed before it. See the package comment for its errors.
func (s *Store) Append(ctx context.Context, cluster string, facts []trail.Fact) (trail.News, error) {
	recorded, err := s.recordFacts(ctx, cluster, facts, nil)
	if err != nil {
		return trail.News{}, err
	}
	news := recorded.buildNews()
	s.ensureToolDeriver(cluster).addRecording(recorded)
	_, derived, err := s.deriveByHand(ctx, cluster, lastSeen(recorded.facts), nil)
	news.Add(derived)
	return news, err
}

// DeriveStale derives what Import left or what new rules change. Where a leader runs, it waits until that has done so. It returns how many subjects that were;
// done, which may be nil, is called with how many there were so far.
func (s *Store) DeriveStale(ctx context.Context, cluster string, done func(subjects int)) (int, error) {
	n, _, err := s.deriveByHand(ctx, cluster, time.Time{}, done)
	return n, err
}

// DeriveDue derives what time alone has changed up to a moment: loops that open after a while, cooldowns that run out. It returns how many subjects that were, and
// what it brought.
func (s *Store) DeriveDue(ctx context.Context, cluster string, now time.Time) (int, trail.News, error) {
	return s.deriveByHand(ctx, cluster, now, nil)
}

// Rederive derives everything of a cluster again from its facts, and returns how many subjects that were.
func (s *Store) Rederive(ctx context.Context, cluster string) (int, error) {
	err := s.DB.InTx(ctx, "note what is to be derived", func(tx pgx.Tx) error { return deriveAgain(ctx, tx, cluster) })
	if err != nil {
		return 0, err
	}
	return s.DeriveStale(ctx, cluster, nil)
}

// ensureToolDeriver returns the deriver of a cluster for tools of this process: what it holds in memory is good as long as nobody begins another term.
func (s *Store) ensureToolDeriver(cluster string) *deriver {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools[cluster] == nil {
		s.tools[cluster] = s.newDeriver(cluster, 0)
	}
	return s.tools[cluster]
}

// deriveByHand derives all that waits, as of a time or of when the cluster was last seen, in a term of its own. Where a leader ends that, it waits until that has
// derived the rest.
func (s *Store) deriveByHand(ctx context.Context, cluster string, now time.Time, done func(subjects int)) (count int, news trail.News, err error) {
	d := s.ensureToolDeriver(cluster)
	d.using.Lock()
	defer d.using.Unlock()
	d.asOf(now)
	for {
		if d.term == 0 {
			if err := s.leadByHand(ctx, d); err != nil {
				return count, news, err
			}
		}
		n, brought, err := catchUp(ctx, d.deriveNextBatch, func(n int) {
			if done != nil {
				done(count + n)
			}
		})
		news.Add(brought)
		if count += n; !errors.Is(err, pg.ErrDeposed) {
			return count, news, err
		}
		d.term = 0
		var by *deposedError
		if errors.As(err, &by) && by.latest == 0 { // nobody derives: the database is another one, or was emptied
			d.resetAll()
			continue
		}
		if derived, err := s.awaitLeader(ctx, cluster); err != nil || derived {
			return count, news, err
		}
	}
}

// leadByHand begins a term of a tool.
func (s *Store) leadByHand(ctx context.Context, d *deriver) error {
	d.resetFold()
	return s.DB.InTx(ctx, "begin a term", func(tx pgx.Tx) error {
		if err := checkWhole(ctx, tx, d.cluster); err != nil {
			return err
		}
		return tx.QueryRow(ctx, leadByHandQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "holder": toolHolder}).Scan(&d.term)
	})
}

// leaderStill is for how long a leader derives nothing that is gone; tests have leaders that derive when they are asked to.
var leaderStill = 10 * time.Second

const dirtyCountQuery = `
SELECT count(*)
FROM evictrail.subjects
WHERE cluster = @cluster
  AND dirty_since IS NOT NULL`

// awaitLeader waits until a leader has derived all that was dirty; it returns false where that derives nothing any more.
func (s *Store) awaitLeader(ctx context.Context, cluster string) (derived bool, err error) {
	before, since := -1, time.Now()
	for {
		var left int
		if err := s.DB.QueryRow(ctx, dirtyCountQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&left); err != nil {
			return false, pg.Explain("read what is to be derived", err)
		}
		switch {
		case left == 0:
			return true, nil
		case left != before:
			before, since = left, time.Now()
		case time.Since(since) > leaderStill:
			return false, nil
		}
		select {
		case <-time.After(tickEvery):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
