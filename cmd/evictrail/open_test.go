package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// requireOpenUntil compares until when the rows of a database are open, as the program wrote it, with what the schema migration that brought the column says of
// the same rows.
func requireOpenUntil(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tx, err := conn.Begin(t.Context()) // never committed
	require.NoError(t, err)
	texts := func(sql string) []string {
		rows, err := tx.Query(t.Context(), sql)
		require.NoError(t, err)
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return out
	}
	tables := texts("SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'evictrail' AND column_name = 'open_until' ORDER BY 1")
	require.Len(t, tables, 12)
	all := func() map[string][]string {
		out := map[string][]string{}
		for _, table := range tables {
			out[table] = texts("SELECT to_jsonb(t)::text FROM evictrail." + table + " AS t ORDER BY 1")
		}
		return out
	}
	written := all()
	for _, table := range tables {
		_, err := tx.Exec(t.Context(), "UPDATE evictrail."+table+" SET open_until = 'infinity'")
		require.NoError(t, err)
	}
	_, err = tx.Exec(t.Context(), "SELECT evictrail.fill_open_until()")
	require.NoError(t, err)
	require.Equal(t, written, all())
}
