// Package pooler puts Debian's pgbouncer between evictrail and Postgres: in transaction mode each transaction may be served by another backend,
// and what a session holds (prepared statements, locks of its own) does not last. hack/ensure-pgbouncer.sh brings the program.
package pooler
