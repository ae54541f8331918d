// Package sim plays KubeVirt's evacuation controller and the descheduler against each other, and knows what happened.
//
//	run, t := sim.New(7), tracker.New("c1")
//	for _, o := range run.Observations {
//		facts = append(facts, t.Observe(o)...)
//	}
//	found := trail.DeriveAll(facts, trail.DefaultThresholds(), run.End) // has the loops of run.Loops
//
// A seed goes in; a Run comes out: what a collector would have seen of some hours of a cluster, in the order in which
// it would have seen it, and the dual retry loops that there really were. Tests turn the first into facts, derive, and
// compare with the second:
//
//	seed  --New-->  Run.Observations  --tracker.Tracker-->  facts  --trail.DeriveAll-->  loops
//	                Run.Loops         -------------------- must be the same -------------^
//
// The truth is never read from the observations. The simulated evacuations remember when an attempt of theirs failed,
// and the moment at which the simulated descheduler acts on their node is written down as it happens (truth.go). So a
// wrong rule of ours and a wrong story here cannot agree by being the same code.
//
// It is a discrete-event simulation: a queue of moments (clock.go), one of which changes one object; each change bumps a
// resource version and is seen some ten milliseconds later (watch.go). Nothing reads a clock or the machine's chance:
// the same seed makes the same run on every machine. Nothing here is safe for concurrent use; runs share nothing.
//
// One noun, one file: cluster.go (nodes, VMs and where the guests are), vmi.go and pod.go, kubevirt.go (releases, the
// eviction webhook and the evacuation controller), migration.go (the life of one VMIM) with backoff.go and ending.go,
// descheduler.go, drain.go, upgrade.go, people.go, plot.go (what a run injects: loops, or what only looks like one), truth.go,
// run.go, cut.go (the same history through watches that break), big.go and long.go (large clusters). Start with run.go and plot.go.
//
// Not modelled: the cooldown plugin, restarts of the descheduler (and so CronJob mode) and of KubeVirt, Kubernetes
// Events, the observer's admission reviews, dry runs, drain taints, paused guests, workload updates but in runs of
// upgrade.go, decentralized migrations, post-copy, budgets of users, evictors other than the descheduler and kubectl, and clocks that disagree.
//
// What a resolution of 1 s cannot order is kept from happening: an act of the descheduler stays 3 s away from what
// happened before it on its node, and 2 s from what comes after (cluster.go, unclear and clear).
package sim
