// Package migrations holds the schema of evictrail's database, and what brings a database of an older schema to it:
//
//	for _, script := range migrations.Update(38) { // of a database whose schema has version 38, in order
//		_, err := tx.Exec(ctx, script.SQL)
//	}
//
//	schema/      tables with their indexes, as they are: what an empty database gets
//	functions/   functions, one file each, written as CREATE OR REPLACE
//	views/       the views that readers see, one file each, written as CREATE OR REPLACE
//	steps/       NNN_what.sql: what brings the tables of schema NNN-1 to NNN
//
// The version of the schema is that of the last step. Anyone who changes a table changes its file and writes a step that does
// the same to a table that is there; a test of package store compares what both come to. Functions and views are applied
// again after steps, so they are changed in their files alone, with a step that says so where it does nothing else. Of views
// columns are only added, at the end: anything else is a new schema of views. A step that takes away a column drops the
// view first, and what it was granted with it.
//
// A step is never edited after a release, and safe while a program of the version before still writes (docs/adr/0038). All of
// an update is one transaction. Package store applies it.
package migrations
