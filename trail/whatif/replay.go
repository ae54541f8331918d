package whatif

import (
	"container/heap"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// History is what all replays of one question go by, beside the events.
type History struct {
	Rules      []trail.Fact     // of the descheduler: policies and starts of its processes, in any order
	Thresholds trail.Thresholds // of loops
	Since      time.Time        // inclusive; what is before is as it was
	Until      time.Time        // exclusive
	// Reports reports whether what concerns a VM and a node is reported and counted; nil: everything is.
	Counts func(namespace, node string) bool
}

// Replay replays events under one policy.
type Replay struct {
	policy  Policy
	history *History
	env     *trail.Env
	now     time.Time // of the event

	ends        ends
	seq         int
	evacuations map[trail.FactID]*evacuation
	early       map[trail.FactID][]*attempt // whose evacuation has not come yet: their times are in whole seconds
	vms         map[string]*vm              // by the UID of the VMI
	named       map[string]*vm              // by namespace/name: the VMI that bears it now
	nodes       map[string]*node
	all         slots // of all nodes
	loops       []*dual

	recorded Tally
	out      Result
	unknown  unknowns
	stayed   map[string]bool // VMs, by namespace/name
}

// New makes a replay. The history must not change during that time.
func New(p Policy, h *History) *Replay {
	return &Replay{
		policy: p, history: h, env: trail.NewEnv(h.Rules), evacuations: map[trail.FactID]*evacuation{}, early: map[trail.FactID][]*attempt{}, vms: map[string]*vm{}, named: map[string]*vm{},
		nodes: map[string]*node{}, unknown: unknowns{}, stayed: map[string]bool{},
		out: Result{Name: p.String(), Policy: p, LoopsAvoided: map[trail.LoopKind]int{}, Changes: []Change{}},
	}
}

// Step takes the next event. Events come in the order of Event.Compare, and none is at or after the end of the period. What they point to is
// kept.
func (r *Replay) Step(e Event) {
	r.runUntil(e.At)
	r.now = e.At
	switch {
	case e.Loop != nil:
		r.loopOpened(e.Loop)
	case e.Decision != nil:
		r.replayDecision(e.Decision)
	case e.Evacuation != nil:
		r.replayEvacuation(e.Evacuation)
	case e.Migration != nil:
		r.replayMigration(e.Migration)
	case e.Completion != nil:
		r.replayCompletion(e.Completion)
	case e.Request != nil:
		r.replayRequest(e.Request)
	}
}

// End returns what would have been different, and what really happened.
func (r *Replay) End() (Result, Tally) {
	r.runUntil(r.history.Until)
	r.now = r.history.Until
	for _, l := range slices.Clone(r.loops) {
		r.evaluateDualLoop(l)
	}
	r.finishChanges()
	r.out.Unknown = r.unknown.list()
	r.out.VMsStaying = len(r.stayed)
	would := &r.out.Would
	would.Loops = r.recorded.Loops - r.out.LoopsSaved()
	r.out.Changed = len(r.out.Changes) > 0 || *would != r.recorded || r.out.RequestsSaved > 0
	return r.out, r.recorded
}

// inPeriod reports whether a time is in the period: before it everything is as it was.
func (r *Replay) inPeriod(t time.Time) bool {
	return !t.Before(r.history.Since) && t.Before(r.history.Until)
}

// isCounted reports whether what concerns a VM and a node now is reported and counted.
func (r *Replay) isCounted(namespace, node string) bool {
	return r.inPeriod(r.now) && (r.history.Counts == nil || r.history.Counts(namespace, node))
}

// addChange keeps a difference whose sentence can be written.
func (r *Replay) addChange(c *Change) {
	if len(r.out.Changes) == changesKept {
		r.out.ChangesMore++
		return
	}
	c.setSentence()
	r.out.Changes = append(r.out.Changes, *c)
}

// end is something that is over at a time.
type end struct {
	at  time.Time
	seq int // in the order in which they were set: ends of one time keep it
	do  func()
}

// ends is a heap of them, the next first.
type ends []end

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].seq < h[j].seq
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *ends) Push(x any) { *h = append(*h, x.(end)) }

// Pop implements heap.Interface.
func (h *ends) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = end{}
	*h = (*h)[:len(*h)-1]
	return last
}

// scheduleAt has something done when the replay comes to a time; never where it is zero.
func (r *Replay) scheduleAt(t time.Time, do func()) {
	if !t.IsZero() {
		r.seq++
		heap.Push(&r.ends, end{t, r.seq, do})
	}
}

// runUntil does what is over by a time.
func (r *Replay) runUntil(t time.Time) {
	for len(r.ends) > 0 && !r.ends[0].at.After(t) {
		next := heap.Pop(&r.ends).(end)
		r.now = next.at
		next.do()
	}
}
