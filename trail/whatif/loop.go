package whatif

import (
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// dual is a dual retry loop of the history, while it lasts there.
type dual struct {
	loop  *trail.Loop
	about *evacuation // that is retried; nil where it is not known
	left  int         // acts of the descheduler that would have made it a loop, too
	lost  int         // those that would not
	over  bool
}

// loopOpened takes a loop of the history.
func (r *Replay) loopOpened(l *trail.Loop) {
	if l.ClosedBy == trail.LoopRefuted || !r.countsLoop(l) {
		return
	}
	r.recorded.Loops++
	e := r.evacuationAbout(l)
	switch l.Kind {
	case trail.LoopDualRetry:
		d := &dual{loop: l, about: e}
		n := r.nodeOf(l.Node)
		n.loops, r.loops = append(n.loops, d), append(r.loops, d)
		r.scheduleAt(l.ClosedAt, func() { r.evaluateDualLoop(d) })
	case trail.LoopEndlessRetry, trail.LoopPriorityInversion, trail.LoopUnansweredExternal:
		r.countAvoidedLoop(l, e != nil && !e.open, e != nil)
	case trail.LoopShutdownChurn, trail.LoopRepeatedFailures, trail.LoopOscillation:
		// What became of a VM that was shut down, of a migration that failed, or of a node is not replayed.
		r.countAvoidedLoop(l, false, false)
	case trail.LoopPingPong, trail.LoopChurn, trail.LoopFrequentMoves:
		// What it counts goes on for as long as it is open, so that it is judged when that is over.
		end := l.ClosedAt
		if end.IsZero() || end.After(r.history.Until) {
			end = r.history.Until
		}
		r.scheduleAt(end, func() { r.evaluateMoveLoop(l) })
	case trail.LoopBudgetPinned:
		r.evaluatePinnedLoop(l)
	}
}

// countsLoop reports whether a loop is counted: of one VM, or else of the one that it shows first.
func (r *Replay) countsLoop(l *trail.Loop) bool {
	namespace := l.Namespace
	if namespace == "" && len(l.Evidence) > 0 {
		namespace, _, _ = strings.Cut(l.Evidence[0].VMI, "/")
	}
	return r.isCounted(namespace, l.Node)
}

// evacuationAbout finds the evacuation that a loop is about; nil where it is not known.
func (r *Replay) evacuationAbout(l *trail.Loop) *evacuation {
	v := r.vms[l.VMIUID]
	if v == nil {
		return nil
	}
	for _, e := range v.evacuations {
		if e.node.name == l.Node {
			return e
		}
	}
	return nil
}

// countAvoidedLoop counts a loop that would not have opened, or of which that cannot be said.
func (r *Replay) countAvoidedLoop(l *trail.Loop, avoided, known bool) {
	switch {
	case !known:
		if r.policy != (Policy{}) {
			r.unknown[UnknownLoop]++
		}
	case avoided:
		r.out.LoopsAvoided[l.Kind]++
	}
}

// evaluateDualLoop decides what became of a dual retry loop: without an act of the descheduler while KubeVirt tried there is none.
func (r *Replay) evaluateDualLoop(d *dual) {
	if d.over {
		return
	}
	d.over = true
	r.countAvoidedLoop(d.loop, d.left == 0 && d.lost > 0, d.about != nil)
	r.loops = slices.DeleteFunc(r.loops, func(l *dual) bool { return l == d })
}

// listRetriedLoops returns the dual retry loops that are open on a node, each with whether KubeVirt would be retrying its VM now.
func (r *Replay) listRetriedLoops(n *node) []retry {
	n.loops = slices.DeleteFunc(n.loops, func(l *dual) bool { return l.over })
	var out []retry
	for _, l := range n.loops {
		e := l.about
		out = append(out, retry{l, e != nil && e.open && (!e.shut || e.tries > 0)})
	}
	return out
}

// retry is a dual retry loop when the descheduler acts.
type retry struct {
	*dual
	goes bool
}

// countAct counts an act of the descheduler that would have come, or would not.
func (t retry) countAct(would bool) {
	if would && t.goes {
		t.left++
	} else {
		t.lost++
	}
}

// bounceSlack is how far the time of a move may be from that of the migration that made it.
const bounceSlack = 5 * time.Second

// evaluateMoveLoop decides what became of a loop that counts the moves of one VM: whether enough of them are left.
func (r *Replay) evaluateMoveLoop(l *trail.Loop) {
	v := r.vms[l.VMIUID]
	if v == nil {
		r.countAvoidedLoop(l, false, false)
		return
	}
	var left []time.Time
	for _, x := range l.Evidence {
		if !slices.ContainsFunc(v.unmoved, func(at time.Time) bool { return at.Sub(x.At).Abs() <= bounceSlack }) {
			left = append(left, x.At)
		}
	}
	fewer, sooner := len(left) < len(l.Evidence), false
	for _, at := range v.moved { // which count, too, though where to is not known
		sooner = sooner || len(l.Evidence) > 0 && at.After(l.Evidence[0].At)
		if l.Kind != trail.LoopPingPong {
			left = append(left, at)
		}
	}
	slices.SortFunc(left, time.Time.Compare)
	within, most := r.history.Thresholds.MovesWithin, r.history.Thresholds.Moves
	switch l.Kind {
	case trail.LoopPingPong:
		within, most = r.history.Thresholds.ReturnWithin, r.history.Thresholds.Returns
	case trail.LoopFrequentMoves:
		most = r.history.Thresholds.AllMoves
	default:
	}
	enough := false
	for i := most - 1; i < len(left); i++ {
		apart := left[i].Sub(left[i-most+1])
		enough = enough || apart < within || apart == within && l.Kind == trail.LoopPingPong
	}
	counted := l.Counts["moves"] + l.Counts["returns"] // of which a loop shows some only
	r.countAvoidedLoop(l, !enough && fewer, enough || counted <= len(l.Evidence) && !sooner)
}

// evaluatePinnedLoop decides what became of a loop in which old evacuations hold all slots: whether fewer do.
func (r *Replay) evaluatePinnedLoop(l *trail.Loop) {
	limit, held, was, known := l.Counts["slots"], 0, 0, true
	for _, x := range l.Evidence {
		if x.EventID == nil {
			continue
		}
		e := r.evacuations[*x.EventID]
		known = known && e != nil
		if e != nil && e.holds {
			held++
		}
		if e != nil && e.held {
			was++
		}
	}
	total, perNode := r.slotLimits()
	if r.policy.NodeLimit > 0 && l.Node != "" {
		limit = perNode
	}
	if r.policy.TotalLimit > 0 && l.Node == "" {
		limit = total
	}
	r.countAvoidedLoop(l, held < limit && (held < was || limit > l.Counts["slots"]), known)
}
