// Package load reads what folding needs and does not hold in memory: it is the fold.Source of a cluster on Postgres.
//
//	c := fold.New(load.New(db, "prod"), 64<<20) // folds what is dirty, and loads the windows that it does not hold
//
// windows.go loads windows of history: of a subject the facts since a time, those from before it that say how it stood, and the rows
// that had not ended. nodes.go loads what nodes and the cluster are derived of. affected.go finds whom new facts concern beside
// their own subjects. All of it reads, each in transactions of its own in which no facts are dropped. Errors are those of package pg.
package load
