// Package retention drops what was kept for long enough, so that no answer changes: whole months of facts, but for
// those on which what came after rests (dropping.go, reach.go), derived rows (rows.go), and the names of people
// (names.go).
//
//	policy := retention.Policy{Facts: 90 * 24 * time.Hour, Rows: 400 * 24 * time.Hour}
//	err := retention.SetPolicy(ctx, db, "prod", policy)
//	done, err := retention.Retain(ctx, db, policy, now) // of all clusters; by policy those without one of their own
//
// Retain (retention.go) does all of it, a little at a time. A month goes when no cluster needs it (policies.go); a
// cluster that is kept for a shorter time than others loses its facts within the month (thinning.go). Measure
// (storage.go) reports what lies in a database, how fast it grows and what a Policy makes of that. Anyone who records
// facts has those kept that come late (KeepLate).
//
// It is pure maintenance: nothing of it knows what facts mean, but for how far back they matter (tables.Reach).
// Errors are those of package pg; pg.ErrUnavailable also where the database's user has not the role
// evictrail_retention.
package retention
