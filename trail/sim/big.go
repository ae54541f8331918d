package sim

import "time"

// Big plays an hour of a large cluster: 10,000 VMIs on 200 nodes. Most of what is seen are updates that make no fact,
// as on a real cluster: each VMI reports something about once a minute. It takes about two seconds and 400 MB.
func Big(seed uint64) Run {
	d := newDice(seed)
	o := options{
		nodes: 200, vms: 10_000, hours: time.Hour, natural: true, flaky: 0.03, policySeen: true, auditDelay: 2 * time.Second,
		loops: 20, misses: 20, userEvery: 20 * time.Second, restartEvery: 20 * time.Second, statusEvery: time.Hour / (10_000 * 60),
	}
	c := assembleCluster(d, o, v190)
	c.descheduler.total, c.descheduler.gate = 0, true // no limit of the cluster keeps a plot waiting
	return c.runToEnd(seed)
}
