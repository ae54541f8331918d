package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// cluster is one simulated cluster and everything that goes on in it.
type cluster struct {
	clock       clock
	dice        dice
	watch       watcher
	options     options
	release     release
	kubevirt    tracker.Meta // of the KubeVirt CR
	upgrades    int          // of KubeVirt so far
	evicted     time.Time    // when the workload updater last evicted
	nodes       []*node
	vms         []*vm
	active      []*migration // those whose target pod exists and which are not over
	descheduler *descheduler
	all         *ledger // what every act of the descheduler made
	marks       *ledger // what its acts made that left a mark which says whose it is
	plots       []string
	noted       func(*migration) // tests may look on; nil otherwise
}

// node is a worker.
type node struct {
	meta     tracker.Meta
	cordoned bool
	load     float64 // of the guests on it
	heat     []*heat
	curses   []*curse  // each meets the next VM that is marked here
	touched  time.Time // something happened here whose order against an act a resolution of 1 s cannot show
	acted    time.Time // the descheduler's last act
	guests   []*vm

	fullUntil time.Time // other pods take its memory
}

// heat keeps a node over the descheduler's target, no matter who leaves it.
type heat struct {
	from, to time.Time
	acts     int // after so many acts it is over; negative: not before its time
}

// isHot reports whether a node is over the target. Without the gate the descheduler evicts all of a hot node, which makes
// the next one hot, without end: there only plots make heat.
func (c *cluster) isHot(n *node) bool {
	return n.isHeated(c.clock.now) || c.options.natural && c.descheduler.gate && n.load > c.tooMuch()
}

// isHeated reports whether a plot keeps the node over the target.
func (n *node) isHeated(now time.Time) bool { return n.heatAt(now) != nil }

func (n *node) heatAt(now time.Time) *heat {
	for _, h := range n.heat {
		if h.acts != 0 && !now.Before(h.from) && now.Before(h.to) {
			return h
		}
	}
	return nil
}

// tooMuch is the load above which a node is over the target: so far over the mean that balancing comes to an end, and
// some hundred evictions do not hide what was injected.
func (c *cluster) tooMuch() float64 {
	sum := 0.0
	for _, n := range c.nodes {
		sum += n.load
	}
	return sum/float64(len(c.nodes))*1.4 + 2
}

// vm is a virtual machine. Its guest runs in a VMI, another one after each restart.
type vm struct {
	namespace, name string
	strategy        string
	migratable      bool
	optedOut        bool // the descheduler leaves it alone: annotation prefer-no-eviction
	userFails       bool // the migrations that users start fail
	load            float64
	transfer        time.Duration // how long its memory takes to copy, mostly; zero: about 6 s
	curse           *curse
	bound           *binding // nil: any node may run it
	vmi             *vmi
}

// findNode finds a node by its name, nil where there is none.
func (c *cluster) findNode(name string) *node {
	for _, n := range c.nodes {
		if n.meta.Name == name {
			return n
		}
	}
	return nil
}

// placeGuest takes the guest to a node, or off all nodes if the name is empty.
func (c *cluster) placeGuest(v *vmi, name string) {
	if old := c.findNode(v.node); old != nil {
		old.load -= v.vm.load
		old.guests = slices.DeleteFunc(old.guests, func(g *vm) bool { return g == v.vm })
	}
	v.node = name
	if n := c.findNode(name); n != nil {
		n.load += v.vm.load
		n.guests = append(n.guests, v.vm)
	}
}

// chooseNode finds a node for a pod other than the one named: of two tries the less loaded one, so that it is a hot node
// now and then, as with the real scheduler, which knows requests but no load. Nodes that a plot heats are the last
// resort, as the plot would never end. Nil where no node is left.
func (c *cluster) chooseNode(v *vm, not string) *node {
	var fit, hot []*node
	for _, n := range c.nodes {
		switch {
		case c.refuseVM(v, n, not) != "":
		case n.isHeated(c.clock.now):
			hot = append(hot, n)
		default:
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		fit = hot
	}
	if len(fit) == 0 {
		return nil
	}
	a, b := pickOne(c.dice, fit...), pickOne(c.dice, fit...)
	if b.load < a.load {
		return b
	}
	return a
}

// isOrderUnclear reports whether an act on the node now could not be ordered against what happened there: the times of phases
// have a resolution of 1 s, two watches no common order, and a limit of 30 or 60 min must not be met by chance.
func (c *cluster) isOrderUnclear(n *node) bool {
	const apart = 3 * time.Second
	now := c.clock.now
	near := func(at time.Time) bool { return now.Sub(at).Abs() < apart }
	if near(n.touched) || near(n.acted.Add(quietAfter)) {
		return true
	}
	for _, e := range c.all.open {
		if e.node == n.meta.Name && near(e.failed.Add(staleAfter)) {
			return true
		}
	}
	return false
}

// runAfterActs does something that must be ordered against the descheduler's acts on a node, once 2 s have passed since the
// last of them.
func (c *cluster) runAfterActs(name string, do func()) {
	const apart = 2 * time.Second
	n := c.findNode(name)
	if n != nil && c.clock.now.Sub(n.acted) < apart {
		c.clock.scheduleAt(n.acted.Add(apart+c.dice.pickDuration(0, time.Second)), func() { c.runAfterActs(name, do) })
		return
	}
	if n != nil {
		n.touched = c.clock.now
	}
	do()
}

// createNodesAndVMs makes nodes and VMs and shows them as the first lists do.
func (c *cluster) createNodesAndVMs() {
	for i := range c.options.nodes {
		name := fmt.Sprintf("worker-%d", i+1)
		n := &node{meta: tracker.Meta{UID: c.nextUID("node"), Name: name, CreatedAt: truncateToSecond(c.clock.now.Add(-1000 * time.Hour))}}
		c.nodes = append(c.nodes, n)
		c.listNode(n)
	}
	namespaces := c.options.namespaces
	if namespaces == nil {
		namespaces = []string{"shop", "bank", "lab"}
	}
	for i := range c.options.vms {
		v := &vm{
			namespace: pickOne(c.dice, namespaces...), name: fmt.Sprintf("vm-%d", i+1), migratable: !c.dice.chance(0.04),
			strategy: c.anyStrategy(), load: 0.5 + 1.5*c.dice.Float64(),
		}
		if c.options.transfer > 0 {
			v.transfer = c.dice.scatterDuration(c.options.transfer, 0.8)
		}
		c.vms = append(c.vms, v)
		c.addRunningVM(v, c.nodes[c.dice.IntN(len(c.nodes))])
	}
	c.closeLists()
	c.recordSettings()
}

// anyStrategy returns an eviction strategy, in 46 of 50 cases the usual one.
func (c *cluster) anyStrategy() string {
	switch c.dice.IntN(50) {
	case 0, 1:
		return "None"
	case 2, 3:
		return "External"
	}
	return "LiveMigrate"
}

// closeLists ends the first lists.
func (c *cluster) closeLists() {
	present := map[trail.ObjectKind]map[string]struct{}{trail.ObjectMigration: {}}
	add := func(kind trail.ObjectKind, uid string) {
		if present[kind] == nil {
			present[kind] = map[string]struct{}{}
		}
		present[kind][uid] = struct{}{}
	}
	for _, n := range c.nodes {
		add(trail.ObjectNode, n.meta.UID)
	}
	for _, v := range c.vms {
		add(trail.ObjectVMI, v.vmi.meta.UID)
		add(trail.ObjectPod, v.vmi.pod.meta.UID)
	}
	for _, kind := range []trail.ObjectKind{trail.ObjectNode, trail.ObjectPod, trail.ObjectVMI, trail.ObjectMigration} {
		c.recordSight(c.clock.now, tracker.ListObservation{
			Seen: tracker.Seen{At: c.clock.now, Listed: true}, Kind: kind, ResourceVersion: c.nextVersion(), Present: present[kind],
		})
	}
}

// labelsOf returns the labels of a node: one in two is of the pool gpu, as its name has it.
func labelsOf(n *node) map[string]string {
	labels := map[string]string{"topology.kubernetes.io/zone": "east-1", "node-role.kubernetes.io/worker": ""}
	if isOfGPU(n.meta.Name) {
		labels["node-role.kubernetes.io/gpu"] = ""
	}
	return labels
}

func isOfGPU(node string) bool { return node[len(node)-1]%2 == 0 }

func (c *cluster) listNode(n *node) {
	seen, meta := c.listObject(&n.meta)
	c.recordSight(seen.At, tracker.NodeObservation{Seen: seen, Meta: meta, Labels: labelsOf(n)})
}

func (c *cluster) nodeChanged(n *node) {
	seen, meta := c.updateObject(trail.ObjectNode, &n.meta, false)
	o := tracker.NodeObservation{Seen: seen, Meta: meta, Labels: labelsOf(n), Unschedulable: n.cordoned}
	if n.cordoned {
		o.Taints = []tracker.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: trail.EffectNoSchedule}}
	}
	c.recordSight(seen.At, o)
}
