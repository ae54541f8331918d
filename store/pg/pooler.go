package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// PoolerMode is what the URL of a database behind a pooler in transaction mode needs: our statements are described once for a connection and
// never prepared by name, so each transaction may be served by another backend.
const PoolerMode = "default_query_exec_mode=cache_describe"

// ErrPooler says that the database is behind a connection pooler that assigns each transaction another backend, while the URL has statements
// prepared once for a connection.
var ErrPooler = errors.New("a connection pooler in transaction mode stands before the database")

const poolerAdvice = "add " + PoolerMode + " to the URL of the database, or let the pooler keep prepared statements (pgbouncer 1.21 or newer: max_prepared_statements)"

// checkMode refuses modes in which our statements do not work: those that do not ask Postgres for the types of their values, and the one that asks for
// them in one transaction and relies on the answer in the next.
func checkMode(mode pgx.QueryExecMode) error {
	if mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeCacheDescribe {
		return nil
	}
	return fmt.Errorf("open database: default_query_exec_mode=%s does not work here: leave it out or, behind a connection pooler in transaction mode, use %s", strings.ReplaceAll(mode.String(), " ", "_"), PoolerMode)
}

// poolerCheckTakes bounds CheckPooler: a pooler without a free backend lets its clients wait.
const poolerCheckTakes = 5 * time.Second

// CheckPooler reports whether a connection pooler stands before the database. The error is ErrPooler where the statements that we prepare do
// not outlive a transaction there; nothing can be relied on then, as they fail now and then.
func (db *DB) CheckPooler(ctx context.Context) (pooled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, poolerCheckTakes)
	defer cancel()
	first, err := db.ConnectAside(ctx)
	if err != nil {
		return false, Explain("look for a connection pooler", err)
	}
	defer closeAside(first)
	var backend uint32
	if err := first.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&backend); err != nil {
		return false, Explain("look for a connection pooler", err)
	}
	if backend == first.PgConn().PID() {
		return false, nil // what greeted us is what answers us
	}
	if first.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return true, nil
	}
	return true, Explain("look for a connection pooler", db.checkPrepared(ctx, first))
}

// checkPrepared prepares a statement on a connection and executes it while another one is in a transaction. A pooler in transaction mode has
// given that other one the backend that was used last, or any, so the statement is asked of a backend that does not know it.
func (db *DB) checkPrepared(ctx context.Context, first *pgx.Conn) error {
	const name, query = "evictrail_pooler_check", "SELECT 1"
	if _, err := first.Prepare(ctx, name, query); err != nil {
		return poolerError(err)
	}
	second, err := db.ConnectAside(ctx)
	if err != nil {
		return err
	}
	defer closeAside(second)
	if _, err := second.Exec(ctx, "BEGIN; SELECT 1"); err != nil {
		return err
	}
	_, err = first.Exec(ctx, name)
	return poolerError(err)
}

// poolerError is ErrPooler where an error says that a prepared statement is unknown, or known already.
func poolerError(err error) error {
	if code := codeOf(err); code == codeStatementUnknown || code == codeStatementKnown {
		return fmt.Errorf("%w: %s: %w", ErrPooler, poolerAdvice, err)
	}
	return err
}

// ConnectAside opens a connection that is none of the pool, so that it neither waits for one of these nor leaves anything behind in one.
func (db *DB) ConnectAside(ctx context.Context) (*pgx.Conn, error) {
	config := db.Config()
	if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// closeAside closes such a connection, also when the time for its question is over.
func closeAside(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // the server rolls back what was open
}
