// Package spool keeps on disk what the database has not confirmed yet.
//
// Facts and signs of life go in by Append and AppendSign, in order, and come out by Next in the same order; Confirm says that what Next returned is in the database.
// Append returns when its facts are on disk and synced. One goroutine appends, one drains; all else is safe for concurrent use.
//
//	Append facts 1-3   ->  0000000001-…1.facts: [1] [2] [3] [sign]
//	Append facts 4, 5  ->  0000000002-…4.facts: [4] [5]             mark: 1 to 6 wait
//	Next, Confirm      <-  1, 2, 3                                  mark: 4 to 6 wait; the first segment may go
//
// Everything is a frame with a checksum, and facts are numbered (frame.go): what is damaged is skipped, and a number that is missing is a fact that is lost, which
// is counted and recorded as a gap (queue.go). Segments are only appended to (journal.go). How far they are stored is a mark beside them. Two more files let evictrail
// start while the database is away: what is known of the past and of the cluster (known.go), and the states of objects (state.go), into which facts are folded before
// their segment is deleted.
//
// A spool has a bound. Before it is full, what matters least is left out, counted, and recorded as a gap once there is room (shed.go). Without a disk that can be
// written, Append hands its facts to the database and waits for that: then its caller keeps the rest in memory. A fact that is refused lies beside the spool
// (letters.go). Begin reading at Spool.commit and Spool.read.
package spool
