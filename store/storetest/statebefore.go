package storetest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

// StateBefore returns those of a subject's facts from before a time that say how it stood then; what happened since is understood by them. They come in
// the order of facts, each once. They are read to derive a VM in part, and kept where facts are dropped. The store has this rule as SQL (tables.StateBefore);
// it is written here to be compared with it.
//
//   - Of a migration that was there, everything, also what other objects say of it: KubeVirt counts the last ones that are there.
//   - Of a pod that was there, everything while it ran, and that it had ended (ReasonPodEnded) otherwise: before v1.9 KubeVirt leaves the pod of each move of
//     a VMI behind for as long as that lives.
//   - Of a VMI or a node that was there, how it was first seen, and each aspect (Fact.What) as it was last. They live long.
//   - Of an object that was gone (WhatGone), and of anything else, nothing.
//
// For example, a VMI was placed on n1, marked, moved to n2 by a migration, and unmarked; the migration was deleted, and later the VMI was marked again. Before
// the last mark these say how it stood: that it was placed on n1, as it was first seen so, that it runs on n2, and that it is not marked.
func StateBefore(facts []trail.Fact, since time.Time) []trail.Fact {
	type aspect struct{ uid, what string }
	gone, ended, moving := map[string]bool{}, map[string]bool{}, map[string]bool{}
	first, last := map[string]*trail.Fact{}, map[aspect]*trail.Fact{}
	for i := range facts {
		switch f := &facts[i]; {
		case !f.OccurredAt.Before(since):
		case f.What == trail.WhatGone:
			gone[f.Object.UID] = true
		case f.Reason == trail.ReasonPodEnded:
			ended[f.Object.UID] = true
		}
	}
	for i := range facts {
		f := &facts[i]
		if !f.OccurredAt.Before(since) || gone[f.Object.UID] {
			continue
		}
		switch f.Object.Kind {
		case trail.ObjectMigration:
			moving[f.Object.UID] = true
		case trail.ObjectVMI, trail.ObjectNode:
			if was := first[f.Object.UID]; was == nil || compareWritten(f, was) < 0 {
				first[f.Object.UID] = f
			}
			if was := last[aspect{f.Object.UID, f.What}]; was == nil || compareWritten(f, was) > 0 {
				last[aspect{f.Object.UID, f.What}] = f
			}
		default:
		}
	}
	var out []trail.Fact
	for i := range facts {
		f := &facts[i]
		there := f.OccurredAt.Before(since) && !gone[f.Object.UID]
		pod := f.Object.Kind == trail.ObjectPod && (!ended[f.Object.UID] || f.Reason == trail.ReasonPodEnded)
		if there && (pod || f == first[f.Object.UID] || f == last[aspect{f.Object.UID, f.What}]) ||
			f.OccurredAt.Before(since) && moving[f.MigrationUID] {
			out = append(out, *f)
		}
	}
	return out
}

// compareWritten orders facts of one object by the versions at which they showed, and by their times.
func compareWritten(a, b *trail.Fact) int {
	return cmp.Or(
		cmp.Compare(len(a.Object.ResourceVersion), len(b.Object.ResourceVersion)), cmp.Compare(a.Object.ResourceVersion, b.Object.ResourceVersion),
		a.OccurredAt.Compare(b.OccurredAt),
	)
}

// CompareStateBefore reads facts from before a boundary, at moments of simulated histories and of every subject, by a function: it has to find those that StateBefore
// says of a time some minutes before the boundary, and all since that time. What it finds from the boundary on does not matter.
func CompareStateBefore(t *testing.T, read func(s *store.Store, subjects []trail.Subject, since, boundary time.Time) ([]trail.Fact, error)) {
	t.Helper()
	facts := Shifts(rand.New(rand.NewPCG(5, 7)), 52, 24)
	s := New(t)
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
	all := trail.BySubject(facts)
	left := 0
	for _, share := range []float64{0.2, 0.5, 0.9} {
		since := begin.Add(time.Duration(share * float64(length)))
		boundary := since.Add(20 * time.Minute)
		found, err := read(s, slices.Collect(maps.Keys(all)), since, boundary)
		require.NoError(t, err)
		got := trail.BySubject(between(found, time.Time{}, boundary))
		for of, its := range all {
			before := StateBefore(its, since)
			left += len(between(its, time.Time{}, since)) - len(before)
			require.Equal(t, ids(append(before, between(its, since, boundary)...)), ids(got[of]), "%s since %s", of, since)
		}
	}
	require.Greater(t, left, 1000, "of older facts most say nothing")
}
