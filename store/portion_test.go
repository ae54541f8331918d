package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestPortions stores simulated histories such that few facts are held at once: everything is told as where all of them are, also once the rules
// changed for all VMs and nodes were cordoned, and where they are derived later.
func TestPortions(t *testing.T) { //nolint:paralleltest // what is held at once is one number
	for seed := range uint64(3) {
		facts, end := acrossMarch(40+seed, 0.5)
		tracker, rv := trail.NewTracker("c1"), 100_000
		last := cordons(tracker, "worker-1", &rv, end, end.Add(time.Second))
		last = append(last, tracker.Observe(trail.KubeVirtObservation{
			Meta: trail.Meta{UID: "kv", Name: "kubevirt", ResourceVersion: "200000", CreatedAt: end}, Seen: trail.Seen{At: end.Add(2 * time.Second)},
			Settings: trail.KubeVirtSettings{Version: "v1.8.4"},
		})...)
		stored := func(atOnce int, imported bool) ([]map[string][]string, int) {
			defer store.HoldAtOnce(atOnce)()
			s := storetest.New(t)
			require.NoError(t, s.Judge(t.Context(), "c1", brief))
			together := 400
			if imported {
				together = 4000
			}
			for some := range slices.Chunk(facts, together) {
				if imported {
					_, err := s.Import(t.Context(), "c1", some)
					require.NoError(t, err)
					_, err = s.DeriveStale(t.Context(), "c1", nil)
					require.NoError(t, err)
					some = some[len(some)-1:]
				}
				take(t, s, some)
			}
			told := []map[string][]string{tables(t, s)}
			take(t, s, last)
			portions, err := s.Portions(t.Context(), "c1", facts[:400])
			require.NoError(t, err)
			return append(told, tables(t, s)), portions
		}
		all, one := stored(1_000_000, false)
		few, many := stored(60, false)
		require.Equal(t, 1, one)
		require.Greater(t, many, 5)
		require.Equal(t, all, few, "seed %d", seed)
		later, _ := stored(60, true)
		require.Equal(t, all, later, "seed %d, imported", seed)
	}
}
