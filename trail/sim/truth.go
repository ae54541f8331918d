package sim

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Loop is a dual retry loop that really happened.
type Loop struct {
	Node      string
	Namespace string
	VMI       string    // of the evacuation that did not get on
	OpenedAt  time.Time // when the API server received the descheduler's request; UTC
	ClosedAt  time.Time // zero where it was open at the end
	ClosedBy  string    // empty where it was open at the end
	Path      string    // why the descheduler could act although the eviction was under way
}

// What closes a loop (docs: architecture §4).
const (
	ClosedByMigrated  = "migrated"
	ClosedByCancelled = "cancelled"
	ClosedByVMIGone   = "vmi_gone"
	ClosedByQuiet     = "quiet"
)

// The ways into a loop (docs: architecture §4).
const (
	PathAnnotationLost   = "annotation_lost"   // KubeVirt took eviction-in-progress off after the failure
	PathFreeSlot         = "free_slot"         // the eviction holds a slot of the descheduler, another one is free
	PathRequestForgotten = "request_forgotten" // the descheduler swept this eviction, or others, out of its cache
	PathGateOff          = "gate_off"          // it has no such cache
)

// The limits of the rule (docs: architecture §4).
const (
	staleAfter = 30 * time.Minute // a failure that is older makes no loop
	quietAfter = 60 * time.Minute // without an act on the node the loop is over
)

// evacuation is the truth about one mark: until it is gone KubeVirt tries to move the guest.
type evacuation struct {
	node, namespace, vmi string
	failed               time.Time // the latest failure of an attempt; zero while none failed
}

// ledger holds which loops there were. A loop belongs to one evacuation; one act can open several.
type ledger struct {
	open  []*evacuation
	loops []Loop
	on    map[*evacuation]int // the open loop of an evacuation, as an index of loops
	acted map[string]time.Time
}

func newLedger() *ledger { return &ledger{on: map[*evacuation]int{}, acted: map[string]time.Time{}} }

// openEvacuation notes a new mark.
func (c *cluster) openEvacuation(v *vmi) *evacuation {
	e := &evacuation{node: v.mark, namespace: v.vm.namespace, vmi: v.vm.name}
	for _, l := range []*ledger{c.all, c.marks} {
		l.open = append(l.open, e)
	}
	return e
}

// endEvacuation notes that a mark is gone, or the VMI with it.
func (c *cluster) endEvacuation(v *vmi, by string) {
	if v.evacuation == nil {
		return
	}
	c.all.removeEvacuation(v.evacuation, c.clock.now, by)
	c.marks.removeEvacuation(v.evacuation, c.clock.now, by)
	v.evacuation = nil
}

// recordAct notes that the descheduler acted on a node: its request for a pod there was answered "marked" or "already
// marked". Without an audit log only a mark shows it, and that only as far as the mark says whose it is.
func (c *cluster) recordAct(n *node, v *vmi, answer trail.RequestAnswer, inherited bool) {
	path := func(e *evacuation) string { return c.explainPath(e, v) }
	n.acted = c.clock.now
	if h := n.heatAt(c.clock.now); h != nil && answer == trail.AnswerMarked && len(n.curses) == 0 {
		h.acts--
	}
	c.all.recordAct(n.meta.Name, c.clock.now, path)
	if answer == trail.AnswerMarked && c.markShows(n, inherited) {
		c.marks.recordAct(n.meta.Name, c.clock.now, path)
	}
}

// explainPath returns why the descheduler could act for a VMI although the evacuation was under way on its node: what kept it from
// that is not there, or is gone for that evacuation, or for so many others that its limits leak.
func (c *cluster) explainPath(e *evacuation, acted *vmi) string {
	d := c.descheduler
	onNode, all := 0, 0
	for _, o := range c.all.open {
		if o == acted.evacuation {
			continue
		}
		all++
		if o.node == e.node {
			onNode++
		}
	}
	switch {
	case !d.gate:
		return PathGateOff
	case !c.release.follows:
		return PathAnnotationLost
	case e == acted.evacuation, onNode >= d.perNode, d.total > 0 && all >= d.total:
		return PathRequestForgotten
	}
	return PathFreeSlot
}

// markShows reports whether a mark alone shows that the descheduler left it: by its annotation since v1.7, unless that was
// there before on a node that is being drained; before, by the descheduler's being the only one who is known to evict.
func (c *cluster) markShows(n *node, inherited bool) bool {
	if c.release.source {
		return !inherited || !n.cordoned
	}
	return c.options.policySeen && !n.cordoned
}

// recordAct opens a loop for every evacuation on the node an attempt of which failed before and not too long ago.
func (l *ledger) recordAct(node string, at time.Time, path func(*evacuation) string) {
	l.closeQuietLoops(node, at)
	l.acted[node] = at
	for _, e := range l.open {
		_, looping := l.on[e]
		if e.node != node || looping || e.failed.IsZero() || at.Sub(e.failed) > staleAfter {
			continue
		}
		l.on[e] = len(l.loops)
		l.loops = append(l.loops, Loop{Node: node, Namespace: e.namespace, VMI: e.vmi, OpenedAt: at, Path: path(e)})
	}
}

// closeQuietLoops closes the loops on a node where the descheduler has not acted for long.
func (l *ledger) closeQuietLoops(node string, now time.Time) {
	until := l.acted[node].Add(quietAfter)
	if until.After(now) {
		return
	}
	for e := range l.on {
		if e.node == node {
			l.closeLoop(e, until, ClosedByQuiet)
		}
	}
}

func (l *ledger) removeEvacuation(e *evacuation, at time.Time, by string) {
	l.closeQuietLoops(e.node, at)
	l.closeLoop(e, at, by)
	l.open = slices.DeleteFunc(l.open, func(o *evacuation) bool { return o == e })
}

func (l *ledger) closeLoop(e *evacuation, at time.Time, by string) {
	if i, looping := l.on[e]; looping {
		l.loops[i].ClosedAt, l.loops[i].ClosedBy = at, by
		delete(l.on, e)
	}
}

// finishLoops ends the ledger at the end of the run: loops stay open but for those that fell quiet.
func (l *ledger) finishLoops(at time.Time) []Loop {
	for node := range l.acted {
		l.closeQuietLoops(node, at)
	}
	return l.loops
}
