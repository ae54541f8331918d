// Package storetest makes each test a database of its own, with the current schema, on a real Postgres: the one that
// EVICTRAIL_TEST_DATABASE_URL names (its user must be allowed to create databases), else an embedded one that the tests
// of a package share. A machine without a Postgres server fails with the name of the package to install.
//
//	s := storetest.New(t)
//	storetest.Record(t, s, facts) // stored, and derived
//	rows := storetest.DerivedRows(t, s)["loops"]
//
// What tests of several rooms share is here, too: made-up histories (incident.go, sources.go, shifts.go), what a database says (database.go), and
// comparisons of that with what all facts say (answers.go, statebefore.go). A primary with a standby is made by replication.go.
package storetest
