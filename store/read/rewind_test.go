package read_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestRewindComesToTheState stores simulated hours as they go, and wants a replay of what is recorded so far to come to
// the State that is read of the database.
func TestRewindComesToTheState(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	evacuations, drains, loops := 0, 0, 0
	for _, seed := range []uint64{2, 6, 13, 17} {
		run, s := sim.New(seed), storetest.New(t)
		sink := s.For("c1", "sim")
		require.NoError(t, sink.Lead(t.Context(), "this", trail.DefaultThresholds()))
		tr := tracker.New("c1")
		var fresh []trail.Fact
		next := run.Start.Truncate(time.Millisecond)
		compare := func() {
			_, err := sink.Append(t.Context(), fresh)
			require.NoError(t, err)
			fresh = nil
			_, err = sink.CatchUpTo(t.Context(), next)
			require.NoError(t, err)
			want, err := s.State(t.Context(), "c1", next)
			require.NoError(t, err)
			h, err := s.Rewind(t.Context(), "c1", run.Start, next.Add(time.Microsecond))
			require.NoError(t, err)
			r := rewind.New(h)
			r.Advance(next)
			require.Equal(t, describeState(want), describeState(r.State()), "seed %d at %s", seed, next)
			evacuations, drains, loops = evacuations+len(want.Evacuations), drains+len(want.DrainBlocked),
				loops+len(want.Loops)
			next = next.Add(7 * time.Minute)
		}
		for _, o := range run.Observations {
			made := tr.Observe(o)
			for len(made) > 0 && !made[0].ObservedAt.Before(next) {
				compare()
			}
			fresh = append(fresh, made...)
		}
		compare()
	}
	require.Greater(t, evacuations, 50)
	require.Positive(t, drains)
	require.Greater(t, loops, 10)
}

// describeState writes of a State what rules read, a line each, in order. Of why VMs are left of a drain they read
// whether they cannot be migrated.
func describeState(s trail.State) []string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	out := []string{fmt.Sprint("running ", s.Running, " limits ", s.PerCluster, s.PerNode, " slots ", s.Slots.InUse,
		at(s.Slots.Oldest))}
	for i := range s.Evacuations {
		e := &s.Evacuations[i]
		shown, known := e.AnnotationShown()
		out = append(out, fmt.Sprint("evacuation ", e.ID, e.Namespace, e.VMI, e.Node, e.Strategy, at(e.MarkedAt),
			e.RequesterClass, e.FailedAttempts, e.HoldsSlot(), shown, known))
	}
	for name, n := range s.Nodes {
		left := 0
		for _, count := range n.Remaining {
			left += count
		}
		line := fmt.Sprint(n.VMIs, n.InCooldown, n.Marked, n.Retrying, n.Outgoing, n.Incoming, n.Slots.InUse,
			at(n.Slots.Oldest), at(n.DrainSince), left)
		if line != fmt.Sprint(0, 0, 0, 0, 0, 0, 0, at(time.Time{}), at(time.Time{}),
			0) { // a node without anything is one that is not there
			out = append(out, "node "+name+" "+line)
		}
	}
	for reason, p := range s.Pending {
		out = append(out, fmt.Sprint("pending ", reason, p.Count, at(p.Oldest)))
	}
	for i, of := range []map[trail.FailureClass]int{s.FailingHour, s.FailingDay} {
		for class, n := range of {
			if n > 0 {
				out = append(out, fmt.Sprint("failing ", i, class, n))
			}
		}
	}
	for i, of := range [][]trail.VMCount{s.Returns, s.Moves} {
		for _, c := range of {
			out = append(out, fmt.Sprint("count ", i, c))
		}
	}
	for _, c := range s.Repeated {
		out = append(out, fmt.Sprint("repeated ", c))
	}
	for _, c := range s.Cooling {
		out = append(out, fmt.Sprint("cooling ", c.Namespace, c.VMI, c.Node, c.Base, c.Effective, at(c.Until)))
	}
	for _, b := range s.DrainBlocked {
		if b.Blocker == trail.BlockerNotMigratable {
			out = append(out, fmt.Sprint("not migratable ", b))
		}
	}
	for place, n := range s.Loops {
		out = append(out, fmt.Sprint("loops ", place, n))
	}
	slices.Sort(out)
	return out
}
