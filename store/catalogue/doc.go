// Package catalogue compares the schema that a database really has with the one that this program expects:
//
//	found, err := catalogue.Read(ctx, db)
//	for _, d := range catalogue.Compare(catalogue.Expected(), found) {
//		fmt.Println(d.Verdict, d.Kind, d.Name) // missing index evictrail.events_by_seq
//	}
//
// Read asks the catalogues of Postgres alone, so it needs no right on any table: a reader may ask, and nothing is
// built to compare with. What is expected is expected.txt, which a test makes of a database with the schema of
// package migrations, and compares with it. A test of package store compares by the same Read what an upgrade and a
// new database come to.
//
//	object.go    an object of a schema, its text, and what of it is expected
//	read.go      the objects that a database has
//	compare.go   how two schemas differ; versions of Postgres write a view in different ways
//
// What may vary is no difference: the months of facts, what is being dropped, the order of a table's columns, comments,
// rights, and what belongs to an extension, such as Citus.
//
//go:generate go test . -run ^TestExpectedIsFresh$ -update
package catalogue
