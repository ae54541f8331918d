// Package retention drops what was kept for long enough, so that no answer changes: whole months of facts, but for
// those on which what came after rests (dropping.go, reach.go), derived rows (rows.go), and the names of people (names.go).
//
//	done, err := retention.Retain(ctx, db, retention.Policy{Facts: 90 * 24 * time.Hour, Rows: 400 * 24 * time.Hour}, now)
//
// Retain (retention.go) does all of it by a Policy, a little at a time. Measure (storage.go) reports what lies in a database, how fast it
// grows and what a Policy makes of that. Anyone who records facts has those kept that come late (KeepLate).
//
// It is pure maintenance: nothing of it knows what facts mean, but for how far back they matter (tables.Reach). Errors are those of package
// pg; pg.ErrUnavailable also where the database's user has not the role evictrail_retention.
package retention
