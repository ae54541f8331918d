package sim

import "time"

// plot is what a run injects on one node. A loop plot makes a dual retry loop, unless chance undoes it; the others make
// what only looks like one. What really came of it is in the truth.
type plot struct {
	name  string
	nodes int // that it needs for itself
	stage func(c *cluster, n []*node, at time.Time)
}

// loopPlots make loops.
var loopPlots = []plot{
	{"hot-node", 1, (*cluster).stageHotNode},
	{"hot-node-cancelled", 1, (*cluster).stageCancelled},
	{"hot-node-restarted", 1, (*cluster).stageRestarted},
	{"two-at-once", 1, (*cluster).stageTwo},
	{"quiet-and-again", 1, (*cluster).stageQuiet},
	{"drain-left-marked", 1, (*cluster).stageLeftMarked},
}

// nearMisses make what must not count.
var nearMisses = []plot{
	{"fails-alone", 1, (*cluster).stageFailsAlone},
	{"acts-before-only", 1, (*cluster).stageActsBefore},
	{"acts-elsewhere", 2, (*cluster).stageElsewhere},
	{"drain-polls", 1, (*cluster).stageDrainPolls},
	{"drain-of-a-marked-vm", 1, (*cluster).stageDrainOfMarked},
	{"user-migrations-fail", 1, (*cluster).stageUserFails},
	{"act-long-after", 1, (*cluster).stageLongAfter},
	{"external", 1, (*cluster).stageExternal},
	{"aborted-by-user", 1, (*cluster).stageAborted},
	{"cancelled-before", 1, (*cluster).stageCancelledBefore},
	{"restarted-before", 1, (*cluster).stageRestartedBefore},
	{"moved-before", 1, (*cluster).stageMovedBefore},
}

// injectPlots stages plots on nodes of their own, in any order, until the nodes are used up or there are enough of them.
func (c *cluster) injectPlots(plots []plot, count int, free []*node) []*node {
	for range count {
		p := pickOne(c.dice, plots...)
		if len(free) < p.nodes {
			continue
		}
		c.plots = append(c.plots, p.name)
		p.stage(c, free[:p.nodes], c.clock.now.Add(c.dice.pickDuration(2*time.Minute, 25*time.Minute)))
		free = free[p.nodes:]
	}
	return free
}

// anyEnding returns a way to fail, most often one that is over in seconds.
func (c *cluster) anyEnding() ending {
	return pickOne(c.dice, breaks, breaks, breaks, stuck, stuck, crashes, unschedulable)
}

// newFailingCurse returns a curse of some failures, and then success; or of failures for ever.
func (c *cluster) newFailingCurse() *curse {
	x := &curse{last: succeeds}
	for range c.dice.pickInt(2, 8) {
		x.ends = append(x.ends, c.anyEnding())
	}
	if c.dice.chance(0.4) {
		x.last = breaks
	}
	return x
}

// newEndlessCurse returns a curse that never ends.
func (c *cluster) newEndlessCurse() *curse {
	return &curse{last: pickOne(c.dice, breaks, stuck, crashes)}
}

// keepHot keeps a node hot for a while, or until the descheduler has marked so many VMs there, among them the one that
// meets the curse; -1 is no bound.
func (n *node) keepHot(from time.Time, d time.Duration, acts int) {
	n.heat = append(n.heat, &heat{from: from, to: from.Add(d), acts: acts})
}

// liftNodeCurses takes back a curse that nobody met by then.
func (c *cluster) liftNodeCurses(n *node, at time.Time) {
	c.clock.scheduleAt(at, func() { n.curses = nil })
}

// findCursedVMI finds the VM that a curse hit and that is still marked.
func (c *cluster) findCursedVMI(x *curse) *vmi {
	for _, v := range c.vms {
		if v.curse == x && v.vmi.mark != "" {
			return v.vmi
		}
	}
	return nil
}

// runOnceFailed does something to the cursed VM once it failed at least once.
func (c *cluster) runOnceFailed(x *curse, at time.Time, do func(*vmi)) {
	c.clock.scheduleAt(at, func() {
		v := c.findCursedVMI(x)
		switch {
		case v == nil:
		case v.evacuation == nil || v.evacuation.failed.IsZero():
			c.runOnceFailed(x, c.clock.now.Add(time.Minute), do)
		default:
			do(v)
		}
	})
}

func (c *cluster) stageHotNode(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newFailingCurse()}
	n[0].keepHot(at, c.dice.pickDuration(10*time.Minute, 2*time.Hour), -1)
}

func (c *cluster) stageCancelled(n []*node, at time.Time) {
	x := c.newEndlessCurse()
	n[0].curses = []*curse{x}
	n[0].keepHot(at, c.dice.pickDuration(40*time.Minute, 2*time.Hour), -1)
	c.runOnceFailed(x, at.Add(c.dice.pickDuration(5*time.Minute, time.Hour)), func(v *vmi) { c.cancelEvacuation(v, alice) })
}

func (c *cluster) stageRestarted(n []*node, at time.Time) {
	x := c.newEndlessCurse()
	n[0].curses = []*curse{x}
	n[0].keepHot(at, c.dice.pickDuration(40*time.Minute, 2*time.Hour), -1)
	c.runOnceFailed(x, at.Add(c.dice.pickDuration(5*time.Minute, time.Hour)), c.restartVM)
}

func (c *cluster) stageTwo(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newFailingCurse(), c.newFailingCurse()}
	n[0].keepHot(at, c.dice.pickDuration(30*time.Minute, 2*time.Hour), -1)
}

// stageQuiet: the node cools down for more than an hour, while the evacuation goes on failing, and is hot again.
func (c *cluster) stageQuiet(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newEndlessCurse()}
	first := c.dice.pickDuration(15*time.Minute, 40*time.Minute)
	n[0].keepHot(at, first, -1)
	n[0].keepHot(at.Add(first+c.dice.pickDuration(50*time.Minute, 100*time.Minute)), time.Hour, -1)
}

// stageLeftMarked: a drain is given up, the node is uncordoned, its VM goes on failing, and the node becomes hot. The
// pod that the drain left annotated takes a slot of the descheduler, so that it needs another one.
func (c *cluster) stageLeftMarked(n []*node, at time.Time) {
	c.descheduler.perNode = max(c.descheduler.perNode, 2)
	n[0].curses = []*curse{c.newEndlessCurse()}
	c.clock.scheduleAt(at, func() {
		c.startDrain(n[0], c.dice.pickDuration(3*time.Minute, 8*time.Minute), func() {
			if c.dice.chance(0.9) {
				c.setCordoned(n[0], false, func() {})
			}
			for range 8 { // the emptied node is where most of them fit, so that there is something to evict
				c.restartVM(pickOne(c.dice, c.vms...).vmi)
			}
			n[0].keepHot(c.clock.now.Add(c.dice.pickDuration(time.Minute, 20*time.Minute)), c.dice.pickDuration(20*time.Minute, time.Hour), -1)
		})
	})
}

// stageFailsAlone: the descheduler acts once; after that nobody but KubeVirt retries.
func (c *cluster) stageFailsAlone(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newEndlessCurse()}
	n[0].keepHot(at, time.Hour, 1)
}

// stageActsBefore: the descheduler marks several VMs while the first attempt still runs, and nothing afterwards.
func (c *cluster) stageActsBefore(n []*node, at time.Time) {
	x := c.newEndlessCurse()
	x.ends, x.takes = []ending{stuck}, 3*time.Minute
	n[0].curses = []*curse{x}
	n[0].keepHot(at, c.descheduler.interval+time.Minute, c.dice.pickInt(2, 4))
}

// stageElsewhere: one node has the failures, the descheduler goes on at another one.
func (c *cluster) stageElsewhere(n []*node, at time.Time) {
	c.stageFailsAlone(n, at)
	n[1].keepHot(at.Add(5*time.Minute), time.Hour, -1)
}

// stageDrainPolls: kubectl asks again and again for a VM that cannot move.
func (c *cluster) stageDrainPolls(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newFailingCurse()}
	c.clock.scheduleAt(at, func() {
		c.startDrain(n[0], c.dice.pickDuration(3*time.Minute, 12*time.Minute), func() {
			if c.dice.chance(0.7) {
				c.setCordoned(n[0], false, func() {})
			}
		})
	})
}

// stageDrainOfMarked: a drain meets a VM that the descheduler marked before and that fails. kubectl's polls are no acts of
// the descheduler, and the evacuation keeps its low priority.
func (c *cluster) stageDrainOfMarked(n []*node, at time.Time) {
	n[0].curses = []*curse{c.newFailingCurse()}
	n[0].keepHot(at, 3*time.Minute, 1)
	c.clock.scheduleAt(at.Add(c.dice.pickDuration(4*time.Minute, 8*time.Minute)), func() {
		n[0].curses = nil
		c.startDrain(n[0], c.dice.pickDuration(5*time.Minute, 15*time.Minute), func() { c.setCordoned(n[0], false, func() {}) })
	})
}

// stageUserFails: the migrations that fail on the hot node belong to no evacuation.
func (c *cluster) stageUserFails(n []*node, at time.Time) {
	n[0].keepHot(at, time.Hour, -1)
	c.clock.scheduleAt(at.Add(-time.Minute), func() {
		for _, v := range n[0].guests {
			if v.migratable {
				v.userFails, v.optedOut = true, true
				for i := range 8 {
					c.clock.scheduleAfter(time.Duration(i)*6*time.Minute+c.dice.pickDuration(0, time.Minute), func() { c.requestMigration(v) })
				}
				return
			}
		}
	})
}

// stageLongAfter: an attempt failed, the next waits for a quota, and the descheduler acts more than 30 min later.
func (c *cluster) stageLongAfter(n []*node, at time.Time) {
	n[0].curses = []*curse{{ends: []ending{breaks}, last: held4ever}}
	n[0].keepHot(at, 3*time.Minute, 1)
	again := at.Add(c.dice.pickDuration(40*time.Minute, 70*time.Minute))
	n[0].keepHot(again, time.Hour, -1)
	c.liftNodeCurses(n[0], again.Add(-time.Second))
}

// stageExternal: KubeVirt makes no attempt for such a VM.
func (c *cluster) stageExternal(n []*node, at time.Time) {
	c.clock.scheduleAt(at.Add(-time.Second), func() {
		for i, v := range n[0].guests {
			if i < 2 {
				v.strategy = "External"
				c.vmiChanged(v.vmi)
			}
		}
	})
	n[0].keepHot(at, time.Hour, -1)
}

// stageAborted: somebody deletes the VMIMs while they run. An abort is no failure.
func (c *cluster) stageAborted(n []*node, at time.Time) {
	n[0].curses = []*curse{{ends: []ending{aborted, aborted, aborted}, last: succeeds}}
	n[0].keepHot(at, time.Hour, -1)
}

// stageCancelledBefore: the evacuation that failed is cancelled before the descheduler acts again, also on that VM.
func (c *cluster) stageCancelledBefore(n []*node, at time.Time) {
	c.stageOverBefore(n[0], at, c.cancelByUser)
}

func (c *cluster) cancelByUser(v *vmi) { c.cancelEvacuation(v, alice) }

// stageRestartedBefore: the same with a restart.
func (c *cluster) stageRestartedBefore(n []*node, at time.Time) {
	c.stageOverBefore(n[0], at, c.restartVM)
}

func (c *cluster) stageOverBefore(n *node, at time.Time, end func(*vmi)) {
	x := &curse{ends: []ending{breaks, stuck, breaks, breaks, breaks, breaks}, last: breaks}
	n.curses = []*curse{x}
	n.keepHot(at, 3*time.Minute, 1)
	c.runOnceFailed(x, at.Add(c.dice.pickDuration(4*time.Minute, 15*time.Minute)), func(v *vmi) {
		end(v)
		x.ends, x.last = nil, succeeds
		n.keepHot(c.clock.now.Add(30*time.Second), time.Hour, -1)
	})
}

// stageMovedBefore: the evacuation that failed succeeds before the descheduler acts again.
func (c *cluster) stageMovedBefore(n []*node, at time.Time) {
	n[0].curses = []*curse{{ends: []ending{breaks, crashes}, last: succeeds}}
	n[0].keepHot(at, 3*time.Minute, 1)
	n[0].keepHot(at.Add(20*time.Minute), time.Hour, -1)
	c.liftNodeCurses(n[0], at.Add(19*time.Minute))
}
