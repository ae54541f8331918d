package whatif

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// slots counts the evictions that are under way, of a node or of all, and who waits for one to end.
type slots struct {
	recorded int // in the history
	policy   int // under the policy
	waiting  []*Change
}

// node is one of the history.
type node struct {
	slots
	name    string
	actedAt time.Time // when the descheduler last asked for a VM of it, in the history; zero: it did not
	loops   []*dual   // that are open on it
}

// hasSlotSettings reports whether the policy changes who takes slots, or how many there are.
func (p Policy) hasSlotSettings() bool { return p.KeepMark || p.NodeLimit > 0 || p.TotalLimit > 0 }

// updateSlots has an evacuation take a slot, in the history and under the policy, where it does.
func (r *Replay) updateSlots(e *evacuation) {
	taint, perAttempt := false, false
	if e.row != nil {
		taint, perAttempt = e.row.MarkedBy == trail.MarkedByTaint, e.row.InProgress == trail.InProgressPerAttempt
	}
	inHistory := !taint && (!perAttempt || !e.failed)
	if inHistory != e.held {
		e.held = inHistory
		r.countSlot(e.node, true, inHistory)
	}
	holds := e.open && !taint && (!perAttempt || !e.failed || r.policy.KeepMark)
	if holds != e.holds {
		e.holds = holds
		r.countSlot(e.node, false, holds)
	}
}

// dropAnnotation notes that the annotation of an evacuation is taken off at its first failure, with KubeVirt before v1.6.1.
func (r *Replay) dropAnnotation(e *evacuation) {
	if e.row != nil {
		r.updateSlots(e)
	}
}

// releaseSlot has an evacuation give its slot back.
func (r *Replay) releaseSlot(e *evacuation, inHistory bool) {
	held := &e.holds
	if inHistory {
		held = &e.held
	}
	if *held {
		*held = false
		r.countSlot(e.node, inHistory, false)
	}
}

// countSlot counts a slot that is taken, or released.
func (r *Replay) countSlot(n *node, inHistory, up bool) {
	by := 1
	if !up {
		by = -1
	}
	if inHistory {
		n.recorded, r.all.recorded = n.recorded+by, r.all.recorded+by
		r.countFullSlots(n, up)
		return
	}
	n.policy, r.all.policy = n.policy+by, r.all.policy+by
	if !up {
		total, perNode := r.slotLimits()
		r.releaseWaiting(&n.slots, perNode)
		r.releaseWaiting(&r.all, total)
	}
}

// slotLimits returns those in force under the policy; 0: none.
func (r *Replay) slotLimits() (total, perNode int) {
	perNode, total, _ = r.env.SlotLimits(r.now)
	if r.policy.NodeLimit > 0 {
		perNode = r.policy.NodeLimit
	}
	if r.policy.TotalLimit > 0 {
		total = r.policy.TotalLimit
	}
	return total, perNode
}

// releaseWaiting notifies those that wait that a slot is free. Only one of them would get it; none holds it here, as nobody asks.
func (r *Replay) releaseWaiting(s *slots, limit int) {
	if limit > 0 && s.policy >= limit || !r.now.Before(r.history.Until) {
		return
	}
	for _, c := range s.waiting {
		c.Until = r.now
	}
	s.waiting = nil
}

// countFullSlots counts the times that all slots of the history are taken while the policy has more.
func (r *Replay) countFullSlots(n *node, up bool) {
	perNode, total, _ := r.env.SlotLimits(r.now)
	more := r.policy.NodeLimit > perNode && perNode > 0 && n.recorded == perNode || r.policy.TotalLimit > total && total > 0 && r.all.recorded == total
	if up && more && r.isCounted("", n.name) {
		r.unknown[UnknownMoreSlots]++
	}
}

// checkRules returns by which rule an eviction would not have come now under the policy, and until when; none where it would, or where the same
// rule forbade it in the history and it came all the same.
func (r *Replay) checkRules(e *evacuation, q *trail.EvictionRequest) (Rule, time.Time) {
	if !r.inPeriod(r.now) {
		return "", time.Time{}
	}
	if r.now.Before(e.vm.moving) { // it is on its way already, as that came sooner
		return RuleInProgress, e.vm.moving
	}
	against := false
	if rule, until := r.checkCooldown(e.vm); rule != "" {
		if e.vm.against != q.ID {
			return rule, until
		}
		against = true
	}
	total, perNode := r.slotLimits()
	wasNode, wasTotal, _ := r.env.SlotLimits(r.now)
	own, ownPolicy := 0, 0 // it may be counted already
	if e.held {
		own = 1
	}
	if e.holds {
		ownPolicy = 1
	}
	full := func(taken, limit int) bool { return limit > 0 && taken+1 > limit }
	for _, s := range []struct {
		rule     Rule
		now, was bool
	}{
		{RuleNodeSlots, full(e.node.policy-ownPolicy, perNode), full(e.node.recorded-own, wasNode)},
		{RuleTotalSlots, full(r.all.policy-ownPolicy, total), full(r.all.recorded-own, wasTotal)},
	} {
		if s.now && !s.was {
			return s.rule, time.Time{}
		}
		against = against || s.now && s.was && r.policy.hasSlotSettings()
	}
	if against && r.isCounted(q.Namespace, q.Node) {
		r.unknown[UnknownAgainstRule]++
	}
	return "", time.Time{}
}
