// Package store keeps facts and what is derived of them in Postgres.
//
// Append is the one way in: in one transaction it takes the rows of the subjects concerned, adds the facts that are
// new, derives those subjects again from those of their facts that matter to what changed, and replaces their derived rows; one portion of the subjects
// after the other, where they have more than is held at once. Two writers may append at once: whoever holds a subject's
// row derives it, the other waits and then sees the first one's facts.
//
// Every call may fail with ErrUnavailable (try again: unreachable, read-only, full, overloaded), ErrSchema (the
// database and this program do not fit) or trail.ErrRefused (these facts will never fit). errors.go alone knows
// Postgres' codes.
//
// Read facts.go for what is stored, portion.go for how much at once, derived.go for what is replaced, concerned.go for
// which VMs a fact derives, around.go for what they are derived with, later.go for the nodes that are left, bulk.go for facts that are derived later; then view.go
// and one file per noun for reading.
package store
