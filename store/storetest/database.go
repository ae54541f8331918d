package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// Dump reads everything that users can read but the time of storing, and loops that were refuted on the way. What is
// due by the time at which the cluster was last seen is derived first.
func Dump(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	clusters, err := s.Clusters(t.Context())
	require.NoError(t, err)
	for _, cluster := range clusters {
		at, err := s.LastAlive(t.Context(), cluster)
		require.NoError(t, err)
		_, _, err = s.DeriveDue(t.Context(), cluster, at)
		require.NoError(t, err)
	}
	out := map[string][]string{}
	for view, which := range map[string]string{
		"eviction_requests": "", "evacuations": "", "migrations": "", "migration_phases": "", "placements": "", "gaps": "", "events": "",
		"cooldown_decisions": "", "cooldowns_now": "", "loops": "WHERE closed_by IS DISTINCT FROM 'refuted'", "drains": "", "drain_blockers": "", "timeline": "",
	} {
		rows, err := s.DB.Query(t.Context(), fmt.Sprintf("SELECT (to_jsonb(v) - 'stored_at' - 'changed_at')::text FROM evictrail_v1.%s v %s ORDER BY 1", view, which))
		require.NoError(t, err)
		out[view], err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return out
}

// DumpOf returns what a database holds that got the facts at once.
func DumpOf(t *testing.T, cluster string, facts []trail.Fact) map[string][]string {
	t.Helper()
	s := New(t)
	_, err := s.Append(t.Context(), cluster, facts)
	require.NoError(t, err)
	return Dump(t, s)
}

// DerivedRows reads all derived rows, but for when they changed.
func DerivedRows(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range tables.Derived {
		rows, err := s.DB.Query(t.Context(), fmt.Sprintf("SELECT (to_jsonb(v) - 'changed_at')::text FROM evictrail.%s v ORDER BY 1", table.Name))
		require.NoError(t, err)
		out[table.Name], err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return out
}

// CountRows returns the number that a query with one answers.
func CountRows(t *testing.T, s *store.Store, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.DB.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// Record stores facts and derives what is due by the time of the last.
func Record(t *testing.T, s *store.Store, facts []trail.Fact) {
	t.Helper()
	if len(facts) == 0 {
		return
	}
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	at := facts[len(facts)-1].ObservedAt
	require.NoError(t, s.Alive(t.Context(), "c1", at))
	_, _, err = s.DeriveDue(t.Context(), "c1", at)
	require.NoError(t, err)
}

// rolesMade keeps tests from making the roles, which belong to the whole server, at once.
var rolesMade sync.Mutex

// MakeRoles makes the roles of store.Roles, and grants them what they need, but for tables and functions that the
// database does not have yet.
func MakeRoles(t *testing.T, s *store.Store, without ...string) {
	t.Helper()
	rolesMade.Lock()
	defer rolesMade.Unlock()
	sql := store.Roles()
	for _, table := range without {
		sql = strings.ReplaceAll(sql, ",\n    "+table, "")
		sql = strings.ReplaceAll(sql, ",\n            "+table, "")
	}
	_, err := s.DB.Exec(t.Context(), sql)
	require.NoError(t, err)
}
