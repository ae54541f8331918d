package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
)

// TestHistoryIsThatOfAllFacts plays simulated histories into the database and asks about every VM and node, as of now and, at the
// end, as of then: the answers are those that all facts give that had happened.
func TestHistoryIsThatOfAllFacts(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{2, 5, 38} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run := sim.New(seed)
			s := storetest.New(t)
			tracker := trail.NewTracker("c1")
			var facts, fresh []trail.Fact
			var moments []time.Time
			step := run.End.Sub(run.Start) / 4
			next := run.Start.Add(step)
			told := 0
			ask := func(at time.Time) {
				facts = append(facts, fresh...)
				_, err := s.Append(t.Context(), "c1", fresh)
				require.NoError(t, err)
				require.NoError(t, s.Alive(t.Context(), "c1", at))
				_, _, err = s.DeriveDue(t.Context(), "c1", at)
				require.NoError(t, err)
				told += compareAnswers(t, s, facts, at)
				moments, fresh = append(moments, at), nil
			}
			for _, o := range run.Observations {
				for _, f := range tracker.Observe(o) {
					if f.ObservedAt.After(next) {
						ask(next)
						next = next.Add(step)
					}
					f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
					fresh = append(fresh, f)
				}
			}
			ask(run.End)
			for _, at := range moments[:len(moments)-1] {
				compareAnswers(t, s, facts, at)
			}
			require.Positive(t, told, "VMs and nodes of which something is told")
		})
	}
}

// compareAnswers compares what the store says of each VM and node as of a time with what all facts say that had happened by then. It
// tells how many answers spoke of loops, obstacles by others, or drains.
func compareAnswers(t *testing.T, s *store.Store, facts []trail.Fact, at time.Time) int {
	t.Helper()
	all := trail.DeriveAll(slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.OccurredAt.After(at) }), trail.DefaultThresholds(), at)
	all.Seen = trail.Coverage{Audit: true}
	told := 0
	for _, of := range slices.SortedFunc(maps.Keys(all.Rows), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }) {
		if of.Kind != trail.SubjectVMI && of.Kind != trail.SubjectNode {
			continue
		}
		h, err := s.History(t.Context(), "c1", of, at)
		require.NoError(t, err)
		h.Seen = all.Seen
		var want, got []any
		for _, c := range []*trail.Cluster{all, h} {
			want = got
			if namespace, vmi := of.VM(); of.Kind == trail.SubjectVMI {
				got = []any{c.Why(namespace, vmi), c.WhyNot(namespace, vmi)}
			} else {
				got = []any{c.WhyNotNode(of.Name), utc(c.Annotated(of.Name))}
			}
		}
		require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got), "%s as of %s", of, at)
		if text := fmt.Sprint(got...); strings.Contains(text, "This is a ") || strings.Contains(text, "There is a ") || strings.Contains(text, "drain") {
			told++
		}
	}
	return told
}

// utc drops the locations of times, which may be written in several ways.
func utc(all []trail.Stretch) []trail.Stretch {
	for i := range all {
		all[i].From, all[i].To = all[i].From.UTC(), all[i].To.UTC()
	}
	return all
}
