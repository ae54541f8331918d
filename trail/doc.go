// Package trail is the domain of evictrail: what a collector saw goes in, reasoned facts and what ties them together
// come out.
//
// The way of a fact is one line through this package:
//
//	Observation  --Tracker.Observe-->  Fact  --Derive-->  Derived
//
// An Observation is one Kubernetes object as it was seen, a call of the API server, or a list or gap of the watch that
// sees. A Fact is a
// change worth a row: it is stored once and never altered, it names the object, what changed, and the
// resourceVersion at which that showed, and its ID follows from these alone. Derived rows (evacuations with their
// attempts, migrations, placements, gaps, timeline sentences) are a pure function of the facts of one Subject and the
// Env around it, so the order in which facts arrive does not matter and deriving again gives the same rows.
//
// Rules that hold everywhere here: standard library only; no clock, no I/O, no logging, no goroutine, no package
// state; time arrives inside an observation or as an argument, in UTC. Nothing is safe for concurrent use unless it
// says so; the collector's one goroutine owns the Tracker.
//
// One noun, one file: vmi.go, pod.go, migration.go, node.go, config.go, kubeevent.go, request.go, scrape.go and gap.go each hold
// what is seen of that noun and which facts it makes; told.go (one request, whoever saw it), met.go (what each request
// did), action.go (who did the rest), requester.go, launcher.go, outcome.go (one migration), evacuation.go, attempt.go
// (which migration belongs to which evacuation), trigger.go, failure.go, placement.go, ending.go and timeline.go hold
// what is derived; sentence.go and wording.go put it into words. Read observation.go, fact.go and reason.go first, then
// tracker.go, then derive.go.
package trail
