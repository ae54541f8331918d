package catalogue_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/catalogue"
	"github.com/evictrail/evictrail/store/citus/citustest"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
)

var update = flag.Bool("update", false, "write expected.txt")

// readSchema returns what a database has.
func readSchema(t *testing.T, db *pg.DB) catalogue.Schema {
	t.Helper()
	found, err := catalogue.Read(t.Context(), db)
	require.NoError(t, err)
	return found
}

// execSQL runs statements.
func execSQL(t *testing.T, s *store.Store, sql string) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), sql)
	require.NoError(t, err, sql)
}

// TestExpectedIsFresh compares what is expected with a new database.
func TestExpectedIsFresh(t *testing.T) {
	t.Parallel()
	found := readSchema(t, storetest.New(t).DB)
	if *update {
		require.NoError(t, os.WriteFile("expected.txt", []byte(found.String()), 0o644))
	}
	written, err := os.ReadFile("expected.txt")
	require.NoError(t, err)
	require.Equal(t, string(written), found.String(), "run make generate")
	require.Equal(t, string(written), catalogue.Expected().String())
	require.Empty(t, catalogue.Compare(catalogue.Expected(), found))
}

// TestWhatVariesIsNoDifference: months that are made, kept and being dropped, another search path, comments, rights,
// the order of columns, and Citus.
func TestWhatVariesIsNoDifference(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url+"&search_path=evictrail,evictrail_v1", "")
	require.NoError(t, err)
	defer s.Close()
	execSQL(t, s, `SELECT evictrail.ensure_month('2026-01-01'), evictrail.ensure_month('2026-02-01')`)
	execSQL(t, s, `SELECT evictrail.begin_drop('2026-02-01Z', current_user)`)
	require.Empty(t, catalogue.Compare(catalogue.Expected(), readSchema(t, s.DB)))
	execSQL(t, s, `UPDATE evictrail.retention SET complete = true`)
	execSQL(t, s, `SELECT evictrail.finish_drop()`)
	execSQL(t, s, `COMMENT ON TABLE evictrail.loops IS 'ours'; GRANT SELECT ON evictrail.loops TO PUBLIC;
		CREATE TABLE public.theirs (of text); CREATE VIEW public.over_loops AS SELECT * FROM evictrail_v1.loops;
		ALTER TABLE evictrail.moves RENAME COLUMN state TO before; ALTER TABLE evictrail.moves ADD COLUMN spare integer;
		ALTER TABLE evictrail.moves RENAME COLUMN before TO state; ALTER TABLE evictrail.moves DROP COLUMN spare`)
	require.NoError(t, citustest.Claim(t.Context(), url))
	execSQL(t, s, `CREATE TABLE evictrail.loops_102008 (LIKE evictrail.loops INCLUDING ALL)`)
	found := readSchema(t, s.DB)
	require.Contains(t, found, catalogue.Object{
		Kind: "table", Name: "evictrail.events_kept", Varies: true,
		Definition: "PARTITION OF evictrail.events FOR VALUES FROM (MINVALUE) TO ('2026-02-01 00:00:00+00')",
	})
	require.Empty(t, catalogue.Compare(catalogue.Expected(), found))
}

// TestDifferences changes a schema by hand in all ways that are looked for.
func TestDifferences(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	execSQL(t, s, `
		DROP VIEW evictrail_v1.weekly_objectives;
		CREATE TABLE evictrail.notes (id bigint PRIMARY KEY, note text);
		ALTER TABLE evictrail.loops ADD COLUMN note text;
		ALTER TABLE evictrail.loops ALTER COLUMN summary DROP NOT NULL;
		ALTER TABLE evictrail.acknowledged ALTER COLUMN at TYPE timestamptz(3);
		ALTER TABLE evictrail.moves SET UNLOGGED;
		DROP INDEX evictrail.events_by_seq;
		CREATE INDEX ours ON evictrail.loops (note);
		ALTER TABLE evictrail.events DROP CONSTRAINT events_clock_check;
		DROP TABLE evictrail.events_default;
		CREATE FUNCTION evictrail.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER refused BEFORE INSERT ON evictrail.loops FOR EACH ROW EXECUTE FUNCTION evictrail.refuse();
		CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint';
		CREATE OR REPLACE VIEW evictrail_v1.clusters AS
			SELECT cluster, now() AS last_seen_at, facts_from FROM evictrail.clusters WHERE cluster <> 'b'`)
	differences := catalogue.Compare(catalogue.Expected(), readSchema(t, s.DB))
	var found []string
	for _, d := range differences {
		found = append(found, string(d.Verdict)+" "+d.Kind+" "+d.Name)
	}
	require.Equal(t, []string{
		"different column evictrail.acknowledged.at",
		"extra column evictrail.loops.note",
		"different column evictrail.loops.summary",
		"missing constraint evictrail.events.events_clock_check",
		"different function evictrail.oldest_schema()",
		"extra function evictrail.refuse()",
		"missing index evictrail.events.events_by_seq",
		"extra index evictrail.loops.ours",
		"missing table evictrail.events_default",
		"different table evictrail.moves",
		"extra table evictrail.notes",
		"extra trigger evictrail.loops.refused",
		"different view evictrail_v1.clusters",
		"missing view evictrail_v1.weekly_objectives",
	}, found)
	for i, lines := range map[int][2]string{
		0:  {"timestamp with time zone NOT NULL", "timestamp(3) with time zone NOT NULL"},
		12: {"NULLIF(alive_at, to_timestamp((0)::double precision)) AS last_seen_at,", "now() AS last_seen_at,"},
	} {
		var got [2]string
		got[0], got[1] = differences[i].FirstDifference()
		require.Equal(t, lines, got)
	}
}

// TestReaderMayAsk reads as a role that has no right on any table, and in a database that has none.
func TestReaderMayAsk(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	owner, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	defer owner.Close()
	storetest.MakeRoles(t, owner)
	reader, err := store.Open(t.Context(), url+"&options=-c%20role%3Devictrail_reader", "")
	require.NoError(t, err)
	defer reader.Close()
	_, err = reader.DB.Exec(t.Context(), "SELECT FROM evictrail.events")
	require.ErrorContains(t, err, "permission denied")
	require.Empty(t, catalogue.Compare(catalogue.Expected(), readSchema(t, reader.DB)))

	empty, err := store.Open(t.Context(), storetest.EmptyURL(t), "")
	require.NoError(t, err)
	defer empty.Close()
	require.Empty(t, readSchema(t, empty.DB))
}
