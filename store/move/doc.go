// Package move moves the whole record of a cluster from one database to another, so that nothing is lost and the next
// recorder goes on where the last one ended.
//
//	m := move.Mover{From: old, To: new, Cluster: "prod"}
//	did, err := m.Run(ctx, false) // true: then delete it from the source
//
// What is moved are the rows of the cluster in all tables of schema evictrail that have a column cluster, as the
// catalogue has them (table.go): a new table is moved without anything being written for it, if it has a primary key. A
// fact keeps its number and the time at which it was stored, so exports go on by their cursors, and digests of days
// stay valid.
//
//   - Nobody records during that time (guard.go). The lock with which replicas record one after the other is held in
//     both databases, replicas that report stop the move before it begins, and a cluster of which a part is in a
//     database (table evictrail.moves) is not recorded there, also while no move runs.
//   - Rows are copied in the order of their keys, a chunk in each transaction (copy.go). The transaction has the last
//     key as well: a move that is killed goes on after it. Rows go from COPY to COPY, so no chunk is held in memory.
//   - Then each table is compared (compare.go): rows are counted and digested in 256 parts. Parts that differ are
//     copied again, as the source may have changed between two runs: retention drops rows of all clusters, or a
//     recorder ran in between. What differs three times is an error that names the table. So equal digests prove the
//     copy, not the copying.
//   - Only then the number that the next fact gets is set, and the cluster noted as arrived, with the digests. The
//     source is deleted (drop.go) only if it still has them.
//
// Run is the place to start reading (move.go). The source is only read until it is deleted. Transactions are short in
// both databases, as a long one that reads facts would keep others from making the partition of a month.
package move
