package store_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestStateBefore compares the queries that look for older facts with stateBefore, at moments of simulated histories and for every subject: what is read to
// derive a VM in part and what is kept where facts are dropped are these.
func TestStateBefore(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 7))
	facts := storetest.Shifts(r, 52, 24)
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
		slices.Sort(out)
		return slices.Compact(out)
	}
	between := func(facts []trail.Fact, from, to time.Time) []trail.Fact {
		return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.OccurredAt.Before(from) || !f.OccurredAt.Before(to) })
	}
	begin, length := facts[0].OccurredAt, facts[len(facts)-1].OccurredAt.Sub(facts[0].OccurredAt)
	left := 0
	for _, share := range []float64{0.2, 0.5, 0.9} {
		since := begin.Add(time.Duration(share * float64(length)))
		boundary := since.Add(20 * time.Minute)
		all := trail.BySubject(facts)
		subjects := slices.Collect(maps.Keys(all))
		got, err := s.StateBefore(t.Context(), "c1", subjects, since)
		require.NoError(t, err)
		kept, err := s.Kept(t.Context(), "c1", subjects, since, boundary)
		require.NoError(t, err)
		gotOf, keptOf := trail.BySubject(got), trail.BySubject(kept)
		for of, its := range all {
			want := storetest.StateBefore(its, since)
			left += len(between(its, time.Time{}, since)) - len(want)
			require.Equal(t, ids(want), ids(gotOf[of]), "%s before %s", of, since)
			require.Equal(t, ids(append(want, between(its, since, boundary)...)), ids(keptOf[of]), "%s kept since %s", of, since)
		}
	}
	require.Greater(t, left, 1000, "of older facts most say nothing")
}
