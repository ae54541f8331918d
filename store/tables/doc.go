// Package tables is how what is stored is written and read, in the same way by all rooms of the store: facts (facts.go,
// factreader.go, and the questions for them that rooms share in factqueries.go), the rows that are derived of them
// (derived.go, rowreader.go), what is known of subjects (subjects.go) and of clusters (clusters.go), and what dropping
// facts leaves as it is (settled.go).
//
//	thresholds, err := tables.ThresholdsOf(ctx, tx, "prod")
//	err = tables.MarkAllDirty(ctx, tx, "prod")
//
// Queries are SQL with named arguments, which the comment of each names; @cluster is that of all. Nothing here begins a
// transaction, or knows what facts mean.
package tables
