package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
)

// loadRows reads the rows of a query.
func loadRows[T any](t *testing.T, database, query string) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	found, err := conn.Query(t.Context(), "SELECT to_json(q) FROM ("+query+") q")
	require.NoError(t, err)
	texts, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
	require.NoError(t, err)
	out := make([]T, len(texts))
	for i, text := range texts {
		require.NoError(t, json.Unmarshal(text, &out[i]))
	}
	return out
}

// loadNumber reads the one number that a query returns as n.
func loadNumber(t *testing.T, database, query string) int {
	t.Helper()
	return loadRows[struct{ N int }](t, database, query)[0].N
}

const phasesQuery = "SELECT migration_uid, value AS phase, at FROM evictrail_v1.events WHERE kind = 'migration_phase' AND value <> ''"

// awaitStored waits until so many transitions are stored, for as long as there are more and more of them.
func awaitStored(t *testing.T, database string, want int) {
	t.Helper()
	const patience = 2 * time.Minute
	for got := -1; got < want; {
		awaitCondition(t, patience, fmt.Sprintf("more than %d transitions are stored, of %d", got, want), func() bool {
			n := loadNumber(t, database, "SELECT count(*) AS n FROM evictrail_v1.events WHERE kind = 'migration_phase' AND value <> ''")
			more := n > got
			got = max(n, got)
			return more
		})
	}
}

// awaitDerived waits until all that a cluster has sent is stored and derived, where nothing was missed.
func awaitDerived(t *testing.T, database string, c *cluster) {
	t.Helper()
	awaitStored(t, database, c.released)
	placed, _ := slices.BinarySearch(c.moved, c.next)
	placed += len(c.vms)
	var stays, behind int
	defer func() {
		if stays < placed || behind > 0 {
			t.Logf("%d of %d stays are stored, %d subjects are not derived", stays, placed, behind)
		}
	}()
	awaitCondition(t, 3*time.Minute, "every stay is stored, and all is derived", func() bool {
		stays = loadNumber(t, database, "SELECT count(*) AS n FROM evictrail_v1.events WHERE kind = 'vmi_placed'")
		behind = loadNumber(t, database, "SELECT count(*) AS n FROM evictrail.subjects WHERE dirty_since IS NOT NULL")
		return stays >= placed && behind == 0
	})
}

// requireTruth wants each of the transitions stored, once, and no others.
func requireTruth(t *testing.T, database string, truth []transition) {
	t.Helper()
	key := func(x transition) string { return x.UID + " " + x.Phase + " " + formatTimestamp(x.At) }
	got := map[string]int{}
	for _, x := range loadRows[transition](t, database, phasesQuery) {
		got[key(x)]++
	}
	lost := []string{}
	for _, x := range truth {
		if got[key(x)] == 0 {
			lost = append(lost, key(x))
		}
		require.LessOrEqual(t, got[key(x)], 1, "%s is doubled", key(x))
		delete(got, key(x))
	}
	require.Empty(t, lost, "lost")
	require.Empty(t, got, "transitions that never were")
}

// derivedViews are what is derived of facts.
var derivedViews = []string{
	"eviction_requests", "evacuations", "migrations", "migration_phases", "placements", "cooldown_decisions", "loops", "drains", "drain_blockers", "timeline",
}

// historyQuery leaves out times of our own clock: of what was seen, where the object bears no time for it, and stored.
// The move that ends a repeated failure is such a sight: of a guest on another node.
const historyQuery = `
SELECT (CASE
        WHEN v->>'kind' IN ('vmi_placed', 'launcher_pod', 'config_seen', 'migration_gone') THEN v - 'at'
        WHEN v->>'kind' = 'loop_closed' AND v->>'reason' = 'migrated' THEN v - 'at'
        WHEN v->>'kind' = 'repeated_failures' AND v->>'closed_by' = 'migrated' THEN v - 'closed_at'
        ELSE v END
    - 'stored_at' - 'changed_at' - 'observed_at' - 'seen_late' - 'from_at' - 'to_at')::text
FROM (SELECT to_jsonb(r) AS v FROM evictrail_v1.%s r) q
WHERE coalesce(v->>'kind', '') NOT IN ('gap_opened', 'gap_closed')
  AND coalesce(v->>'closed_by', '') <> 'refuted'
ORDER BY 1`

// loadHistory reads views, but for when something was seen or stored, and for gaps.
func loadHistory(t *testing.T, database string, views ...string) map[string][]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	out := map[string][]string{}
	for _, view := range views {
		found, err := conn.Query(t.Context(), fmt.Sprintf(historyQuery, view))
		require.NoError(t, err)
		out[view], err = pgx.CollectRows(found, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return out
}

// requireRederived derives everything again of the facts and wants the same rows. Nobody else may derive during that time.
func requireRederived(t *testing.T, database string) {
	t.Helper()
	before := loadHistory(t, database, derivedViews...)
	require.NotEmpty(t, before["migrations"])
	rederiveHistory(t, database)
	requireSame(t, before, loadHistory(t, database, derivedViews...))
}

// rederiveHistory derives all rows again, by this version.
func rederiveHistory(t *testing.T, database string) {
	t.Helper()
	s, err := store.Open(t.Context(), database, "")
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
}

// requireSame compares what was read of two databases: where they differ it shows a few rows, not all.
func requireSame(t *testing.T, want, got map[string][]string) {
	t.Helper()
	const shown = 3
	for view := range want {
		missing, more := diffRows(want[view], got[view]), diffRows(got[view], want[view])
		require.Zero(t, len(missing)+len(more), "%s: %d rows are missing, such as %q; %d should not be, such as %q",
			view, len(missing), missing[:min(shown, len(missing))], len(more), more[:min(shown, len(more))])
	}
}

// diffRows returns the rows of a that b does not have.
func diffRows(a, b []string) []string {
	has := map[string]int{}
	for _, row := range b {
		has[row]++
	}
	var out []string
	for _, row := range a {
		if has[row]--; has[row] < 0 {
			out = append(out, row)
		}
	}
	return out
}
