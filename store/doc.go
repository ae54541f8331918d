// Package store keeps facts and what is derived of them in Postgres.
//
// Facts come in by recording (record.go): one transaction inserts those that say something new (fresh.go) and marks their subjects as dirty. Every replica does that, and it
// never asks what facts mean. Rows come of deriving (deriver.go), which one replica does at a time, in a term (leader.go), or a tool that a user runs (byhand.go):
// package fold derives in memory, windows.go, noderows.go and affected.go read what that lacks, and flush.go writes what changed.
//
// Every call may fail with ErrUnavailable (try again: unreachable, read-only, full, overloaded), ErrSchema (the
// database and this program do not fit) or trail.ErrRefused (these facts will never fit). errors.go alone knows
// Postgres' codes.
//
// Then read facts.go and tables.go for what is stored, failures.go for what cannot be derived; view.go and one file per noun for reading;
// retention.go for what goes in the end.
package store
