// Package spool keeps on disk what the database has not confirmed yet.
//
// Facts and signs of life go in by Take and Sign, in order, and come out by Next in the same order; Stored says that what Next gave is in
// the database, and deletes it. Take returns when its facts are on disk and synced. One goroutine takes, one drains; all else is safe for
// concurrent use.
//
//	Take, Sign --> a bbolt file: queue | state | what is known --> Next, Stored
//
// Beside the queue the file has the state of the Tracker and how far was seen (known.go), so that evictrail can start while the database is
// away. Every value carries a checksum and its number (frame.go): what cannot be read is counted and told as a gap, and when the structure
// of the file is damaged what is whole is found by reading it from end to end (rescue.go).
//
// A spool has a bound. Before it is full, what matters least is left out, counted, and told as a gap once there is room (shed.go). Without a
// disk that can be written, Take hands its facts to the database and waits for that: then whoever calls it keeps the rest in memory.
package spool
