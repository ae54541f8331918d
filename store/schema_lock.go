package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
)

// schemaLock lets one program at a time migrate the schema. It holds goose's advisory lock, but in a transaction on a connection of its own:
// behind a pooler in transaction mode the lock of a session would stay with a backend that nobody can name, and with it every later migration
// would wait. Older programs, which lock the session, and this one keep each other out.
type schemaLock struct {
	store *Store
	conn  *pgx.Conn // that holds the lock; nil: it is not held
}

var _ lock.SessionLocker = (*schemaLock)(nil)

// A migration of a large database may take minutes, and no timeout of the server may end the transaction that waits for it.
const (
	lockSchemaBegin = `BEGIN;
SET LOCAL lock_timeout = '5min';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0`
	lockSchemaQuery = `SELECT pg_advisory_xact_lock(@id)`
)

// SessionLock implements lock.SessionLocker.
func (l *schemaLock) SessionLock(ctx context.Context, _ *sql.Conn) error {
	conn, err := l.store.connectAside(ctx)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, lockSchemaBegin)
	if err == nil {
		_, err = conn.Exec(ctx, lockSchemaQuery, pgx.StrictNamedArgs{"id": lock.DefaultLockID})
	}
	if err != nil {
		closeAside(conn)
		return err
	}
	l.conn = conn
	return nil
}

// SessionUnlock implements lock.SessionLocker.
func (l *schemaLock) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	if l.conn == nil {
		return errors.New("the schema is not locked")
	}
	defer func() { closeAside(l.conn); l.conn = nil }()
	_, err := l.conn.Exec(ctx, "COMMIT")
	return err
}
