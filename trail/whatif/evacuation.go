package whatif

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// evacuation is one of the history while it lasts there: under the policy it may not have begun, or be over.
type evacuation struct {
	id             trail.FactID
	vm             *vm
	node           *node
	row            *trail.Evacuation // nil until it comes: its request may be a moment earlier
	asked          bool              // a request that began it has come
	exempt         bool              // it was under way when the period began
	open           bool              // under the policy
	owner          trail.RequesterClass
	running        int  // attempts that are not over
	tries          int  // that ended without success, since it was last asked
	failed         bool // one of its attempts has failed, in the history
	held           bool // it takes a slot in the history
	holds          bool // it takes one under the policy
	again          bool // it was asked again under the policy, and the outcome of that is not known yet
	shut           bool // it was over under the policy, while it went on in the history
	change         *Change
	counted, would bool // among the evacuations of the history, and under the policy
}

// vm is one VMI of the history.
type vm struct {
	namespace, name, uid string
	completions          []trail.Completion // that count for cooldowns under the policy, in the order of their ends
	finished             []finished         // the latest that KubeVirt would keep, in the order of their ends
	running              []*attempt         // migrations that are not over
	cooledFrom           time.Time          // its last recorded cooldown
	cooledUntil          time.Time
	against              trail.FactID  // the request that its recorded cooldown forbade
	held                 []*evacuation // that are held back, while the VM was not asked for again
	elsewhere            bool          // it would stand on another node than it did
	took                 time.Duration // its last migration; 0: none is known
	moving               time.Time     // until when an eviction that comes sooner moves it; zero: none does
	unmade               []string      // UIDs of the latest migrations that would not have been made
	moved                []time.Time   // when it would have been moved sooner; the latest
	unmoved              []time.Time   // when it moved in the history, and would not have; the latest
	evacuations          []*evacuation // of the history, that are open there
}

// finished is a migration that ended.
type finished struct {
	uid       string
	at        time.Time
	succeeded bool
}

// attempt is a migration while it lasts in the history.
type attempt struct {
	*trail.Migration
	of        *evacuation // nil where it belongs to none
	completed bool        // the VMI has shown its end
}

// isKept reports whether the migration would have been made.
func (a *attempt) isKept() bool { return a.of == nil || a.of.open }

// vmOf returns a VMI, and knows it from now on.
func (r *Replay) vmOf(namespace, name, uid string) *vm {
	v := r.vms[uid]
	if v == nil {
		v = &vm{namespace: namespace, name: name, uid: uid}
		r.vms[uid] = v
	}
	if v.name == "" && name != "" { // what its migrations showed came before anything that names it
		v.namespace, v.name = namespace, name
	}
	r.named[v.namespace+"/"+v.name] = v
	return v
}

// nodeOf returns a node, and knows it from now on.
func (r *Replay) nodeOf(name string) *node {
	n := r.nodes[name]
	if n == nil {
		n = &node{name: name}
		r.nodes[name] = n
	}
	return n
}

// evacuationOf returns an evacuation, and knows it from now on.
func (r *Replay) evacuationOf(id trail.FactID, namespace, name, uid, on string) *evacuation {
	e := r.evacuations[id]
	if e == nil {
		e = &evacuation{id: id, vm: r.vmOf(namespace, name, uid), node: r.nodeOf(on)}
		r.evacuations[id] = e
		for _, a := range r.early[id] {
			a.of = e
			e.running++
		}
		delete(r.early, id)
		e.vm.evacuations = append(e.vm.evacuations, e)
	}
	return e
}

// replayEvacuation takes an evacuation of the history.
func (r *Replay) replayEvacuation(row *trail.Evacuation) {
	e := r.evacuationOf(row.ID, row.Namespace, row.VMI, row.VMIUID, row.Node)
	e.row, e.exempt = row, r.now.Before(r.history.Since)
	if r.isCounted(e.vm.namespace, e.node.name) {
		r.recorded.Evacuations++
		e.counted = true
	}
	if e.open || !e.asked { // a request may still come that began it, or it was never seen
		r.openEvacuation(e, row.RequesterClass)
	}
	r.updateSlots(e)
	r.scheduleAt(row.EndedAt, func() { r.endEvacuation(e) })
}

// openEvacuation lets an evacuation go on under the policy from now on, for who asked.
func (r *Replay) openEvacuation(e *evacuation, by trail.RequesterClass) {
	if !e.open {
		e.open, e.owner, e.tries = true, by, 0
	}
	if !e.would && e.row != nil && e.counted {
		e.would = true
		r.out.Would.Evacuations++
	}
	r.updateSlots(e)
}

// closeEvacuation ends an evacuation under the policy.
func (r *Replay) closeEvacuation(e *evacuation) {
	e.open, e.shut = false, true
	if e.would && e.change != nil && e.change.Kind == ChangeHeldBack {
		e.would = false
		r.out.Would.Evacuations--
	}
	r.releaseSlot(e, false)
}

// replayRequest takes a request that began an evacuation of the history, or met one.
func (r *Replay) replayRequest(q *trail.EvictionRequest) {
	if q.DryRun || q.EvacuationID == nil || q.VMIUID == "" {
		return
	}
	known := r.evacuations[*q.EvacuationID]
	marked := q.Answer == trail.AnswerMarked
	if known == nil && !marked { // the evacuation is over, or began before anything that is replayed
		return
	}
	e := r.evacuationOf(*q.EvacuationID, q.Namespace, q.VMI, q.VMIUID, q.Node)
	if q.RequesterClass != trail.RequesterDescheduler {
		e.asked = e.asked || marked
		r.markAskedAgain(e)
		r.openEvacuation(e, q.RequesterClass)
		return
	}
	counted, first := r.isCounted(q.Namespace, q.Node), marked && !e.asked
	if first && counted {
		r.recorded.Evictions++
	}
	retried := r.listRetriedLoops(e.node)
	passed := r.deschedulerAsked(e, q, first, counted)
	e.asked = e.asked || marked
	e.node.actedAt = r.now
	for _, l := range retried {
		l.countAct(passed)
	}
}

// deschedulerAsked decides on a request of the descheduler, and reports whether it would have been sent.
func (r *Replay) deschedulerAsked(e *evacuation, q *trail.EvictionRequest, first, counted bool) bool {
	if !first && e.open {
		if r.policy.KeepMark && !e.held && e.holds { // it takes a pod that bears the mark to be under way, and leaves it alone
			if counted {
				r.out.RequestsSaved++
			}
			return false
		}
		return true
	}
	if first && counted && e.vm.elsewhere {
		r.unknown[UnknownElsewhere]++
	}
	rule, until := r.checkRules(e, q)
	if rule != "" {
		r.holdBack(e, first, counted, rule, until)
		return false
	}
	if counted {
		r.out.Would.Evictions++
	}
	r.askedAgain(e.vm, counted)
	r.markAskedAgain(e)
	r.openEvacuation(e, trail.RequesterDescheduler)
	return true
}

// markAskedAgain notes that an evacuation that was given up or held back is asked again.
func (r *Replay) markAskedAgain(e *evacuation) {
	if e.open || !e.shut {
		return
	}
	e.again = true
	c := e.change
	if c == nil {
		return
	}
	if c.AskedAgain.IsZero() {
		c.AskedAgain = r.now
	}
	if c.Kind == ChangeHeldBack { // somebody else wants it moved
		e.vm.held = slices.DeleteFunc(e.vm.held, func(x *evacuation) bool { return x == e })
		r.finishChange(e)
	}
}

// holdBack keeps an eviction from beginning, or from beginning again.
func (r *Replay) holdBack(e *evacuation, first, counted bool, rule Rule, until time.Time) {
	if !first { // it was given up before, and what that saves is counted there
		return
	}
	c := &Change{
		Kind: ChangeHeldBack, At: r.now, Namespace: e.vm.namespace, VMI: e.vm.name, VMIUID: e.vm.uid, Node: e.node.name, Rule: rule, Until: until,
	}
	if !until.Before(r.history.Until) {
		c.Until = time.Time{}
	}
	e.change = c
	r.closeEvacuation(e)
	e.vm.held = append(e.vm.held, e)
	switch rule {
	case RuleNodeSlots:
		e.node.waiting = append(e.node.waiting, c)
	case RuleTotalSlots:
		r.all.waiting = append(r.all.waiting, c)
	case RuleCooldown, RuleInProgress:
	}
	if c.counted = counted; counted {
		r.out.HeldBack++
	}
}

// askedAgain notes that the descheduler asks for a VM and may have it: what was held back of it has its answer.
func (r *Replay) askedAgain(v *vm, counted bool) {
	for _, e := range v.held {
		e.change.AskedAgain = r.now
		if e.change.counted && counted {
			r.out.AskedAgain++
		}
		r.finishChange(e)
	}
	v.held = nil
}

// replayMigration takes a migration of the history.
func (r *Replay) replayMigration(m *trail.Migration) {
	if m.VMIUID == "" {
		return
	}
	a := &attempt{Migration: m}
	if m.EvacuationID != nil {
		if a.of = r.evacuations[*m.EvacuationID]; a.of != nil {
			a.of.running++
		} else {
			r.early[*m.EvacuationID] = append(r.early[*m.EvacuationID], a)
		}
	}
	v := r.vmOf(m.Namespace, m.VMI, m.VMIUID)
	v.running = append(v.running, a)
	r.scheduleAt(m.FinishedAt, func() { r.endMigration(v, a) })
}

// endMigration takes the end of a migration of the history.
func (r *Replay) endMigration(v *vm, a *attempt) {
	v.running = slices.DeleteFunc(v.running, func(x *attempt) bool { return x == a })
	counted, kept := r.isCounted(v.namespace, a.SourceNode), a.isKept()
	if counted {
		r.recorded.countMigration(a.Migration)
	}
	if kept {
		r.endKeptMigration(v, a, counted)
	} else {
		r.endSavedMigration(v, a, counted)
	}
	e := a.of
	if e == nil {
		if a.EvacuationID != nil {
			delete(r.early, *a.EvacuationID)
		}
		return
	}
	if a.Outcome == trail.OutcomeFailed && !e.failed {
		e.failed = true
		r.dropAnnotation(e)
	}
	if e.running--; e.running == 0 && e.change != nil && e.change.due {
		r.finishChange(e)
	}
}

// countMigration counts a migration that ended.
func (t *Tally) countMigration(m *trail.Migration) {
	t.Migrations++
	switch m.Outcome {
	case trail.OutcomeFailed:
		t.Failed++
	case trail.OutcomeSucceeded:
		t.Moves++
	default:
	}
}

// endKeptMigration takes the end of a migration that would have been made, too.
func (r *Replay) endKeptMigration(v *vm, a *attempt, counted bool) {
	if counted {
		r.out.Would.countMigration(a.Migration)
	}
	v.addFinished(finished{a.UID, r.now, a.Outcome == trail.OutcomeSucceeded})
	if !a.completed && !a.RunningAt.IsZero() { // a gap hid what the VMI showed
		v.addCompletion(trail.Completion{Migration: a.Name, MigrationUID: a.UID, StartedAt: a.RunningAt, EndedAt: a.FinishedAt, Failed: a.Outcome != trail.OutcomeSucceeded})
	}
	if a.Outcome == trail.OutcomeSucceeded {
		v.elsewhere, v.took = false, a.FinishedAt.Sub(a.CreatedAt)
	}
	e := a.of
	if e == nil {
		return
	}
	if e.again {
		e.again = false
		if counted {
			r.unknown[UnknownNewTry]++
		}
	}
	if a.Outcome == trail.OutcomeSucceeded {
		return
	}
	e.tries++
	if most := r.policy.attemptLimit(e.owner); most > 0 && e.tries >= most && !e.exempt {
		r.giveUp(e)
	}
}

// attemptLimit returns after how many attempts without success KubeVirt gives up; 0: never.
func (p Policy) attemptLimit(by trail.RequesterClass) int {
	if p.TryOnce && by == trail.RequesterDescheduler {
		return 1
	}
	return p.GiveUpAfter
}

// giveUp ends an evacuation whose attempts failed. What comes of that shows when it is over in the history.
func (r *Replay) giveUp(e *evacuation) {
	if e.change == nil || e.change.Kind != ChangeGaveUp {
		e.change = &Change{Kind: ChangeGaveUp, At: r.now, Namespace: e.vm.namespace, VMI: e.vm.name, VMIUID: e.vm.uid, Node: e.node.name, counted: r.isCounted(e.vm.namespace, e.node.name)}
	}
	r.closeEvacuation(e)
}

// latest bounds how much is remembered of what would not have been.
const latest = 512

// endSavedMigration takes the end of a migration that would not have been made.
func (r *Replay) endSavedMigration(v *vm, a *attempt, counted bool) {
	if counted {
		r.out.MigrationsSaved++
	}
	if v.unmade = append(v.unmade, a.UID); len(v.unmade) > latest {
		v.unmade = slices.Delete(v.unmade, 0, 1)
	}
	c := a.of.change
	c.Migrations++
	switch a.Outcome {
	case trail.OutcomeFailed:
		c.Failed++
		if counted {
			r.out.FailedSaved++
		}
	case trail.OutcomeSucceeded:
		v.elsewhere = true
		c.Stays, c.LeftAt = true, r.now
		if v.unmoved = append(v.unmoved, r.now); len(v.unmoved) > latest {
			v.unmoved = slices.Delete(v.unmoved, 0, 1)
		}
	default:
	}
}

// endEvacuation takes the end of an evacuation of the history.
func (r *Replay) endEvacuation(e *evacuation) {
	r.releaseSlot(e, true)
	r.releaseSlot(e, false)
	delete(r.evacuations, e.id)
	e.vm.evacuations = slices.DeleteFunc(e.vm.evacuations, func(x *evacuation) bool { return x == e })
	if c := e.change; c != nil && c.Kind == ChangeGaveUp {
		r.finishChange(e)
	}
}

// finishChange reports a difference whose end is known, or will not be: when the last attempt of its evacuation is over, which may be a moment later.
func (r *Replay) finishChange(e *evacuation) {
	c := e.change
	c.due = e.running > 0 && r.now.Before(r.history.Until)
	if c.settled || !c.counted || c.due {
		return
	}
	c.settled = true
	if n := r.nodes[c.Node]; c.Stays && n.actedAt.After(c.At) {
		c.HotSeenAt = n.actedAt
	}
	switch {
	case c.Kind == ChangeHeldBack:
		wait := c.computeWait(r.history.Until)
		r.out.WaitTotal += wait
		r.out.WaitLongest = max(r.out.WaitLongest, wait)
	case c.Migrations == 0 && c.AskedAgain.IsZero(): // it was over in the history, too
		return
	default:
		r.out.GaveUp++
	}
	if c.Stays {
		r.out.Stays++
		r.stayed[c.formatVM()] = true
		if !c.HotSeenAt.IsZero() {
			r.out.StaysHot++
		}
	}
	r.addChange(c)
}

// finishChanges settles what is not when the period is over.
func (r *Replay) finishChanges() {
	for _, e := range sortValues(r.evacuations, func(e *evacuation) string { return e.id.String() }) {
		if c := e.change; c != nil && c.Kind == ChangeGaveUp {
			r.finishChange(e)
		}
	}
	for _, v := range sortValues(r.vms, func(v *vm) string { return v.uid }) {
		for _, e := range v.held {
			if !e.change.counted {
				continue
			}
			if e.change.Until.IsZero() {
				r.unknown[UnknownNeverFree]++
			} else {
				r.unknown[UnknownNotAsked]++
			}
			r.finishChange(e)
		}
	}
	slices.SortStableFunc(r.out.Changes, func(a, b Change) int { return a.At.Compare(b.At) })
}

// sortValues returns the values of a map in the order of their keys, so that the same question has the same answer.
func sortValues[K comparable, V any](m map[K]V, key func(V) string) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b V) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
	return out
}
