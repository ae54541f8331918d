package read_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestReadIsBounded looks at the settings that the statements of readers run with, and that others run without them.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	show := func(tx pgx.Tx, setting string) (value string) {
		require.NoError(t, tx.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&value))
		return value
	}
	for range 10 { // connections are used again
		require.NoError(t, s.Read(t.Context(), func(tx pgx.Tx) error {
			require.Equal(t, "5s", show(tx, "statement_timeout"))
			require.Equal(t, "on", show(tx, "transaction_read_only"))
			require.Equal(t, "repeatable read", show(tx, "transaction_isolation"))
			return nil
		}))
		require.NoError(t, pgx.BeginFunc(t.Context(), s.DB, func(tx pgx.Tx) error {
			require.Equal(t, "0", show(tx, "statement_timeout"))
			return nil
		}))
	}
	err := s.Read(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SET LOCAL statement_timeout = 1; SELECT pg_sleep(60)")
		return err
	})
	require.ErrorIs(t, err, pg.ErrUnavailable)
	require.ErrorContains(t, err, "ask for less")
}
