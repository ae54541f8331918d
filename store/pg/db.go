package pg

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/trail"
)

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
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0;
`

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	*pgxpool.Pool
	// Retried is called for each transaction that is done again, with the error for which; nil calls nobody. It is set
	// before anything is written.
	Retried func(error)

	onCitus atomic.Pointer[bool] // nil: not asked yet
}

// Connect returns the connections to a database, which need not be there yet: nothing is asked of it. The url is a
// PostgreSQL URL or keyword string. A password comes from a pgpass file or from the first line of passwordFile, never
// from the command line. That file, and those that the URL names, are read again for each connection. The tracer, which
// may be nil, sees each statement.
func Connect(ctx context.Context, url, passwordFile string, tracer pgx.QueryTracer) (*DB, error) {
	return openPool(ctx, &link{url: url, passwordFile: passwordFile}, tracer)
}

// ConnectAccepted is Connect to those servers alone that accept returns no error for: a URL may lead to several, by its hosts
// or what its name stands for. It is called for each new connection.
func ConnectAccepted(ctx context.Context, url, passwordFile string, accept func(context.Context, *pgconn.PgConn) error) (*DB, error) {
	return openPool(ctx, &link{url: url, passwordFile: passwordFile, accept: accept}, nil)
}

func openPool(ctx context.Context, l *link, tracer pgx.QueryTracer) (*DB, error) {
	config, err := l.newPoolConfig()
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &DB{Pool: pool}, Explain("open database", err)
}

// Ping returns an error where the database does not answer.
func (db *DB) Ping(ctx context.Context) error { return Explain("reach database", db.Pool.Ping(ctx)) }

// InTx runs a function in one transaction, again where Postgres asks for that: what the function notes outside of the
// transaction it has to begin with again. The error is explained (Explain), as what was being done.
func (db *DB) InTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	var err error
	for i := 1; ; i++ {
		err = pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: writing + db.PlanOnce(ctx, db.Pool)}, run)
		if i == attempts || !isRetryable(err) {
			break
		}
		if db.Retried != nil {
			db.Retried(err)
		}
		select {
		case <-time.After(rand.N(time.Duration(i) * retryWait)):
		case <-ctx.Done():
		}
	}
	if errors.Is(err, trail.ErrRefused) || errors.Is(err, ErrSchema) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrDeposed) {
		return err
	}
	return Explain(doing, err)
}

// Planned is an option of a query that has it planned for the values that it is asked with, where these differ much in
// how many rows they leave.
const Planned = pgx.QueryExecModeCacheDescribe

// Queryer is what a query is run with: a *DB or a transaction.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
