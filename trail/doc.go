// Package trail is the domain of evictrail: what a collector saw goes in, reasoned facts and what ties them together
// come out.
//
// The way of a fact is one line through this package:
//
//	Observation  --Tracker.Observe-->  Fact  --Derive-->  Derived
//
// An Observation is one Kubernetes object as it was seen, a call of the API server, the metrics of a descheduler, or a list or
// gap of the watch that sees. A Fact is a change worth a row: it is stored once and never altered, it names the object, what
// changed, and the resourceVersion at which that showed, and its ID follows from these alone. Derived rows are a pure function
// of the facts of one Subject, the Env around it and the moment for which they speak, so the order in which facts arrive does
// not matter and deriving again gives the same rows. VMs are derived first; what belongs to a node, or to the cluster, follows
// from their rows.
//
// Rules that hold everywhere here: standard library only; no clock, no I/O, no logging, no goroutine, no package
// state; time arrives inside an observation or as an argument, in UTC, and is compared with by moment.reached alone. Nothing
// is safe for concurrent use unless it says so; the collector's one goroutine owns the Tracker.
//
// One noun, one file:
//
//   - what is seen of it and which facts that makes: vmi.go, pod.go, migration.go, node.go, config.go, migrationpolicy.go, kubeevent.go, request.go,
//     scrape.go, gap.go
//   - what is derived of a VM: told.go (one request, whoever saw it), met.go (what each request did), action.go (who did the
//     rest), requester.go, launcher.go, outcome.go (one migration), evacuation.go, objective.go (whether in time), attempt.go (which migration
//     belongs to which evacuation), trigger.go, failure.go, placement.go, ending.go, wait.go (why a migration waits), decision.go with cooldown.go
//     and backoff.go (what holds it back), bounce.go (loops of one VM)
//   - what is derived of a node, by nodeview.go: retry.go and slots.go (loops), drain.go, blocks.go (what the descheduler counted),
//     outage.go (when it was not ready)
//   - loop.go and thresholds.go (what a loop is), timeline.go, moment.go (time), cluster.go (everything at once)
//   - what of a history is left alone, and what of it must be known to go on: open.go (until when a row is open), settled.go, before.go (which older facts)
//   - what holds when: env.go, policy.go (settings in force, and their fingerprints), semantics.go (which rules follow from versions)
//   - what is said: sentence.go, evacuation_story.go and whynode.go (why), whynot.go and standing.go (why not), advice.go (what to do), wording.go
//
// Package whatif below replays what was derived under policies that were not in force; package sim plays histories for tests.
//
// Read observation.go, fact.go and reason.go first, then tracker.go, then derive.go.
package trail
