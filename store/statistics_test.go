package store_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestWhatGrowsIsCounted stores facts a few at a time in an empty database: Postgres knows at any time within a factor of four how large each table is, as
// it must to find the facts of one VM by their key.
func TestWhatGrowsIsCounted(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	facts := storetest.Incident("c1", 120)
	require.Greater(t, len(facts), 1000)
	for some := range slices.Chunk(facts, 100) {
		_, err := s.Append(t.Context(), "c1", some)
		require.NoError(t, err)
	}
	rows, err := s.DB.Query(t.Context(), `
SELECT relname
FROM pg_class
WHERE relnamespace = 'evictrail'::regnamespace AND relkind = 'r' AND reltuples > 0`)
	require.NoError(t, err)
	counted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, counted, "events_"+facts[0].OccurredAt.Format("2006_01"))
	require.Contains(t, counted, "timeline")
	rows, err = s.DB.Query(t.Context(), `
SELECT relname
FROM pg_class
WHERE relnamespace = 'evictrail'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 6 * greatest(relpages, 2) * 8192`)
	require.NoError(t, err)
	outgrown, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, outgrown)
}
