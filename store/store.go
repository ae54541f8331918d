package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/trail"
)

// Store is one database, and reads all of it. It is safe for concurrent use.
type Store struct {
	Reader
	// Retried is told of each transaction that is done again, and the error for which; nil tells nobody. It is set before anything is written.
	Retried func(error)
	// Underived is called for each subject that cannot be derived, when that fails for the first time; nil calls nobody. It is set before anything is written.
	Underived func(DeriveFailure)

	grown  atomic.Int64 // facts since rows were counted
	mu     sync.Mutex
	tools  map[string]*deriver // by cluster, see deriveByHand
	months map[time.Time]bool  // whether a partition that was asked for exists, or could not help; false: we may not make it. By the first instant of the month
}

// Open connects to a database. url is a PostgreSQL URL or keyword string; a password comes from a pgpass file or
// passwordFile (its first line), never from the command line. That file, and those that the URL names, are read again for each connection.
func Open(ctx context.Context, url, passwordFile string) (*Store, error) {
	s, err := OpenLater(ctx, url, passwordFile)
	if err != nil {
		return nil, err
	}
	if err := s.pool.Ping(ctx); err != nil {
		s.Close()
		return nil, explain("open database", err)
	}
	return s, nil
}

// OpenLater is Open for a database that need not be there yet: nothing is asked of it.
func OpenLater(ctx context.Context, url, passwordFile string) (*Store, error) {
	l := &link{url: url, passwordFile: passwordFile}
	config, err := l.config()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, explain("open database", err)
	}
	return &Store{Reader: Reader{pool: pool, scope: trail.Everything(), own: &ownSigns{}}, months: map[time.Time]bool{}, tools: map[string]*deriver{}}, nil
}

// OverlaySigns has readers replace what the recorder of this process reported last by what it knows now, which is newer and does not depend
// on a database that takes writes.
func (s *Store) OverlaySigns(overlay Overlay) { s.own.overlay.Store(&overlay) }

// Close gives back the connections.
func (s *Store) Close() { s.pool.Close() }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return explain("reach database", s.pool.Ping(ctx)) }

// attempts bounds how often a transaction is done again before its error is the caller's; between two it waits up to
// retryWait, times their number, so that two that met do not meet again.
const (
	attempts  = 10
	retryWait = 20 * time.Millisecond
)

// writing begins a transaction of a writer: as those of readers its statements read few rows, though Postgres may guess otherwise. A writer that stands still in the
// middle of it, such as one that was stopped, must not hold up the others.
const writing = `BEGIN;
SET LOCAL idle_in_transaction_session_timeout = '5s';
SET LOCAL plan_cache_mode = force_generic_plan;
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0`

// inTx runs a function in one transaction, again where Postgres asks for that.
func (s *Store) inTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	var err error
	for i := 1; ; i++ {
		err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: writing}, run)
		if i == attempts || !retryable(err) {
			break
		}
		if s.Retried != nil {
			s.Retried(err)
		}
		select {
		case <-time.After(rand.N(time.Duration(i) * retryWait)):
		case <-ctx.Done():
		}
	}
	if errors.Is(err, trail.ErrRefused) || errors.Is(err, ErrSchema) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrDeposed) {
		return err
	}
	return explain(doing, err)
}

const aliveQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at)
VALUES (@cluster, @at)
ON CONFLICT (cluster) DO UPDATE SET alive_at = greatest(clusters.alive_at, excluded.alive_at)`

// appendedQuery is aliveQuery with the time of the newest event.
const appendedQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, last_event_at)
VALUES (@cluster, @at, @event)
ON CONFLICT (cluster) DO UPDATE SET
    alive_at = greatest(clusters.alive_at, excluded.alive_at),
    last_event_at = greatest(clusters.last_event_at, excluded.last_event_at)`

// Alive notes that everything that a cluster's collector saw until at is stored.
func (s *Store) Alive(ctx context.Context, cluster string, at time.Time) error {
	_, err := s.pool.Exec(ctx, aliveQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": at})
	return explain("note that we are alive", err)
}

// LastAlive gives the time of the last Alive or Append of a cluster; zero where there was none.
func (s *Reader) LastAlive(ctx context.Context, cluster string) (time.Time, error) {
	const query = `
SELECT alive_at
FROM evictrail.clusters
WHERE cluster = @cluster`
	var at time.Time
	err := s.pool.QueryRow(ctx, query, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) || at.Unix() == 0 { // only its thresholds are known
		return time.Time{}, nil
	}
	return at.UTC(), explain("read when we were last alive", err)
}

const clustersQuery = `
SELECT cluster
FROM evictrail.clusters
ORDER BY cluster`

// Clusters names the clusters that are recorded, sorted.
func (s *Reader) Clusters(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, clustersQuery)
	if err != nil {
		return nil, explain("list clusters", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, explain("list clusters", err)
}
