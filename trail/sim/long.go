package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// Long plays some days of a large cluster, on which 20 VMIs share a node and 125 a namespace, on average, that end at the
// moment at which all other runs begin. Each day has its loops and what only looks like one, and what goes wrong is put right
// by the next. What was seen is handed out a day at a time, in the order of the times; what changes nothing that is recorded
// is left out. Of 5,000 VMIs a day takes about a second and makes some 50,000 facts.
func Long(seed uint64, vms, days int, see func([]tracker.Observation)) {
	LongUntil(seed, vms, days, epoch, see)
}

// LongUntil plays the same days as Long, with another end.
func LongUntil(seed uint64, vms, days int, end time.Time, see func([]tracker.Observation)) {
	const day = 24 * time.Hour
	each := func(d time.Duration) time.Duration { return d / time.Duration(vms) } // how often something happens that happens to each VM now and then
	o := options{
		nodes: vms / 20, vms: vms, hours: day, natural: true, flaky: 0.03, policySeen: true, auditDelay: 2 * time.Second,
		userEvery: each(125 * time.Hour), restartEvery: each(500 * time.Hour), namespaces: weightNamespaces(vms / 125),
	}
	c := assembleCluster(newDice(seed), o, v190)
	c.descheduler.total, c.descheduler.gate = 0, true
	c.clock.now = c.clock.now.Add(end.Sub(epoch) - time.Duration(days)*day)
	c.createNodesAndVMs()
	c.startBackgroundActivity()
	c.descheduler.startCycles()
	for range days {
		c.putRight()
		for range vms / 625 {
			c.clock.scheduleAfter(c.dice.pickDuration(0, 20*time.Hour), func() { c.injectPlots(loopPlots, 1, c.pickQuietNodes()) })
			c.clock.scheduleAfter(c.dice.pickDuration(0, 20*time.Hour), func() { c.injectPlots(nearMisses, 1, c.pickQuietNodes()) })
		}
		c.clock.runUntil(c.clock.now.Add(day))
		see(c.watch.popObservations(c.clock.now))
	}
	see(c.watch.popObservations(c.clock.now.Add(time.Minute)))
}

// weightNamespaces names namespaces, each as often as it is to be picked: the second half as often as the first, and so on.
func weightNamespaces(n int) []string {
	var out []string
	for i := range n {
		for range 1 + 4*n/(i+1) {
			out = append(out, fmt.Sprintf("team-%d", i+1))
		}
	}
	return out
}

// putRight ends what plots began.
func (c *cluster) putRight() {
	for _, n := range c.nodes {
		n.curses, n.heat = nil, nil
	}
	for _, v := range c.vms {
		v.curse, v.userFails = nil, false
		if m := v.vmi.findUnfinishedMigration(); m != nil && m.course.end == held4ever {
			c.restartVM(v.vmi)
		}
	}
}

// pickQuietNodes returns two nodes, in any order, on which no plot is staged.
func (c *cluster) pickQuietNodes() []*node {
	free := slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.cordoned || len(n.curses)+len(n.heat) > 0 })
	c.dice.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	return free[:min(len(free), 2)]
}

// popObservations returns the sights up to a time, in the order of their times, and forgets them.
func (w *watcher) popObservations(at time.Time) []tracker.Observation {
	slices.SortStableFunc(w.seen, func(a, b sight) int { return a.at.Compare(b.at) })
	end, _ := slices.BinarySearchFunc(w.seen, at, func(s sight, at time.Time) int { return s.at.Compare(at) })
	out := make([]tracker.Observation, end)
	for i, s := range w.seen[:end] {
		out[i] = s.is
	}
	w.seen = slices.Clone(w.seen[end:])
	return out
}
