package citus_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/citus"
	"github.com/evictrail/evictrail/store/citus/citustest"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var update = flag.Bool("update", false, "write the plans")

// TestPlan compares the statements for a database with the present schema with testdata/plan.sql: a new table is in it
// without further ado.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	state, err := citus.Read(t.Context(), s.DB)
	require.NoError(t, err)
	require.Empty(t, state, "a plain Postgres")
	plan, err := citus.Plan(t.Context(), s.DB, &state, 32)
	require.NoError(t, err)
	const file = "testdata/plan.sql"
	text := strings.Join(plan, ";\n") + ";\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestPlainPostgresSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := citus.Distribute(t.Context(), s.DB, 32)
	require.ErrorIs(t, err, citus.ErrNotReady)
	require.ErrorContains(t, err, "this is a plain Postgres")
	require.ErrorContains(t, err, "docs/scale.md")
	_, err = citus.Undistribute(t.Context(), s.DB)
	require.ErrorIs(t, err, citus.ErrNotReady)
}

// openClaimed opens a database that says it has Citus, by a stand-in.
func openClaimed(t *testing.T) *store.Store {
	t.Helper()
	url := storetest.NewURL(t)
	require.NoError(t, citustest.Claim(t.Context(), url))
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestThereAndBack spreads tables by a stand-in and brings them back: all of them, each once; a second time there is
// nothing to do, and a new table comes along with the schema that brings it.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	s := openClaimed(t)
	tables, err := citus.Tables(t.Context(), s.DB)
	require.NoError(t, err)
	done, err := citus.Distribute(t.Context(), s.DB, 8)
	require.NoError(t, err)
	require.Contains(t, done, "SELECT create_distributed_table('evictrail.subjects', 'cluster', colocate_with => 'none', shard_count => 8)")
	state, err := citus.Read(t.Context(), s.DB)
	require.NoError(t, err)
	require.Equal(t, "stand-in", state.Version)
	require.Len(t, state.Tables, len(tables))
	require.Len(t, state.Nodes, 2)
	require.Equal(t, citus.Node{Node: "two:5432", Active: true, Holds: true, Shards: 8 + int64(countSpread(tables)-1)}, state.Nodes[1])
	done, err = citus.Distribute(t.Context(), s.DB, 8)
	require.NoError(t, err)
	require.Empty(t, done)

	_, err = s.DB.Exec(t.Context(), "CREATE TABLE evictrail.news (cluster text PRIMARY KEY)")
	require.NoError(t, err)
	require.NoError(t, s.DB.InTx(t.Context(), "update", func(tx pgx.Tx) error { return citus.DistributeNew(t.Context(), tx) }))
	state, err = citus.Read(t.Context(), s.DB)
	require.NoError(t, err)
	require.Contains(t, state.Tables, "news")

	done, err = citus.Undistribute(t.Context(), s.DB)
	require.NoError(t, err)
	require.Equal(t, "SELECT undistribute_table('evictrail.subjects')", done[len(done)-1], "what all others lie beside")
	state, err = citus.Read(t.Context(), s.DB)
	require.NoError(t, err)
	require.False(t, state.IsDistributed())
}

func countSpread(tables []citus.Table) (n int) {
	for _, t := range tables {
		if !t.Reference {
			n++
		}
	}
	return n
}

// TestRefusals has something in the way, each time something else: nothing is distributed, and the error says what to
// do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, says string }{
		"facts are being dropped": {"UPDATE evictrail.retention SET dropping = now()", "Let \"evictrail run\" finish that"},
		"no server for shards":    {"UPDATE pg_catalog.pg_dist_node SET shouldhaveshards = false", "citus_add_node"},
		"a user is not there": {`CREATE OR REPLACE FUNCTION pg_catalog.run_command_on_workers(command text, OUT nodename text, OUT nodeport integer, OUT success boolean, OUT result text)
			RETURNS SETOF record LANGUAGE sql AS $$ SELECT 'two', 5432, true, '0' $$`, "on two:5432. Run CREATE ROLE"},
		"a replica records": {"", "these replicas record now: c1 (one)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openClaimed(t)
			if c.sql == "" {
				now := time.Now()
				require.NoError(t, s.For("c1", "one").Report(t.Context(), trail.ReplicaReport{Replica: "one", AliveAt: now, StartedAt: now, Since: now, State: "recording"}))
			} else {
				_, err := s.DB.Exec(t.Context(), "SET allow_system_table_mods = on; "+c.sql, pgx.QueryExecModeSimpleProtocol)
				require.NoError(t, err)
			}
			_, err := citus.Distribute(t.Context(), s.DB, 8)
			require.ErrorIs(t, err, citus.ErrNotReady)
			require.ErrorContains(t, err, c.says)
			state, err := citus.Read(t.Context(), s.DB)
			require.NoError(t, err)
			require.Empty(t, state.Tables)
		})
	}
}
