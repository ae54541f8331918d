package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestBatches sends transactions in batches that end well, and in which a statement or what reads it fails: all or nothing is written.
func TestBatches(t *testing.T) {
	t.Parallel()
	db, err := pg.Connect(t.Context(), storetest.NewURL(t)+"&pool_max_conns=1", "", nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	_, err = db.Exec(t.Context(), "CREATE TABLE numbers (n integer PRIMARY KEY)")
	require.NoError(t, err)
	insert := func(numbers ...int) *pgx.Batch {
		var batch pgx.Batch
		for _, n := range numbers {
			batch.Queue("INSERT INTO numbers VALUES ($1)", n)
		}
		return &batch
	}
	errRefused := errors.New("refused")
	for _, c := range []struct {
		name string
		run  func(context.Context, *pg.Batches) error
		want []int
		err  string
	}{
		{"nothing", func(context.Context, *pg.Batches) error { return nil }, nil, ""},
		{"one", func(ctx context.Context, b *pg.Batches) error { return b.SendLast(ctx, insert(1, 2)) }, []int{1, 2}, ""},
		{"two", func(ctx context.Context, b *pg.Batches) error {
			if err := b.SendBatch(ctx, insert(1)).Close(); err != nil {
				return err
			}
			return b.SendLast(ctx, insert(2))
		}, []int{1, 2}, ""},
		{"none is the last", func(ctx context.Context, b *pg.Batches) error { return b.SendBatch(ctx, insert(1)).Close() }, []int{1}, ""},
		{"a statement fails", func(ctx context.Context, b *pg.Batches) error {
			if err := b.SendBatch(ctx, insert(1)).Close(); err != nil {
				return err
			}
			last := insert(2)
			last.Queue("SELECT 1 / n FROM (VALUES (0)) AS v(n)")
			return b.SendLast(ctx, last)
		}, nil, "division by zero"},
		{"an answer is refused", func(ctx context.Context, b *pg.Batches) error {
			first := insert(1)
			first.Queue("SELECT 1").QueryRow(func(pgx.Row) error { return errRefused })
			return b.SendBatch(ctx, first).Close()
		}, nil, "count numbers: refused"},
		{"an error follows", func(ctx context.Context, b *pg.Batches) error {
			return errors.Join(b.SendBatch(ctx, insert(1)).Close(), errRefused)
		}, nil, "refused"},
		{"a setting", func(ctx context.Context, b *pg.Batches) error {
			var batch pgx.Batch
			batch.Queue("INSERT INTO numbers SELECT 7 WHERE current_setting('idle_in_transaction_session_timeout') = '5s' AND current_setting('plan_cache_mode') = 'force_generic_plan'")
			return b.SendLast(ctx, &batch)
		}, []int{7}, ""},
	} {
		err := db.InBatches(t.Context(), "count numbers", func(b *pg.Batches) error { return c.run(t.Context(), b) })
		if c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.err, c.name)
		}
		rows, err := db.Query(t.Context(), "WITH gone AS (DELETE FROM numbers RETURNING n) SELECT n FROM gone ORDER BY n")
		require.NoError(t, err, c.name)
		got, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err, c.name)
		require.ElementsMatch(t, c.want, got, c.name)
		var timeout string
		require.NoError(t, db.QueryRow(t.Context(), "SELECT current_setting('idle_in_transaction_session_timeout')").Scan(&timeout))
		require.Equal(t, "0", timeout, "%s: what holds in a transaction ends with it", c.name)
	}
}
