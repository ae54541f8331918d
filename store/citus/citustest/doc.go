// Package citustest has a stand-in for Citus, for tests on a plain Postgres: the catalogue and the functions that
// evictrail asks of Citus, by which nothing is spread. It shows which statements evictrail sends, and that its names
// and types are those of its own tables; not that Citus takes them.
package citustest
