package read

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// readOnly begins a transaction for the questions of readers: all statements of it see one state of the database, and none takes
// longer than 5 s in the server, whatever becomes of its caller. It comes in one round trip. (A timeout that a connection is opened
// with would spare the two round trips of the transaction, but poolers refuse it; that of a context reaches the server only while we
// live.) The statements read few rows, though Postgres may guess otherwise: compiling one, or starting processes for it, takes longer
// than they do.
const readOnly = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = '5s';
SET LOCAL jit = off;
SET LOCAL max_parallel_workers_per_gather = 0`

// runReadOnly runs the statements of one question. trail.ErrNotFound and *trail.TooLargeError stay as they are.
func (s *Reader) runReadOnly(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.readAs(ctx, readOnly, doing, run)
}

// readFacts is read for questions that are answered of facts: none are dropped during that time.
func (s *Reader) readFacts(ctx context.Context, doing string, run func(pgx.Tx) error) error {
	return s.readAs(ctx, readOnly+";\n"+tables.DropNoFactsQuery, doing, run)
}

func (s *Reader) readAs(ctx context.Context, begin, doing string, run func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, s.db, pgx.TxOptions{BeginQuery: begin}, run)
	if _, tooLarge := errors.AsType[*trail.TooLargeError](err); tooLarge || errors.Is(err, trail.ErrNotFound) {
		return err
	}
	return pg.Explain(doing, err)
}
