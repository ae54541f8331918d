package sim

import (
	"slices"
	"time"
)

// Drained is a history that ends with a drain.
type Drained struct {
	Run
	Node  string
	Began time.Time            // when somebody began to drain it
	Left  map[string]time.Time // when each of its guests left it, by namespace/name, to the second; zero where it did not
}

// drainPatience is how long the drain of a Drained goes on.
const drainPatience = 12 * time.Hour

// NewDrained plays some hours of a cluster whose VMs differ in size, in which migrations fail by chance, from one seed to
// another between never and a share at most, and then the drain of a node until all have left that can be moved.
func NewDrained(seed uint64, failing float64) Drained {
	d := newDice(seed)
	o := options{
		nodes: d.pickInt(4, 8), hours: d.pickDuration(8*time.Hour, 24*time.Hour), policySeen: true, auditDelay: 300 * time.Millisecond,
		flaky: failing * d.Float64(), transfer: d.pickDuration(8*time.Second, 90*time.Second), scatter: 0.1 + 0.2*d.Float64(),
		perNode: d.pickInt(1, 4), perCluster: d.pickInt(4, 10),
	}
	o.vms = o.nodes * d.pickInt(3, 12)
	o.userEvery = o.hours / time.Duration(o.vms*d.pickInt(1, 3)) // each VM is moved once, or some times
	c := assembleCluster(d, o, pickOne(d, v160, v164, v184, v184queue, v190))
	r := Drained{Run: Run{Seed: seed, KubeVirt: c.release.version, Start: c.clock.now}, Left: map[string]time.Time{}}
	c.createNodesAndVMs()
	c.startBackgroundActivity()
	c.clock.runUntil(c.clock.now.Add(o.hours))
	n := pickOne(d, c.nodes...)
	for len(n.guests) == 0 {
		n = pickOne(d, c.nodes...)
	}
	r.Node, r.Began = n.meta.Name, c.clock.now
	guests := slices.Clone(n.guests)
	c.startDrain(n, drainPatience, func() {})
	for c.clock.now.Before(r.Began.Add(drainPatience)) && !c.haveLeft(guests, n, r.Left) {
		c.clock.runUntil(c.clock.now.Add(time.Second))
	}
	r.Observations, r.End = c.watch.listObservations(), c.clock.now.Add(time.Minute)
	return r
}

// haveLeft notes which guests have left a node, and reports whether all have that can be moved.
func (c *cluster) haveLeft(guests []*vm, n *node, left map[string]time.Time) bool {
	all := true
	for _, v := range guests {
		name := v.namespace + "/" + v.name
		switch {
		case !left[name].IsZero():
		case v.vmi.node != n.meta.Name:
			left[name] = c.clock.now
		default:
			left[name] = time.Time{}
			all = all && (!v.migratable || v.strategy != "LiveMigrate")
		}
	}
	return all
}
