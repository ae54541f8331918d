package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestALeaderWaitsForOneNodeAlone has a writer read a node while the leader derives what was left: it holds no other node while it waits for that one, as the
// writer may touch those next, and each would wait for the other.
func TestALeaderWaitsForOneNodeAlone(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	leader := s.For("c1", "r1")
	require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
	var facts []trail.Fact
	tracker := trail.NewTracker("c1")
	for i := range 12 {
		name := fmt.Sprintf("n%02d", i)
		facts = append(facts, tracker.Observe(trail.NodeObservation{
			Seen: trail.Seen{At: start}, Meta: trail.Meta{UID: name, Name: name, ResourceVersion: "1"}, Unschedulable: true,
		})...)
	}
	_, err := leader.Append(t.Context(), facts)
	require.NoError(t, err)
	nodes := "SELECT count(*) FROM evictrail.subjects WHERE subject LIKE 'node:%' AND touched_since IS NOT NULL"
	all := count(t, s, nodes)
	require.Equal(t, 12, all)

	writer, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = writer.Rollback(t.Context()) }()
	var last string
	require.NoError(t, writer.QueryRow(t.Context(), `
		SELECT subject FROM evictrail.subjects WHERE subject LIKE 'node:%' AND touched_since IS NOT NULL
		ORDER BY subject DESC LIMIT 1 FOR SHARE`).Scan(&last))
	ended := make(chan error, 1)
	go func() {
		_, _, err := leader.CatchUp(t.Context(), nil)
		ended <- err
	}()
	waits := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	require.Eventually(t, func() bool { return count(t, s, waits) == 1 }, 2*time.Minute, 5*time.Millisecond)
	require.Equal(t, 1, count(t, s, nodes), "the others are derived")
	_, err = writer.Exec(t.Context(), "UPDATE evictrail.subjects SET touched_since = now() WHERE subject LIKE 'node:%' AND subject < $1", last)
	require.NoError(t, err)
	require.NoError(t, writer.Commit(t.Context()))
	require.NoError(t, <-ended)
	require.Equal(t, all-1, count(t, s, nodes), "what was touched meanwhile is left")
}
