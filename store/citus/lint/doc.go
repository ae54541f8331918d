// Package lint judges SQL by what Citus refuses. It is for tests, and needs a plain Postgres alone: that parses a
// statement, replaces its views and reports the query tree, of which Citus plans. No Citus has a part in it, so it
// finds what these rules know and nothing else.
//
//	l, err := lint.New(ctx, url)
//	found, err := l.Lint(ctx, "UPDATE evictrail.loops SET summary = $1 RETURNING (node, vmi)::text")
//	// returning: non-IMMUTABLE functions are not allowed in the RETURNING clause (...)
//
// A statement whose tables all have the same cluster = value is routed: one server runs it as it is, and most rules are
// of the others. Rules of statements, with what Citus 13 prints:
//
//	returning  non-IMMUTABLE functions are not allowed in the RETURNING clause
//	case       non-IMMUTABLE functions are not allowed in CASE or COALESCE statements (of UPDATE and DELETE)
//	columns    a column definition list is required for functions returning "record" (SELECT FROM without a column)
//	recursive  recursive CTEs are only supported when they contain a filter on the distribution column
//	ctid       Recursively planned distributed modifications with ctid on where clause are not supported.
//	volatile   functions used in UPDATE queries on distributed tables must not be VOLATILE
//	stable     STABLE functions used in UPDATE queries cannot be called with column references
//	conflict   functions used in the DO UPDATE SET clause of INSERTs on distributed tables must be marked IMMUTABLE
//	insert     subqueries are not supported within INSERT queries
//	lateral    complex joins are only supported when all distributed tables are co-located and joined on their distribution columns
//	outer      cannot perform a lateral outer join when a distributed subquery references a set returning function
//	row        no error: to_jsonb(v) of a view without LIMIT has the keys f1, f2, ...
//	size       no error: pg_total_relation_size does not count what lies on other servers
//	lock       could not run distributed query with FOR UPDATE/SHARE commands
//
// Rules of commands that have no query tree, which are found by their texts:
//
//	plan       could not create distributed plan (with plan_cache_mode = force_generic_plan)
//	check      cannot execute ADD COLUMN command with PRIMARY KEY, UNIQUE, FOREIGN and CHECK constraints
//	drop       cannot drop multiple distributed objects in a single command
//	trigger    triggers are not supported on distributed tables
//
// The files: lint.go asks Postgres for trees and goes through the rules (rules.go, script.go); node.go reads trees,
// query.go finds out what belongs to one cluster, catalogue.go how stable functions are; capture.go has a server write
// down what it gets.
package lint
