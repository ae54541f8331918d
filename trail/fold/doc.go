// Package fold derives the rows of one cluster from its facts as they arrive, with the open part of its history in memory.
//
// Facts are recorded first, by anyone who saw them. The holder of the lease then folds them in: a Cluster keeps a Window of each
// subject that something happens to, its facts and its rows, derives the windows that are dirty again (trail.Derive), and
// returns what is to be written:
//
//	c := fold.New(source, 64<<20)
//	changes, err := c.Fold(ctx, fold.Batch{Now: now, Dirty: []fold.Dirty{{Subject: vm, Since: at, Version: 7, Facts: phase}}})
//	// changes.Rows["migrations"] has the migration as it stands now, changes.Clean[vm] is 7
//
// What holds:
//
//   - After any sequence of batches the rows that were written are those that trail.DeriveAll returns for all facts: whatever
//     the batches were, whichever windows were evicted in between, wherever the process was restarted.
//   - A Window is complete for changes since a time (Window.Since): what ended before, and was not open within the lookback
//     before that (trail.Reach), cannot change any more. An older change loads the window again, from further back.
//   - Rows are derived in the order in which they depend on each other: VMs, then the VMs that waited for slots that these took or
//     freed, then nodes, then the cluster as a whole.
//   - A subject whose derivation panics is left out and reported (Changes.Failed); its rows stay, the others go on.
//   - Fold changes the Cluster before its result is written. When the writing fails, call Reset: everything is loaded again.
//
// The package is pure but for what a Source reads: no SQL, no clock, no goroutine that outlives a Fold. Read cluster.go first, then window.go, impact.go
// (whom a fact affects), vm.go, queue.go (slots of migrations), node.go, and rows.go (how rows are compared).
package fold
