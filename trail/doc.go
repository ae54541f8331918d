// Package trail is the domain of evictrail: facts go in, what ties them together and answers in words come out.
//
//	c := trail.DeriveAll(facts, trail.DefaultThresholds(), now)
//	c.VM("shop", "db-1").Evacuations     // rows: when it was marked, how often a migration was tried, how that ended
//	c.Why("shop", "db-1").Paragraph      // the same in words
//
// The way of a fact is one line, of which the first step has a package of its own (trail/tracker):
//
//	Observation  --tracker.Tracker.Observe-->  Fact  --Derive-->  Derived
//
// A Fact is a change worth a row: it is stored once and never altered, it names the object, what changed, and the resourceVersion at which that showed, and its ID
// follows from these alone. Derived rows are a pure function of the facts of one Subject, the Env around it and the moment for which they speak, so the order in
// which facts arrive does not matter and deriving again returns the same rows. VMs are derived first; what belongs to a node, or to the cluster, follows from their
// rows.
//
// Rules that hold everywhere here: standard library only; no clock, no I/O, no logging, no goroutine, no package
// state; time arrives in a fact or as an argument, in UTC, and is compared with by moment.reached alone. Nothing
// is safe for concurrent use unless it says so.
//
// One noun, one file:
//
//   - what facts are and say: fact.go, kinds and reasons in reason.go, what each kind says beside in vmi.go, pod.go, migration.go, config.go, migrationpolicy.go,
//     kubeevent.go, request.go, load.go; gap.go (what was not seen), epoch.go (versions), fresh.go (what two replicas saw), plausible.go (times), written.go (as JSON)
//   - what is derived of a VM: request_join.go (one request, no matter who saw it), request_effect.go (what each request did), action.go (who did the
//     rest), requester.go, launcher.go, outcome.go (one migration), evacuation.go, objective.go (whether in time), refusals.go (what the scheduler said), outlook.go (whether an open evacuation
//     can succeed), attempt.go (which migration belongs to which evacuation), trigger.go, failure.go, placement.go, ending.go, wait.go
//     (why a migration waits), decision.go with cooldown.go and backoff.go (what holds it back), bounce.go (loops of one VM)
//   - what is derived of a node, by nodeview.go: retry.go and slots.go (loops), drain.go, blocks.go (what the descheduler counted, as a fact and as a row),
//     outage.go (when it was not ready)
//   - loop.go and thresholds.go (what a loop is), timeline.go, moment.go (time), cluster.go (everything at once)
//   - what of a history is left alone, and what of it must be known to go on: open.go (until when a row is open), settled.go
//   - what holds when: env.go, policy.go (settings in force, and their fingerprints), semantics.go (which rules follow from versions)
//   - what values are called: labels.go (the table), label.go
//   - what is said: sentence.go, evacuation_story.go and whynode.go (why), whynot.go and standing.go (why not), advice.go (what to do), wording.go
//
// Below, package tracker makes facts of what was seen, package fold keeps rows up to date, package whatif replays what was derived under policies that were not in
// force, and package sim plays histories for tests.
//
// Read fact.go and reason.go first, then derive.go.
package trail
