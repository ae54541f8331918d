package pg

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/trail"
)

// attempts bounds how often a transaction is done again before its error is the caller's; between two it waits up to
// retryWait, times their number, so that two that met do not meet again.
const (
	attempts  = 10
	retryWait = 20 * time.Millisecond
)

// writing is what holds in a transaction of a writer: as those of readers its statements read few rows, though Postgres may guess otherwise. A writer that
// stands still in the middle of it, such as one that was stopped, must not hold up the others.
const writing = `
SELECT
  set_config('idle_in_transaction_session_timeout', '5s', true),
  set_config('jit', 'off', true),
  set_config('max_parallel_workers_per_gather', '0', true),
  `

// InTx runs a function in one transaction, again where Postgres asks for that: what the function notes outside of the
// transaction it has to begin with again. The error is explained (Explain), as what was being done.
func (db *DB) InTx(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return db.tryAgain(ctx, doing, func() error {
		begin := "BEGIN;" + writing + db.PlanOnce(ctx, db.Pool)
		return pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: begin}, run)
	})
}

// tryAgain runs a function again as long as Postgres asks for that, and explains its error.
func (db *DB) tryAgain(ctx context.Context, doing string, run func() error) error {
	var err error
	for i := 1; ; i++ {
		err = run()
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

// Sender sends statements together, which are read by the functions of their queries: a transaction does, or a *Batches.
type Sender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Batches is a transaction that is sent in batches: it begins with the first of them and, where that is SendLast, is committed with the last. A trip
// to the database takes longer than most statements of a writer. One goroutine uses it.
type Batches struct {
	conn             *pgxpool.Conn
	begin            pgx.Batch
	begun, committed bool
}

// InBatches is InTx for a transaction that is sent in batches.
func (db *DB) InBatches(ctx context.Context, doing string, run func(*Batches) error) error {
	return db.tryAgain(ctx, doing, func() error {
		setting := writing + db.PlanOnce(ctx, db.Pool)
		return db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			b := &Batches{conn: conn}
			b.begin.Queue("BEGIN")
			b.begin.Queue(setting)
			err := run(b)
			switch {
			case !b.begun || b.committed:
				return err
			case err == nil:
				_, err = conn.Exec(ctx, "COMMIT")
			default:
				_, _ = conn.Exec(ctx, "ROLLBACK") // without it the connection is closed, which does the same
			}
			return err
		})
	})
}

// SendBatch implements Sender.
func (b *Batches) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if b.begun {
		return b.conn.SendBatch(ctx, batch)
	}
	b.begun = true
	b.begin.QueuedQueries = append(b.begin.QueuedQueries, batch.QueuedQueries...)
	return b.conn.SendBatch(ctx, &b.begin)
}

// SendLast sends a batch, and commits where no statement of it fails: its functions cannot prevent that any more.
func (b *Batches) SendLast(ctx context.Context, batch *pgx.Batch) error {
	last := pgx.Batch{QueuedQueries: append([]*pgx.QueuedQuery{}, batch.QueuedQueries...)}
	last.Queue("COMMIT")
	err := b.SendBatch(ctx, &last).Close()
	b.committed = err == nil
	return err
}
