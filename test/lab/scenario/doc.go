// Package scenario reads and runs scenarios of the lab: what VMs there are and how their migrations go, what happens, and what must come of it.
//
// A scenario is a YAML file of scenarios/:
//
//	about: KubeVirt cannot move db-1 and tries again and again.
//	nodes: [worker-1, worker-2]
//	vms:
//	  - {name: db-1, node: worker-1, migrations: [{outcome: fail, after: 4s}]}
//	steps:
//	  - kubectl: [evict, db-1]
//	  - until: {vm: db-1, failed: 3}
//	    within: 3m
//	expect:
//	  loops: [{kind: endless_retry, vm: db-1}]
//
// Conditions read the objects of the cluster (package truth), never what evictrail recorded; only the step check asks evictrail. After the steps every row of evictrail is compared with the components, in each
// scenario; what stands below expect is compared beside that.
//
// Its files:
//
//   - scenario.go: the format, and reading it; step.go: the verbs of steps; duration.go: durations in YAML
//   - condition.go: what a step may wait for
//   - run.go: runs the steps on a Stage, which the lab is
package scenario
