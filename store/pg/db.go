package pg

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

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

// Planned is an option of a query that has it planned for the values that it is asked with, where these differ much in
// how many rows they leave.
const Planned = pgx.QueryExecModeCacheDescribe

// Queryer is what a query is run with: a *DB or a transaction.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
