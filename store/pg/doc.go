// Package pg is what every room of the store needs of Postgres: connections to one database (db.go), transactions that
// are done again (tx.go), its URL, passwords and certificates (link.go), poolers before it (pooler.go), what its errors mean
// (errors.go), and values as columns have them (values.go, json.go, scan.go).
//
//	db, err := pg.Connect(ctx, url, "", nil)
//	err = db.InTx(ctx, "count facts", func(tx pgx.Tx) error {
//		return tx.QueryRow(ctx, "SELECT count(*) FROM evictrail.events").Scan(&n)
//	})
//	// errors.Is(err, pg.ErrUnavailable): try again
//
// The errors of a store are here. A call may fail with ErrUnavailable (try again: unreachable, read-only, full,
// overloaded), ErrSchema (the database and this program do not fit), ErrDeposed (another replica derives) or
// trail.ErrRefused (these facts will never fit). errors.go alone knows Postgres' codes.
package pg
