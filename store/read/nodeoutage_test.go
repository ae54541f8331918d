package read_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestOutagesAreThoseOfAllFacts plays simulated histories in which node after node falls silent for a while, and asks about every VM and node, as of
// now and, at the end, as of then: the answers are those that follow from all facts that had happened, and migrations that wait for their target are in them.
func TestOutagesAreThoseOfAllFacts(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	stalled := 0
	for _, seed := range storetest.Some([]uint64{26, 2, 116}, 1) {
		run := sim.New(seed)
		s := storetest.New(t)
		tr := tracker.New("c1")
		var facts, fresh []trail.Fact
		var moments []time.Time
		ask := func(at time.Time) {
			facts = append(facts, fresh...)
			_, err := s.Append(t.Context(), "c1", fresh)
			require.NoError(t, err)
			require.NoError(t, s.Alive(t.Context(), "c1", at))
			_, _, err = s.DeriveDue(t.Context(), "c1", at)
			require.NoError(t, err)
			storetest.CompareAnswers(t, s, facts, at)
			stalled += compareWaits(t, s, facts, at)
			moments, fresh = append(moments, at), nil
		}
		observe := func(o tracker.Observation) {
			for _, f := range tr.Observe(o) {
				f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
				fresh = append(fresh, f)
			}
		}
		step := run.End.Sub(run.Start) / 6
		next := run.Start.Add(step)
		for i, o := range run.Observations {
			if at := seenAt(o); at.After(next) {
				n := len(moments)
				for k := range 3 { // of three nodes one is silent
					observe(storetest.Readiness(fmt.Sprintf("worker-%d", k+1), next, n, k == n%3))
				}
				ask(next)
				next = next.Add(step)
			}
			observe(run.Observations[i])
		}
		ask(run.End)
		for i, at := range moments[:len(moments)-1] {
			if i == 3 {
				storetest.CompareAnswers(t, s, facts, at)
			}
		}
	}
	require.Positive(t, stalled, "migrations that waited for a node that was not ready")
}

// seenAt returns when an observation reached us.
func seenAt(o tracker.Observation) time.Time {
	switch o := o.(type) {
	case tracker.VMIObservation:
		return o.At
	case tracker.PodObservation:
		return o.At
	case tracker.MigrationObservation:
		return o.At
	case tracker.NodeObservation:
		return o.At
	}
	return time.Time{}
}

// compareWaits compares for what the migrations of each VM wait, or waited, with what all facts say. It returns how many wait for their target, or did.
func compareWaits(t *testing.T, s *store.Store, facts []trail.Fact, at time.Time) int {
	t.Helper()
	stalled := 0
	for of, want := range trail.DeriveAll(facts, trail.DefaultThresholds(), at).Rows {
		if of.Kind != trail.SubjectVMI {
			continue
		}
		h, err := s.Ask(t.Context(), trail.Question{Cluster: "c1", Of: of, At: at, Since: at.Add(-24 * time.Hour)})
		require.NoError(t, err)
		require.Equal(t, formatWaits(want), formatWaits(h.Rows[of]), "%s as of %s", of, at)
		for _, m := range want.Migrations {
			if m.WaitReason == trail.WaitTargetNode {
				stalled++
			}
		}
	}
	return stalled
}

func formatWaits(d trail.Derived) string {
	var out []string
	for _, m := range d.Migrations {
		out = append(out, fmt.Sprint(m.UID, " ", m.WaitReason, " ", m.WaitDetail))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
