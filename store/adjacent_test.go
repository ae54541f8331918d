package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// The next schema, as one with more columns is: each table and each view has another one at its end.
const nextSchema = `
DO $$
DECLARE
  t text;
BEGIN
  FOR t IN SELECT table_name FROM information_schema.tables WHERE table_schema = 'evictrail' AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'events\_%'
  LOOP
    EXECUTE format('ALTER TABLE evictrail.%I ADD COLUMN future text', t);
  END LOOP;
  FOR t IN SELECT table_name FROM information_schema.views WHERE table_schema = 'evictrail_v1'
  LOOP
    EXECUTE format('CREATE OR REPLACE VIEW evictrail_v1.%I AS SELECT v.*, NULL::text AS future FROM (%s) AS v', t, rtrim(pg_get_viewdef(format('evictrail_v1.%I', t)::regclass), ';'));
  END LOOP;
END
$$;
INSERT INTO public.evictrail_schema (version_id, is_applied) SELECT max(version_id) + 1, true FROM public.evictrail_schema`

// TestOldProgramOnTheNextSchema brings the schema of the next version while this one records: it goes on, starts again on it, and what it makes of
// the facts is the same. Where the next schema says that it does not get along, this one says so, too.
func TestOldProgramOnTheNextSchema(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	facts := storetest.Incident("c1", 6)
	s := storetest.New(t)
	record := func(s *store.Store, facts []trail.Fact) {
		sink := s.For("c1", "r1")
		require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
		_, err := sink.Append(t.Context(), facts)
		require.NoError(t, err)
		_, _, err = sink.CatchUp(t.Context(), nil)
		require.NoError(t, err)
	}
	third := len(facts) / 3
	record(s, facts[:third])
	status, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.False(t, status.Newer())

	_, err = s.DB.Exec(t.Context(), nextSchema)
	require.NoError(t, err)
	record(s, facts[third:2*third])
	again, err := store.Open(t.Context(), s.DB.Config().ConnString(), "")
	require.NoError(t, err)
	defer again.Close()
	status, err = again.Schema(t.Context())
	require.NoError(t, err)
	require.True(t, status.Newer())
	require.NoError(t, status.Check())
	applied, err := again.Up(t.Context())
	require.NoError(t, err)
	require.Empty(t, applied)
	record(again, facts[2*third:])
	got := storetest.Dump(t, again)
	for view, rows := range got {
		for i, row := range rows {
			require.Contains(t, row, `"future": null`, view)
			rows[i] = strings.ReplaceAll(row, `, "future": null`, "")
		}
	}
	require.Equal(t, storetest.DumpOf(t, "c1", facts), got)
	why, err := again.Why(t.Context(), trail.Question{Cluster: "c1", Of: trail.VMISubject("shop", "db-0")})
	require.NoError(t, err)
	require.NotEmpty(t, why.Evidence)

	_, err = s.DB.Exec(t.Context(), fmt.Sprintf("CREATE OR REPLACE FUNCTION evictrail.oldest_schema() RETURNS bigint LANGUAGE sql AS 'SELECT %d::bigint'", status.Version))
	require.NoError(t, err)
	status, err = again.Schema(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, status.Check(), pg.ErrSchema)
	_, err = again.Up(t.Context())
	require.ErrorContains(t, err, "use a newer evictrail")
}

// TestAnotherProgramRederives leaves a row as if other rules had derived it: the program that did so before leaves it, any other puts it right,
// and so does the same one after one that did not say who it was.
func TestAnotherProgramRederives(t *testing.T) {
	t.Parallel()
	facts := storetest.Incident("c1", 2)
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	want := storetest.Dump(t, s)
	lead := func(program string) {
		sink := s.For("c1", "r1")
		require.NoError(t, sink.Lead(t.Context(), program, trail.DefaultThresholds()))
		_, _, err := sink.CatchUp(t.Context(), nil)
		require.NoError(t, err)
	}
	spoil := func() {
		_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET evidence = 'by other rules'")
		require.NoError(t, err)
	}
	lead("v1")
	spoil()
	lead("v1")
	require.NotEqual(t, want, storetest.Dump(t, s), "it derived them itself")
	lead("v2")
	require.Equal(t, want, storetest.Dump(t, s))

	spoil()
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.leaders SET term = term + 1") // all that a program from before schema 17 notes
	require.NoError(t, err)
	lead("v2")
	require.Equal(t, want, storetest.Dump(t, s))
}
