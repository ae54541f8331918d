package read_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestLostGuestsAreFoundByTheirIndex checks that the guests that were lost are those of the rule in package trail, and that Postgres can use the index made for
// them: its predicate has to be what the question says.
func TestLostGuestsAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	var quoted []string
	for _, e := range append(trail.PlatformEndings(), trail.EndingFailed) {
		quoted = append(quoted, "'"+string(e)+"'")
	}
	want := fmt.Sprintf("ended_by IN (%s)", strings.Join(quoted, ", "))
	require.Equal(t, want, read.IsLost)
	s := storetest.New(t)
	var plan []string
	err := s.Read(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN SELECT 1 FROM evictrail.placements WHERE cluster = 'c1' AND to_at > now() AND "+read.IsLost)
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "placements_lost")
}
