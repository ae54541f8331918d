// Package export writes what is recorded to files that a lakehouse reads: facts, and the rows of the views of schema
// evictrail_v1, as JSON lines or Parquet, a file for each cluster and day.
//
//	e := export.Exporter{DB: db, Columns: columns}
//	done, err := e.Run(ctx, export.Job{Dataset: facts, Format: export.Parquet, Dir: "lake", Clusters: []string{"prod"}})
//
//	lake/facts/_manifest.jsonl
//	lake/facts/cluster=prod/date=2026-11-20/facts-0000000000000000001-6f1c2a3b.parquet
//	lake/evacuations/_manifest.jsonl
//	lake/evacuations/cluster=prod/date=2026-11-20/evacuations.parquet
//
// A job may end at any point, and the next one goes on where it ended: nothing is doubled, nothing is left out. There
// are two sorts of datasets:
//
//   - Facts are only added. They are exported in the order in which they were stored (seq), by the day on which they were: one
//     that comes late is in the files of the day on which it came. A file is never written again. What is exported is a cursor in
//     the manifest, which is written with the file (facts.go).
//   - Rows of views change: those of what is open, and those of last week when an audit log is imported. They are exported by
//     the day of the view's time, a file for each. The manifest has a fingerprint of the rows of each file; a day whose
//     fingerprint is another one is written again as a whole, and replaces the file (days.go). So no row is ever in two files.
//     What retention deletes from the database stays in its file.
//
// dataset.go has what can be exported, job.go a job, manifest.go what a folder has of earlier ones, file.go how a file
// comes into being, format.go and parquet.go what is in it, query.go how rows are read, stream.go a job without a
// folder. Rows are read a few thousand at a time or streamed, in short transactions: memory is bounded, and nobody
// waits for an export.
package export
