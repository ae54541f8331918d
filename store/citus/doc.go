// Package citus spreads the tables of evictrail over the servers of a Citus cluster, by the column cluster
// (docs/scale.md). Citus is an extension of a server of the user's own: nothing of it is linked, and a plain Postgres
// needs none of this.
//
// placing.go says which table is kept how. Package lint judges statements by what Citus refuses.
package citus
