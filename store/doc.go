// Package store keeps facts, and what is derived of them, in Postgres. Its rooms:
//
//	s, err := store.Open(ctx, url, "")
//	_, err = s.Append(ctx, "prod", facts)     // records them, and marks their subjects as dirty
//	_, _, err = s.DeriveDue(ctx, "prod", now) // derives the rows of these, as a tool does
//	answer, err := s.Why(ctx, trail.Question{Cluster: "prod", Of: trail.VMISubject("shop", "db-1")})
//
//	what was seen                    a tick, or a tool            a question     an hour is over
//	      |                                 |                         |                |
//	   spool/  on disk first             lease  leader.go,            |                |
//	      |                                 |   byhand.go             |                |
//	      |                                 |                         |                |
//	   record  record.go, -- dirty -->   fold  deriver.go,            |                |
//	      |    replica.go    subjects    /    \     trail/fold        |                |
//	      |                           load/   flush                 read/         retention/
//	      |                             |       |   flush.go          |                |
//	 -----+-----------------------------+-------+---------------------+----------------+-----
//	          tables/  how facts, rows and subjects are written and read
//	          pg/      connections, transactions, errors, values
//	 ----------------------------------------------------------------------------------------
//	          Postgres: that of the user, or the one that embedded/ starts
//
// A room knows at most those below it, retention also read, and never this package, which ties them together:
//
//   - The database: store.go opens it, schema.go makes its schema (package migrations), condition.go and upkeep.go report how it is.
//   - Record: in one transaction record.go inserts the facts that say something new (fresh.go) and marks their subjects as dirty. partition.go
//     makes the months that they need, resume.go remembers how each object was seen last, clusters.go what is known of clusters;
//     statistics.go has Postgres count. Every replica does that, and it never asks what facts mean.
//   - A replica (replica.go) is what a collector writes to. epoch.go notices that the database lost what it had acknowledged, probe.go that it takes
//     nothing, report.go reports to the others how recording goes.
//   - Lease: one replica at a time derives, in a term (leader.go), or a tool that a user runs (byhand.go).
//   - Fold and flush: deriver.go has subjects derived that are dirty or due, in memory; load reads what that does not hold, and flush.go writes what changed.
//     failures.go leaves out for a while what cannot be derived.
//
// What people write themselves, acknowledgements, is no fact: acknowledge.go.
//
// Rooms beside these work on the DB of a Store: catalogue compares its schema with the expected one, evidence seals the
// facts of each day, export writes facts and views to files.
//
// A Store reads all of its database (read.Whole), and returns Readers of what callers see (SeenBy); package retention works on its DB. Package storetest makes tests a
// database each.
//
// Every call may fail with the errors of package pg: pg.ErrUnavailable (try again), pg.ErrSchema (the database and this program do not
// fit), pg.ErrDeposed (another derives) or trail.ErrRefused (these facts will never fit).
package store
