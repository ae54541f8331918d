package store_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// changed is a row and when it came or changed.
type changed struct {
	Row string
	At  time.Time
}

// loadChangeTimes returns when each row of the views that have it came or changed, by view and what it says.
func loadChangeTimes(t *testing.T, s *store.Store) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, v := range trail.Views() {
		if v.Changed == "" {
			continue
		}
		rows, err := s.DB.Query(t.Context(), fmt.Sprintf("SELECT (to_jsonb(v) - $1 - 'stored_at')::text, %s FROM evictrail_v1.%s v", v.Changed, v.Name), v.Changed)
		require.NoError(t, err)
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[changed])
		require.NoError(t, err)
		for _, c := range all {
			out[v.Name+" "+c.Row] = c.At
		}
	}
	return out
}

// TestChangedAt stores facts in two steps: rows that the second leaves as they were keep their times, the others have the
// second's, and a list asked for what changed since then has those alone.
func TestChangedAt(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 3)
	half := len(facts) / 2
	_, err := s.Append(t.Context(), "c1", facts[:half])
	require.NoError(t, err)
	before := loadChangeTimes(t, s)
	last := slices.MaxFunc(slices.Collect(maps.Values(before)), time.Time.Compare)
	_, err = s.Append(t.Context(), "c1", facts[half:])
	require.NoError(t, err)
	after := loadChangeTimes(t, s)
	stayed, changed := 0, 0
	for row, at := range after {
		if was, same := before[row]; same {
			require.Equal(t, was, at, row)
			stayed++
			continue
		}
		require.True(t, at.After(last), row)
		changed++
	}
	require.Greater(t, stayed, 20)
	require.Greater(t, changed, 20)

	listed := 0
	for _, v := range trail.Views() {
		page, err := s.ListJSON(t.Context(), v, trail.Query{ChangedSince: last.Add(time.Microsecond)})
		require.NoError(t, err)
		if v.Changed != "" {
			listed += len(page.Rows)
		}
	}
	require.Equal(t, changed, listed)

	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, after, loadChangeTimes(t, s), "everything is derived again, and nothing changes")
}
