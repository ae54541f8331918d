package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestFoldedAsOfAllFacts records histories, some facts of which come late, and derives them in memory: recorded by the deriver's own process or by another, with
// restarts in between. The rows are those of all facts.
func TestFoldedAsOfAllFacts(t *testing.T) {
	t.Parallel()
	for _, seeds := range storetest.Some([][]uint64{{14, 62, 54}, {52, 24, 20}, {116, 216, 316}}, 1) {
		t.Run(fmt.Sprint(seeds), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seeds[0], 7))
			s := storetest.New(t)
			require.NoError(t, s.Judge(t.Context(), "c1", brief))
			d := store.NewDeriver(s, "c1")
			var late []trail.Fact
			all := slices.Collect(slices.Chunk(shifts(r, seeds...), 60))
			for i, facts := range all {
				var some []trail.Fact
				for _, f := range facts {
					if i < len(all)-1 && r.IntN(50) == 0 {
						late = append(late, f)
					} else {
						some = append(some, f)
					}
				}
				if r.IntN(10) == 0 || i == len(all)-1 {
					some, late = append(some, late...), nil
				}
				at := facts[len(facts)-1].ObservedAt
				switch r.IntN(8) {
				case 0: // the process ends
					d = store.NewDeriver(s, "c1")
					fallthrough
				case 1, 2: // another replica records
					_, err := s.Record(t.Context(), "c1", some)
					require.NoError(t, err)
				default:
					recorded, err := s.Record(t.Context(), "c1", some)
					require.NoError(t, err)
					d.Hand(recorded)
				}
				require.NoError(t, s.Alive(t.Context(), "c1", at))
				_, _, err := d.CatchUp(t.Context(), nil)
				require.NoError(t, err)

				if i%40 != 39 && i != len(all)-1 {
					continue
				}
				have := tables(t, s)
				_, err = s.Rederive(t.Context(), "c1")
				require.NoError(t, err)
				want := tables(t, s)
				for _, table := range derivedTables {
					require.Equal(t, want[table], have[table], "%s after %d batches of %d", table, i+1, len(all))
				}
			}
		})
	}
}
