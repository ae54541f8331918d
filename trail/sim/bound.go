package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bound is a history in which some VMs can run on few nodes as they are configured: nodes are drained, and those VMs have to leave them, too.
type Bound struct {
	Run
	Never map[string]bool // by namespace/name: the VMs that no other node may ever run, whatever is free there
}

// binding is how a VM is configured to run on few nodes.
type binding struct {
	words string // the scheduler's, of a node that may not run it
	nodes []string
}

// What the scheduler says of a node. It names the first that applies, in this order.
//
// Source: kubernetes pkg/scheduler/apis/config/v1/default_plugins.go, and the texts of ErrReason in pkg/scheduler/framework/plugins.
const (
	refusedCordon   = "node(s) were unschedulable"
	refusedSelector = "node(s) didn't match Pod's node affinity/selector"
	refusedMemory   = "Insufficient memory"
	refusedVolume   = "node(s) had volume node affinity conflict"
	refusedSource   = "node(s) didn't match pod anti-affinity rules"
)

// NewBound plays some hours of a cluster in which one node after the other is drained, and is at times full. Of five VMs one is bound to its node by a
// selector or its volumes, and one to two nodes, of which the other may be cordoned or full for hours.
func NewBound(seed uint64) Bound {
	d := newDice(seed)
	o := options{
		nodes: d.pickInt(3, 6), hours: d.pickDuration(4*time.Hour, 8*time.Hour), policySeen: true, auditDelay: 300 * time.Millisecond, flaky: 0.05,
		statusEvery: time.Minute,
	}
	o.vms = o.nodes * d.pickInt(2, 5)
	c := assembleCluster(d, o, pickOne(d, v160, v164, v184, v184queue, v190))
	b := Bound{Run: Run{Seed: seed, KubeVirt: c.release.version, Start: c.clock.now}, Never: map[string]bool{}}
	c.createNodesAndVMs()
	for _, v := range c.vms {
		own := v.vmi.node
		x := &binding{words: pickOne(d, refusedSelector, refusedVolume), nodes: []string{own}}
		switch d.IntN(5) {
		case 0:
			b.Never[v.namespace+"/"+v.name] = true
		case 1:
			if other := pickOne(d, c.nodes...).meta.Name; other != own {
				x.nodes = append(x.nodes, other)
			} else {
				b.Never[v.namespace+"/"+v.name] = true
			}
		default:
			continue
		}
		v.bound = x
	}
	c.startBackgroundActivity()
	for _, n := range c.nodes {
		c.repeatEvery(3*time.Hour, func() { n.fullUntil = c.clock.now.Add(d.pickDuration(5*time.Minute, 40*time.Minute)) })
	}
	c.drainInTurns()
	stop := c.clock.now.Add(o.hours)
	c.clock.runUntil(stop)
	b.Observations, b.End = c.watch.listObservations(), stop.Add(time.Minute)
	return b
}

// drainInTurns drains a node for a while, then another one. Most stay cordoned until the next has begun.
func (c *cluster) drainInTurns() {
	n := pickOne(c.dice, c.nodes...)
	if n.cordoned {
		c.clock.scheduleAfter(time.Minute, c.drainInTurns)
		return
	}
	c.startDrain(n, c.dice.pickDuration(20*time.Minute, 2*time.Hour), func() {
		c.clock.scheduleAfter(c.dice.pickDuration(0, 20*time.Minute), func() { c.setCordoned(n, false, func() {}) })
		c.clock.scheduleAfter(c.dice.pickDuration(0, 30*time.Minute), c.drainInTurns)
	})
}

// refuseVM returns what the scheduler says of a node for a VM that is to leave another one; empty where the node can run it.
func (c *cluster) refuseVM(v *vm, n *node, from string) string {
	bound := v.bound != nil && !slices.Contains(v.bound.nodes, n.meta.Name)
	switch {
	case n.cordoned:
		return refusedCordon
	case bound && v.bound.words == refusedSelector:
		return refusedSelector
	case c.clock.now.Before(n.fullUntil):
		return refusedMemory
	case bound:
		return refusedVolume
	case n.meta.Name == from:
		return refusedSource
	}
	return ""
}

// schedulerSays returns the scheduler's words about a pod of a VM that finds no node.
func (c *cluster) schedulerSays(v *vm, from string) string {
	counts := map[string]int{}
	for _, n := range c.nodes {
		counts[c.refuseVM(v, n, from)]++
	}
	var parts []string
	for words, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, words))
	}
	slices.Sort(parts)
	all := len(c.nodes)
	return fmt.Sprintf("0/%d nodes are available: %s. preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", all, strings.Join(parts, ", "))
}
