package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const (
	derivedByQuery = `
SELECT holder = @tool AND program IS NULL OR coalesce(program = @program AND program_term = term, false)
FROM evictrail.leaders
WHERE cluster = @cluster
FOR UPDATE`
	leadQuery = `
INSERT INTO evictrail.leaders AS l (cluster, term, holder, since, program, program_term)
VALUES (@cluster, 1, @holder, now(), @program, 1)
ON CONFLICT (cluster) DO UPDATE SET
    term = l.term + 1, holder = excluded.holder, since = excluded.since, program = excluded.program, program_term = l.term + 1
RETURNING term`
)

// beginTerm begins the next term of a cluster. It waits for the transactions in which the one before derives, and ends that term. Where that was another
// program, everything is to be derived again: its rules may be others.
func (s *Store) beginTerm(ctx context.Context, cluster, holder, program string) (term int64, err error) {
	err = s.DB.InTx(ctx, "begin a term", func(tx pgx.Tx) error {
		stop, err := s.endBlockers(ctx, tx)
		if err != nil {
			return err
		}
		defer stop()
		if err := checkWhole(ctx, tx, cluster); err != nil {
			return err
		}
		same := true
		err = tx.QueryRow(ctx, derivedByQuery, pgx.StrictNamedArgs{"cluster": cluster, "program": program, "tool": toolHolder}).Scan(&same)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) { // nobody has derived it yet
			return err
		}
		if !same {
			if err := deriveAgain(ctx, tx, cluster); err != nil {
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
				_, _ = s.DB.Exec(ctx, endBlockersQuery, pgx.StrictNamedArgs{"waiting": waiting}) // else it goes on waiting
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop, nil
}

const termQuery = `
SELECT term, holder
FROM evictrail.leaders
WHERE cluster = @cluster
FOR SHARE`

// deposedError is ErrDeposed with who derives by now.
type deposedError struct {
	holder       string
	latest, ours int64
}

// Error implements error.
func (e *deposedError) Error() string {
	return fmt.Sprintf("%v: %s, since term %d; ours was %d", pg.ErrDeposed, e.holder, e.latest, e.ours)
}

// Is reports that it is ErrDeposed.
func (e *deposedError) Is(err error) bool { return err == pg.ErrDeposed }

// queueTermFence makes sure for the length of a transaction that a term is the latest.
func queueTermFence(batch *pgx.Batch, cluster string, term int64) {
	batch.Queue(termQuery, pgx.StrictNamedArgs{"cluster": cluster}).QueryRow(func(row pgx.Row) error {
		var latest int64
		var holder string
		if err := row.Scan(&latest, &holder); errors.Is(err, pgx.ErrNoRows) { // the database is another one, or was emptied
			holder = "nobody"
		} else if err != nil {
			return pg.Explain("read whose term it is", err)
		}
		if latest != term {
			return &deposedError{holder, latest, term}
		}
		return nil
	})
}

// Lead begins a term in which this replica derives, as this version of the program does and by these thresholds of loops. It ends with Follow, or when another replica begins
// one: then what would derive returns ErrDeposed once.
func (c *ClusterStore) Lead(ctx context.Context, program string, thresholds trail.Thresholds) error {
	term, err := c.store.beginTerm(ctx, c.cluster, c.replica, program)
	if err != nil {
		return err
	}
	if err := c.store.Judge(ctx, c.cluster, thresholds); err != nil {
		return err
	}
	c.program = program
	c.deriver.Store(c.store.newDeriver(c.cluster, term))
	return nil
}

// Follow ends the term: this replica records facts and leaves what they mean to the leader.
func (c *ClusterStore) Follow() { c.deriver.Store(nil) }

// Leads reports whether this replica derives, as far as it knows.
func (c *ClusterStore) Leads() bool { return c.deriver.Load() != nil }

// WindowMemory returns how many bytes of history this replica holds in memory to derive, about; 0 where another one derives.
func (c *ClusterStore) WindowMemory() int64 {
	if d := c.deriver.Load(); d != nil {
		return d.held.Load()
	}
	return 0
}

// CatchUp derives all that waits: what was recorded, and what followers, imports, older versions and other thresholds left. Only the leader does: the others get
// ErrDeposed. It returns how many subjects that were, and what it brought; done, which may be nil, is called with how many there were so far.
func (c *ClusterStore) CatchUp(ctx context.Context, done func(subjects int)) (int, trail.News, error) {
	return catchUp(ctx, c.deriveInTerm, done)
}

// CatchUpTo is CatchUp as of a time, where that is later than when the cluster was last seen.
func (c *ClusterStore) CatchUpTo(ctx context.Context, at time.Time) (trail.News, error) {
	if d := c.deriver.Load(); d != nil {
		d.mu.Lock()
		d.advanceNow(at)
		d.mu.Unlock()
	}
	_, news, err := c.CatchUp(ctx, nil)
	return news, err
}

// catchUp takes ticks until nothing is left.
func catchUp(ctx context.Context, tick func(context.Context) (int, trail.News, bool, error), done func(subjects int)) (count int, news trail.News, err error) {
	for {
		n, brought, more, err := tick(ctx)
		news.Add(brought)
		if count += n; err != nil || n == 0 && !more {
			return count, news, err
		}
		if done != nil {
			done(count)
		}
	}
}

// How long a leader rests that has derived all there was: what comes within that time is derived together. Where nothing comes it asks the database less and less
// often, as hundreds of clusters may share one. What this process records ends a longer rest at once (Rest); what another replica recorded first waits for its end.
const (
	tickEvery   = 100 * time.Millisecond
	idleLongest = time.Second
)

// KeepUp derives a portion of what waits, for who calls it again and again, each time after a Rest as long as this returns.
func (c *ClusterStore) KeepUp(ctx context.Context) (news trail.News, rest time.Duration, err error) {
	d := c.deriver.Load()
	count, news, more, err := c.deriveInTerm(ctx)
	if d == nil || err != nil { // what failed is not tried at once again because facts come
		return news, tickEvery, err
	}
	return news, d.restAfter(count, more), nil
}

// Rest waits after a KeepUp. A rest of over 0.1 s ends once facts are recorded here. Errors: that of ctx.
func (c *ClusterStore) Rest(ctx context.Context, rest time.Duration) error {
	var woken chan struct{}
	if d := c.deriver.Load(); d != nil && rest > tickEvery {
		woken = d.woken
	}
	select {
	case <-woken:
	case <-time.After(rest):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// deriveInTerm is deriver.tick in the term of this replica. A tool that derived during that time ended it: then it begins another.
func (c *ClusterStore) deriveInTerm(ctx context.Context) (count int, news trail.News, more bool, err error) {
	d := c.deriver.Load()
	if d == nil {
		return 0, news, false, pg.ErrDeposed
	}
	count, news, more, err = d.deriveNextBatch(ctx)
	var by *deposedError
	switch {
	case errors.As(err, &by) && by.holder == toolHolder:
		term, err := c.store.beginTerm(ctx, c.cluster, c.replica, c.program)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.term == by.ours && err == nil {
			d.term = term
		}
		return 0, news, true, err
	case errors.Is(err, pg.ErrDeposed):
		c.deriver.CompareAndSwap(d, nil)
	}
	return count, news, more, err
}
