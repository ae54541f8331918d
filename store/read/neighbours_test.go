package read_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestNeighbours reads the facts of the VMs of a node at moments of simulated histories: of what is older they have all of StateBefore about VMIs and pods, but
// for what is about migrations.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	facts := storetest.Shifts(rand.New(rand.NewPCG(5, 7)), 52, 24)
	for i := range facts {
		facts[i].OccurredAt = facts[i].OccurredAt.Truncate(time.Microsecond)
	}
	s := storetest.New(t)
	_, err := s.Import(t.Context(), "c1", facts)
	require.NoError(t, err)
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	ids := func(facts []trail.Fact) []string {
		out := []string{}
		for _, f := range facts {
			out = append(out, f.What+" "+f.ID.String())
		}
		return out
	}
	begin, length := facts[0].OccurredAt, facts[len(facts)-1].OccurredAt.Sub(facts[0].OccurredAt)
	all := trail.BySubject(facts)
	neighbours := 0
	for _, share := range []float64{0.2, 0.5, 0.9} {
		since := begin.Add(time.Duration(share * float64(length)))
		boundary := since.Add(20 * time.Minute)
		for _, node := range []string{"worker-1", "worker-2"} {
			read, err := s.Neighbours(t.Context(), "c1", node, since, boundary)
			require.NoError(t, err)
			for of, got := range trail.BySubject(read) {
				want := slices.DeleteFunc(storetest.StateBefore(all[of], since), func(f trail.Fact) bool {
					return f.Object.Kind != trail.ObjectVMI && f.Object.Kind != trail.ObjectPod || f.MigrationUID != ""
				})
				have := ids(got)
				require.Empty(t, slices.DeleteFunc(ids(want), func(id string) bool { return slices.Contains(have, id) }), "%s on %s at %s", of, node, boundary)
				neighbours++
			}
		}
	}
	require.Greater(t, neighbours, 10)
}
