// Package tracker turns what a collector saw into facts.
//
// An Observation goes in: an object as it was seen, a call of the API server, the metrics of a descheduler, how loaded nodes were, the end of a list, or a gap of
// the watch that sees. Facts come out (trail.Fact), each a change worth a row. A Tracker remembers of each object the state that its facts said, aspect by
// aspect; what an observation adds to that state are the new facts. For example, three observations of a VMI make three facts:
//
//	version 10: runs on n1                  placed on n1
//	version 11: marked, by the descheduler  marked; the annotation is set
//	version 11, listed again                nothing
//
// What holds:
//
//   - Observing again adds nothing, and neither does what is older than what was seen. After a restart a new Tracker resumes from the last fact of each
//     aspect (Resume), and goes on as if there had been none.
//   - The ID of a fact follows from its natural key (trail.Fact.NaturalID), never from our clock. Anyone who sees the same makes the same fact.
//   - What an object dates by itself is read from there, as watches coalesce and relist: phases from status.phaseTransitionTimestamps, not from comparing old with new.
//   - Where the cluster went back, BeginEpoch has everything compared by its content, and things that happen once may happen once more.
//
// Like trail it is pure: standard library only, no clock, no I/O, no log, no goroutine. A Tracker is not safe for concurrent use; the collector's one goroutine
// owns it. Package trail does not know this package: facts are derived without it.
//
// Read tracker.go (the Tracker and what it remembers), recorder.go (how facts are made) and observation.go (what observations share) first, then one file per
// noun: vmi.go, pod.go, migration.go, node.go, config.go (KubeVirt's settings, the descheduler's policy), migrationpolicy.go, kubeevent.go with eventshare.go (how many
// of one namespace are recorded), request.go, scrape.go, load.go; epoch.go detects that a cluster went back.
package tracker
