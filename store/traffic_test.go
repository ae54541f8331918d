package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestTrafficOfOnePhase counts what a leader sends to the database to record one phase of a migration and to derive its VM and its node, when both are in memory.
func TestTrafficOfOnePhase(t *testing.T) {
	t.Parallel()
	var sent store.Traffic
	s, err := store.OpenCounting(t.Context(), storetest.NewURL(t), &sent)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	facts := incident("c1", 1)
	step := func(some []trail.Fact) {
		_, err := leader.Append(t.Context(), some)
		require.NoError(t, err)
		_, _, err = leader.KeepUp(t.Context())
		require.NoError(t, err)
	}
	for i := range facts[:len(facts)-1] {
		step(facts[i : i+1])
	}
	last := facts[len(facts)-1]
	require.Equal(t, trail.KindMigrationPhase, last.Kind)
	sent = store.Traffic{}
	step([]trail.Fact{last})
	t.Logf("%d statements in %d round trips", len(sent.Statements), len(sent.RoundTrips))
	require.LessOrEqual(t, len(sent.Statements), 21, "%s", strings.Join(sent.Statements, "\n"))
	require.LessOrEqual(t, len(sent.RoundTrips), 9)
}
