package store_test

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/migrations"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/catalogue"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

// aroundQuery describes, a line each, what package catalogue leaves out of a schema: comments and rights.
const aroundQuery = `
WITH spaces AS (
  SELECT oid, nspname, nspacl FROM pg_namespace WHERE nspname IN ('evictrail', 'evictrail_v1')
), relations AS (
  SELECT c.*, c.oid::regclass::text AS name
  FROM pg_class AS c
  WHERE c.relkind IN ('r', 'p', 'v', 'S') AND (c.relnamespace IN (SELECT oid FROM spaces) OR c.relname LIKE 'evictrail%')
), rights AS (
  SELECT 'schema ' || nspname AS of, nspacl AS acl FROM spaces
  UNION ALL
  SELECT name, relacl FROM relations
  UNION ALL
  SELECT p.oid::regprocedure::text, proacl FROM pg_proc AS p WHERE pronamespace IN (SELECT oid FROM spaces)
  UNION ALL
  SELECT 'default in ' || defaclnamespace::regnamespace, defaclacl FROM pg_default_acl
)
SELECT format('right on %s: %s', of, a) FROM rights CROSS JOIN unnest(acl) AS a
UNION ALL
SELECT format('schema %s: %s', nspname, obj_description(oid)) FROM spaces
UNION ALL
SELECT format('relation %s: %s', name, obj_description(oid)) FROM relations
UNION ALL
SELECT format('column %s.%s: %s', r.name, a.attname, col_description(r.oid, a.attnum))
FROM relations AS r
JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0
UNION ALL
SELECT format('index %s: %s', i.indexrelid::regclass, obj_description(i.indexrelid))
FROM relations AS r
JOIN pg_index AS i ON i.indrelid = r.oid
WHERE NOT r.relispartition
UNION ALL
SELECT format('function %s: %s', oid::regprocedure, obj_description(oid)) FROM pg_proc WHERE pronamespace IN (SELECT oid FROM spaces)
ORDER BY 1`

// describeSchema describes everything in our schemas, a line for each object.
func describeSchema(t *testing.T, s *store.Store) []string {
	t.Helper()
	lines := queryLines(t, s, aroundQuery)
	objects, err := catalogue.Read(t.Context(), s.DB)
	require.NoError(t, err)
	for _, o := range objects {
		lines = append(lines, o.Kind+" "+o.Name+" "+o.Definition)
	}
	return lines
}

// queryLines returns the rows of a query of one text.
func queryLines(t *testing.T, s *store.Store, query string, args ...any) []string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), query, args...)
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}

const tablesQuery = `
SELECT c.oid::regclass::text
FROM pg_class AS c
WHERE c.relnamespace = 'evictrail'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY 1`

// laterTables are those that steps bring to a database of the oldest schema.
var laterTables = []string{"evictrail.acknowledgements", "evictrail.cluster_days", "evictrail.deliveries", "evictrail.drain_forecasts", "evictrail.evidence", "evictrail.moves", "evictrail.receivers"}

// laterFunctions are those that writers and who drops need, and that steps bring.
var laterFunctions = []string{
	"evictrail.drop_facts(text, text[], timestamptz[], uuid[])", "evictrail.erase_requesters(timestamptz, integer, text)",
}

// openSchema38 returns a database of the oldest schema that is brought up to date.
func openSchema38(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.EmptyURL(t), "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	sql, err := os.ReadFile("testdata/schema_38.sql")
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), string(sql))
	require.NoError(t, err)
	return s
}

// TestUpgradeComesToTheSameSchema brings a database of schema 38, with rows and roles in it, up to date: then
// everything in it is as in a fresh one, and the rows are those that were there.
func TestUpgradeComesToTheSameSchema(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	fresh, old := storetest.New(t), openSchema38(t)
	_, err := fresh.Append(t.Context(), "c1", storetest.Incident("c1", 3))
	require.NoError(t, err)
	_, err = fresh.DB.Exec(t.Context(), "TRUNCATE evictrail.retention; INSERT INTO evictrail.retention (facts_from) VALUES ('2026-01-01'); UPDATE evictrail.clusters SET facts_from = '2026-01-01'")
	require.NoError(t, err)
	storetest.MakeRoles(t, fresh)
	storetest.MakeRoles(t, old, slices.Concat(laterTables, laterFunctions)...)
	_, err = old.DB.Exec(t.Context(), "SELECT evictrail.ensure_month($1)", start)
	require.NoError(t, err)
	tables, filled := queryLines(t, fresh, tablesQuery), 0
	tables = slices.DeleteFunc(tables, func(table string) bool { return slices.Contains(laterTables, "evictrail."+table) })
	require.Equal(t, queryLines(t, old, tablesQuery), tables)
	for _, table := range tables {
		rows := queryLines(t, fresh, "SELECT to_jsonb(t)::text FROM "+table+" AS t")
		for _, row := range rows {
			_, err := old.DB.Exec(t.Context(), "INSERT INTO "+table+" SELECT * FROM jsonb_populate_record(NULL::"+table+", $1)", row)
			require.NoError(t, err, table)
		}
		filled += min(len(rows), 1)
	}
	require.Greater(t, filled, 8)

	applied, err := old.Up(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(39), applied[0])
	granted, err := old.Grant(t.Context())
	require.NoError(t, err)
	require.True(t, granted)
	require.Equal(t, describeSchema(t, fresh), describeSchema(t, old))
	for _, table := range tables {
		all := "SELECT (to_jsonb(t) - 'seq')::text FROM " + table + " AS t ORDER BY 1"
		require.Equal(t, queryLines(t, fresh, all), queryLines(t, old, all), table)
	}
	require.Equal(t, storetest.Dump(t, fresh), storetest.Dump(t, old))
	require.Equal(t, []string{"0"}, queryLines(t, old, "SELECT DISTINCT seq::text FROM evictrail.events"), "facts that are there are not numbered")
	_, err = old.Append(t.Context(), "c2", storetest.Incident("c2", 1))
	require.NoError(t, err)
	require.NotContains(t, queryLines(t, old, "SELECT seq::text FROM evictrail.events WHERE cluster = 'c2'"), "0")
}

// TestUpgradeIsAllOrNothing has two programs update a database at once, of which one does it, after none could, as a
// view stood in the way of it.
func TestUpgradeIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := openSchema38(t)
	before := describeSchema(t, s)
	_, err := s.DB.Exec(t.Context(), "ALTER VIEW evictrail_v1.timeline RENAME COLUMN at TO was_at")
	require.NoError(t, err)
	_, err = s.Up(t.Context())
	require.ErrorContains(t, err, "views/timeline.sql")
	_, err = s.DB.Exec(t.Context(), "ALTER VIEW evictrail_v1.timeline RENAME COLUMN was_at TO at")
	require.NoError(t, err)
	require.Equal(t, before, describeSchema(t, s))

	var wg sync.WaitGroup
	applied, errs := make([][]int64, 2), make([]error, 2)
	for i := range applied {
		wg.Go(func() { applied[i], errs[i] = s.Up(t.Context()) })
	}
	wg.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	steps := slices.Concat(applied...)
	require.Len(t, steps, int(migrations.Version()-migrations.Oldest()))
	require.Equal(t, migrations.Version(), steps[len(steps)-1])
	status, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.NoError(t, status.Check())
}

// TestUpgradeOfATooOldSchema: the error says what to do.
func TestUpgradeOfATooOldSchema(t *testing.T) {
	t.Parallel()
	s := openSchema38(t)
	_, err := s.DB.Exec(t.Context(), "UPDATE public.evictrail_schema SET version_id = 37 WHERE version_id = 38")
	require.NoError(t, err)
	before := describeSchema(t, s)
	_, err = s.Up(t.Context())
	require.ErrorIs(t, err, pg.ErrSchema)
	require.ErrorContains(t, err, "the database is at version 37, this evictrail updates version 38 or newer: first run `evictrail schema up` of an evictrail that needs version 38")
	require.Equal(t, before, describeSchema(t, s))
	status, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.True(t, status.TooOld())
}
