package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 1)
	readOnly(t, s, "on")
	_, err := s.Append(t.Context(), "c1", facts)
	require.ErrorIs(t, err, pg.ErrUnavailable)
	require.ErrorContains(t, err, "read-only")
	readOnly(t, s, "off")
	require.Empty(t, storetest.Dump(t, s)["events"], "nothing half-written")
	news, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts), "the same call succeeds later")
}

// readOnly turns the whole database of a store read-only or back, for new connections.
func readOnly(t *testing.T, s *store.Store, value string) {
	t.Helper()
	var name string
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
	_, err := s.DB.Exec(t.Context(), "BEGIN READ WRITE; ALTER DATABASE "+name+" SET default_transaction_read_only = "+value+"; COMMIT")
	require.NoError(t, err)
	s.DB.Reset()
}

func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := store.Open(ctx, "postgres://u:secret@127.0.0.1:1/x", "")
	require.ErrorIs(t, err, pg.ErrUnavailable)
	require.NotContains(t, err.Error(), "secret")
	_, err = store.Open(ctx, "postgres://u:secret@[x", "")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

// TestRolesDoWhatTheyMay runs the SQL of Roles and then works as each role.
func TestRolesDoWhatTheyMay(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.MakeRoles(t, s)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 1))
	require.NoError(t, err)
	as := func(role, sql string) error {
		_, err := s.DB.Exec(t.Context(), "BEGIN; SET LOCAL ROLE "+role+"; "+sql+"; ROLLBACK")
		if err != nil {
			_, rollback := s.DB.Exec(t.Context(), "ROLLBACK")
			require.NoError(t, rollback)
		}
		return err
	}
	require.NoError(t, as("evictrail_reader", "SELECT * FROM evictrail_v1.migration_phases"))
	require.ErrorContains(t, as("evictrail_reader", "SELECT * FROM evictrail.events"), "permission denied")
	require.ErrorContains(t, as("evictrail_writer", "UPDATE evictrail.events SET reason = 'x'"), "permission denied")
	require.ErrorContains(t, as("evictrail_writer", "DELETE FROM evictrail.events"), "permission denied")
	require.NoError(t, as("evictrail_writer", "DELETE FROM evictrail.migrations"))
}

// TestWriterNeedsNoMore appends as the writer, a month that has no partition included.
func TestWriterNeedsNoMore(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	owner, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(owner.Close)
	storetest.MakeRoles(t, owner)
	writer, err := store.Open(t.Context(), url+"&options=-c%20role%3Devictrail_writer", "")
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	facts := storetest.Incident("c1", 2)
	news, err := writer.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.Len(t, news.Facts, len(facts))
	require.NoError(t, writer.Resume(t.Context(), "c1", tracker.New("c1").Resume))
	_, err = writer.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	var stray int
	require.NoError(t, owner.DB.QueryRow(t.Context(), "SELECT count(*) FROM evictrail.events_default").Scan(&stray))
	require.Zero(t, stray)
}

// TestGrantIsForNewTables: an upgrade needs no superuser. Anyone who owns the schema grants what it brought, nobody else does.
func TestGrantIsForNewTables(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	owner, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(owner.Close)
	storetest.MakeRoles(t, owner)
	_, err = owner.DB.Exec(t.Context(), "REVOKE ALL ON evictrail.loops FROM evictrail_writer; REVOKE ALL ON evictrail_v1.loops FROM evictrail_reader")
	require.NoError(t, err)
	writer, err := store.Open(t.Context(), url+"&options=-c%20role%3Devictrail_writer", "")
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	const write, read = "DELETE FROM evictrail.loops", "SET ROLE evictrail_reader; SELECT FROM evictrail_v1.loops; RESET ROLE"
	_, err = writer.DB.Exec(t.Context(), write)
	require.ErrorContains(t, err, "permission denied")

	granted, err := writer.Grant(t.Context())
	require.NoError(t, err)
	require.False(t, granted, "it is not the writer's to give")
	granted, err = owner.Grant(t.Context())
	require.NoError(t, err)
	require.True(t, granted)
	_, err = writer.DB.Exec(t.Context(), write)
	require.NoError(t, err)
	_, err = owner.DB.Exec(t.Context(), read)
	require.NoError(t, err)
	applied, err := writer.Up(t.Context())
	require.NoError(t, err, "the writer may find that there is nothing to do")
	require.Empty(t, applied)
}

// TestEveryColumnIsExplained holds that users find a comment on each view and column.
func TestEveryColumnIsExplained(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var missing []string
	err := s.DB.QueryRow(t.Context(), `
SELECT coalesce(array_agg(c.relname || coalesce('.' || a.attname, '')), '{}')
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'evictrail_v1'
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'v' AND col_description(c.oid, coalesce(a.attnum, 0)) IS NULL`).Scan(&missing)
	require.NoError(t, err)
	require.Empty(t, missing)
}
