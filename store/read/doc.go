// Package read answers questions about what is stored, and writes nothing.
//
//	whole := read.New(db)
//	answer, err := whole.Why(ctx, trail.Question{Of: trail.VMISubject("shop", "db-1")})
//	mine := whole.SeenBy(scope) // the same questions, for a caller who sees some namespaces
//
// A Reader (reader.go) returns to its caller what that one may see. Lists and searches read the views of evictrail_v1 and what
// they are made of: view.go, loop.go, acknowledgement.go, recorded.go, find.go, names.go, nodes.go, changes.go, columns.go. The state of a cluster is read by
// overview.go, fleet.go, state.go, moved.go, evacuation.go, settings.go, requests.go and clusters.go, that of its recorders by
// recorders.go. Of a standby a reader speaks for the moment up to which that has what was written (standby.go).
//
// Why a VM or a node is as it is, is a question (question.go). It is an inquiry (history.go) into one moment: as of now rows are
// read (now.go), as of then they are derived of facts (past.go, derive.go), but for what dropping facts has settled (settle.go).
// basis.go returns the facts behind an answer.
// whatif.go replays a period under other policies.
//
// Each question runs in a transaction that sees one state and takes no longer than 5 s a statement (transaction.go). Errors are
// those of package pg and, where a comment says so, trail.ErrNotFound, *trail.AmbiguousError and *trail.TooLargeError.
package read
