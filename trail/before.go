package trail

import (
	"cmp"
	"time"
)

// StateBefore returns those of a subject's facts from before a time that say how it stood then; what happened since is understood by them. They come in
// the order of facts, each once. Whoever derives a VM in part reads them, and where facts are dropped they are kept; the store's SQL is compared with this.
//
//   - Of a pod or a migration that was there, everything, also what other objects say of the migration: KubeVirt counts the last ones that are there.
//   - Of a VMI or a node that was there, how it was first seen, and each aspect (Fact.What) as it was last. They live long.
//   - Of an object that was gone (WhatGone), and of anything else, nothing.
//
// For example, a VMI was placed on n1, marked, moved to n2 by a migration, and unmarked; the migration was deleted, and later the VMI was marked again. Before
// the last mark these say how it stood: that it was placed on n1, as it was first seen so, that it runs on n2, and that it is not marked.
func StateBefore(facts []Fact, since time.Time) []Fact {
	type aspect struct{ uid, what string }
	gone, moving := map[string]bool{}, map[string]bool{}
	first, last := map[string]*Fact{}, map[aspect]*Fact{}
	for i := range facts {
		if f := &facts[i]; f.What == WhatGone && f.OccurredAt.Before(since) {
			gone[f.Object.UID] = true
		}
	}
	for i := range facts {
		f := &facts[i]
		if !f.OccurredAt.Before(since) || gone[f.Object.UID] {
			continue
		}
		switch f.Object.Kind {
		case ObjectMigration:
			moving[f.Object.UID] = true
		case ObjectVMI, ObjectNode:
			if was := first[f.Object.UID]; was == nil || written(f, was) < 0 {
				first[f.Object.UID] = f
			}
			if was := last[aspect{f.Object.UID, f.What}]; was == nil || written(f, was) > 0 {
				last[aspect{f.Object.UID, f.What}] = f
			}
		default:
		}
	}
	var out []Fact
	for i := range facts {
		f := &facts[i]
		there := f.OccurredAt.Before(since) && !gone[f.Object.UID]
		if there && (f.Object.Kind == ObjectPod || f == first[f.Object.UID] || f == last[aspect{f.Object.UID, f.What}]) ||
			f.OccurredAt.Before(since) && moving[f.MigrationUID] {
			out = append(out, *f)
		}
	}
	return out
}

// written orders facts of one object by the versions at which they showed, and by their times.
func written(a, b *Fact) int {
	return cmp.Or(
		cmp.Compare(len(a.Object.ResourceVersion), len(b.Object.ResourceVersion)), cmp.Compare(a.Object.ResourceVersion, b.Object.ResourceVersion),
		a.OccurredAt.Compare(b.OccurredAt),
	)
}
