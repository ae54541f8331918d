package storetest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
)

// OpenFailing opens a database of which a statement fails before it is sent where fail says so. Of statements that are sent together fail is asked about the first.
// Anyone who calls it closes the store.
func OpenFailing(ctx context.Context, url string, fail func(sql string) bool) (*store.Store, error) {
	db, err := pg.Connect(ctx, url, "", failing(fail))
	return store.New(db), err
}

type failing func(sql string) bool

func (f failing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return f.cancelIfFailing(ctx, q.SQL)
}
func (f failing) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (f failing) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	return f.cancelIfFailing(ctx, b.Batch.QueuedQueries[0].SQL)
}
func (f failing) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (f failing) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (f failing) cancelIfFailing(ctx context.Context, sql string) context.Context {
	if f(sql) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return ended
	}
	return ctx
}
