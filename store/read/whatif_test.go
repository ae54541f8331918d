package read_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
	"github.com/evictrail/evictrail/trail/whatif"
)

// TestWhatIfReadsWhatWasDerived compares what a replay of the database returns with one of the same history in memory: from the beginning and from the
// middle on, where evacuations are under way.
func TestWhatIfReadsWhatWasDerived(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	history := sim.Shared(6, 20)
	tr := tracker.New("shared")
	var facts []trail.Fact
	for _, o := range history.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	for part := range slices.Chunk(facts, 2000) { // a writer that works for long between two statements is cut off
		_, err := s.Import(t.Context(), "shared", part)
		require.NoError(t, err)
	}
	require.NoError(t, s.Alive(t.Context(), "shared", history.End))
	_, err := s.Rederive(t.Context(), "shared")
	require.NoError(t, err)
	_, err = s.DeriveStale(t.Context(), "shared", nil)
	require.NoError(t, err)
	_, _, err = s.DeriveDue(t.Context(), "shared", history.End)
	require.NoError(t, err)
	rows := trail.DeriveAll(facts, trail.DefaultThresholds(), history.End)
	sweep, err := whatif.ParseSweep("base=10m..60m/25m", whatif.Policy{})
	require.NoError(t, err)
	changed := 0
	for _, since := range []time.Time{history.Start, history.Start.Add(history.End.Sub(history.Start) / 2)} {
		q := whatif.Question{
			Cluster: "shared", Since: since, Until: history.End, Sweep: &sweep,
			Policies: []whatif.Policy{{}, {TryOnce: true}, {GiveUpAfter: 2, NodeLimit: 1}, {TotalLimit: 2}},
		}
		got, err := s.WhatIf(t.Context(), q)
		require.NoError(t, err)
		h := whatif.History{Rules: whatif.RulesOf(facts), Thresholds: trail.DefaultThresholds(), Since: q.Since, Until: q.Until}
		want, err := q.Replay(&h, inMemory(whatif.Gather(rows, facts), q.Until))
		require.NoError(t, err)
		require.Equal(t, want.Recorded, got.Recorded)
		for i := range want.Policies {
			require.Equal(t, want.Policies[i], got.Policies[i])
			if got.Policies[i].Changed {
				changed++
			}
		}
		require.False(t, got.Policies[0].Changed)

		mine := s.SeenBy(trail.Only("shared", "tenant-1", "tenant-2"))
		q.Cluster = ""
		seen, err := mine.WhatIf(t.Context(), q)
		require.NoError(t, err)
		require.Less(t, seen.Recorded.Migrations, got.Recorded.Migrations)
		for _, r := range seen.Policies {
			for _, c := range r.Changes {
				require.Contains(t, []string{"tenant-1", "tenant-2"}, c.Namespace)
			}
		}
	}
	require.Greater(t, changed, 6)
	_, err = s.WhatIf(t.Context(), whatif.Question{Since: history.Start.AddDate(-1, 0, 0), Until: history.Start.AddDate(0, -1, 0)})
	require.ErrorIs(t, err, trail.ErrNotFound)
	_, err = storetest.New(t).WhatIf(t.Context(), whatif.Question{})
	require.ErrorIs(t, err, trail.ErrNotFound)
}

// inMemory returns events up to a time as a source.
func inMemory(events []whatif.Event, until time.Time) []whatif.Source {
	return []whatif.Source{func() (whatif.Event, bool, error) {
		if len(events) == 0 || !events[0].At.Before(until) {
			return whatif.Event{}, false, nil
		}
		next := events[0]
		events = events[1:]
		return next, true, nil
	}}
}
