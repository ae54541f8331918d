package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// ErrDeposed says that another replica derives the cluster by now: what it wrote stays.
var ErrDeposed = errors.New("another evictrail derives this cluster by now")

const (
	derivedByQuery = `
SELECT coalesce(program = @program AND program_term = term, false)
FROM evictrail.leaders
WHERE cluster = @cluster
FOR UPDATE`
	leadQuery = `
INSERT INTO evictrail.leaders AS l (cluster, term, holder, since, program, program_term)
VALUES (@cluster, 1, @holder, now(), @program, 1)
ON CONFLICT (cluster) DO UPDATE SET
    term = l.term + 1, holder = excluded.holder, since = excluded.since, program = excluded.program, program_term = l.term + 1
RETURNING term`
	// Rows of an older program do not say until when they are open. Most are derived again; those whose facts were dropped cannot be.
	fillOpenUntilQuery = `
SELECT evictrail.fill_open_until()
FROM evictrail.retention
WHERE facts_from IS NOT NULL`
)

// lead begins the next term of a cluster. It waits for the transactions in which the one before derives, and ends that term. Where that was another
// program, everything is to be derived anew: its rules may be others.
func (s *Store) lead(ctx context.Context, cluster, holder, program string) (term int64, err error) {
	err = s.inTx(ctx, "begin a term", func(tx pgx.Tx) error {
		stop, err := s.endBlockers(ctx, tx)
		if err != nil {
			return err
		}
		defer stop()
		same := true
		err = tx.QueryRow(ctx, derivedByQuery, pgx.StrictNamedArgs{"cluster": cluster, "program": program}).Scan(&same)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) { // nobody has derived it yet
			return err
		}
		if !same {
			if _, err := tx.Exec(ctx, fillOpenUntilQuery); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, makeStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": everything}); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, retryAllQuery, pgx.StrictNamedArgs{"cluster": cluster}); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, leadQuery, pgx.StrictNamedArgs{"cluster": cluster, "holder": holder, "program": program}).Scan(&term)
	})
	return term, err
}

// patience is how long a new leader waits for transactions of the one before, which are short.
const patience = 3 * time.Second

const endBlockersQuery = `
SELECT pg_terminate_backend(pid)
FROM unnest(pg_blocking_pids(@waiting)) AS pid`

// endBlockers ends the sessions that still hold up a transaction when patience is over, until stop is called. A leader that stands still
// while the database sends it rows keeps its locks for as long as it stands: for no timeout of the database is it idle, or late.
func (s *Store) endBlockers(ctx context.Context, tx pgx.Tx) (stop func(), err error) {
	var waiting int64
	if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&waiting); err != nil {
		return nil, err
	}
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-time.After(patience):
				_, _ = s.pool.Exec(ctx, endBlockersQuery, pgx.StrictNamedArgs{"waiting": waiting}) // else it goes on waiting
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop, nil
}

// A leader that stands still in the middle of a transaction, such as one that was stopped, must not hold up the next.
const (
	bindTermQuery = `SET LOCAL idle_in_transaction_session_timeout = '5s'`
	termQuery     = `
SELECT term, holder
FROM evictrail.leaders
WHERE cluster = @cluster
FOR SHARE`
)

// fence makes sure for the length of a transaction that a term is the latest. Term 0 is that of tools that somebody runs by hand: they
// derive whoever else does, one subject at a time.
func fence(batch *pgx.Batch, cluster string, term int64) {
	if term == 0 {
		return
	}
	batch.Queue(bindTermQuery)
	batch.Queue(termQuery, pgx.StrictNamedArgs{"cluster": cluster}).QueryRow(func(row pgx.Row) error {
		var latest int64
		var holder string
		if err := row.Scan(&latest, &holder); err != nil {
			return explain("read whose term it is", err)
		}
		if latest != term {
			return fmt.Errorf("%w: %s, since term %d; ours was %d", ErrDeposed, holder, latest, term)
		}
		return nil
	})
}

// Lead begins a term in which this replica derives, as this version of the program does and by these thresholds of loops. It ends with Follow, or when another replica begins
// one: then whatever would derive gives ErrDeposed once, and Append goes on as that of a follower.
func (c *ClusterStore) Lead(ctx context.Context, program string, thresholds trail.Thresholds) error {
	term, err := c.store.lead(ctx, c.cluster, c.replica, program)
	if err != nil {
		return err
	}
	if err := c.store.Judge(ctx, c.cluster, thresholds); err != nil {
		return err
	}
	c.term.Store(term)
	return nil
}

// Follow ends the term: this replica stores facts and leaves what they mean to the leader.
func (c *ClusterStore) Follow() { c.term.Store(0) }

// Leads tells whether this replica derives, as far as it knows.
func (c *ClusterStore) Leads() bool { return c.term.Load() != 0 }

// deposed ends a term where an error says that another has begun.
func (c *ClusterStore) deposed(term int64, err error) bool {
	if !errors.Is(err, ErrDeposed) {
		return false
	}
	c.term.CompareAndSwap(term, 0)
	return true
}

// CatchUp derives what followers, imports, older versions and other thresholds left. Only the leader does: the others get ErrDeposed.
// It tells how many subjects that were, and what it brought; done, which may be nil, is told how many there were so far.
func (c *ClusterStore) CatchUp(ctx context.Context, done func(subjects int)) (int, trail.News, error) {
	return c.catchUp(ctx, nil, done)
}

// KeepUp is CatchUp for who calls it again and again, each time when it has rested for as long as this tells: four times a second, for a quarter of the time at
// most. It takes its time, as facts that come wait for it.
func (c *ClusterStore) KeepUp(ctx context.Context) (news trail.News, rest time.Duration, err error) {
	pace := &pace{began: time.Now()}
	_, news, err = c.catchUp(ctx, pace, nil)
	return news, pace.owed(), err
}

func (c *ClusterStore) catchUp(ctx context.Context, pace *pace, done func(subjects int)) (int, trail.News, error) {
	term := c.term.Load()
	if term == 0 {
		return 0, trail.News{}, ErrDeposed
	}
	n, news, err := c.store.deriveStale(ctx, c.cluster, term, pace, done)
	c.deposed(term, err)
	return n, news, err
}

// What was left is derived four times a second, for a quarter of the time at most, as facts that come wait meanwhile; but it is never left for longer than a
// while.
const (
	catchUpEvery = 250 * time.Millisecond
	catchUpShare = 4
	catchUpMost  = 10 * time.Second
)

// pace is how who keeps up works and rests in turns. Nil is that of who does not rest.
type pace struct {
	began  time.Time
	rested time.Duration
}

// rest rests after a step that took so long, unless the whole takes too long already.
func (p *pace) rest(ctx context.Context, took time.Duration) {
	if p == nil || time.Since(p.began) > catchUpMost {
		return
	}
	began := time.Now()
	select {
	case <-time.After(min((catchUpShare-1)*took, catchUpMost)):
	case <-ctx.Done():
	}
	p.rested += time.Since(began)
}

// owed tells how long it is to rest in the end.
func (p *pace) owed() time.Duration {
	worked := time.Since(p.began) - p.rested
	return min(max(catchUpEvery, (catchUpShare-1)*worked-p.rested), catchUpMost)
}
