package trail

import (
	"cmp"
	"slices"
	"time"
)

// Rows are derived rows of several VMs that belong together: those that touch one node, or the evacuations of a cluster.
// They come in any order.
type Rows struct {
	Placements  []Placement
	Evacuations []Evacuation
	Requests    []EvictionRequest
	Attempts    []Migration // from the node, of its evacuations
	Decisions   []Decision
}

// Around tells the Env what the VMs have to do with a node or, under ClusterSubject, with the cluster: VMs are derived first.
func (e *Env) Around(s Subject, rows Rows) {
	slices.SortFunc(rows.Placements, func(a, b Placement) int { return cmp.Or(a.FromAt.Compare(b.FromAt), slices.Compare(a.ID[:], b.ID[:])) })
	slices.SortFunc(rows.Evacuations, func(a, b Evacuation) int {
		return cmp.Or(a.MarkedAt.Compare(b.MarkedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	slices.SortFunc(rows.Requests, func(a, b EvictionRequest) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	slices.SortFunc(rows.Attempts, func(a, b Migration) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID)) })
	rows.Decisions = inOrder(rows.Decisions)
	e.rows[s] = rows
}

// ClusterSubject is what is derived of the cluster as a whole.
var ClusterSubject = Subject{SubjectCluster, "all"}

// node is one node with what the VMs have to do with it.
type node struct {
	Rows
	name       string
	facts      []Fact
	env        *Env
	thresholds Thresholds
	now        *moment
	acts       []EvictionRequest      // of the descheduler, that KubeVirt accepted or had accepted before
	attempts   map[FactID][]Migration // of each evacuation, in their order
}

// deriveNode derives what belongs to a node: its loops, its drains, and what the descheduler's counters say about it.
func deriveNode(subject Subject, facts []Fact, env *Env, now *moment) Derived {
	n := node{
		Rows: env.rows[subject], name: subject.Name, facts: facts, env: env, thresholds: env.thresholds, now: now,
		attempts: map[FactID][]Migration{},
	}
	for _, m := range n.Attempts {
		if m.EvacuationID != nil {
			n.attempts[*m.EvacuationID] = append(n.attempts[*m.EvacuationID], m)
		}
	}
	for _, r := range n.Requests {
		if r.byDescheduler() {
			n.acts = append(n.acts, r)
		}
	}
	var d Derived
	d.Drains, d.Blockers = n.drains()
	for i := range n.Evacuations {
		e := &n.Evacuations[i]
		dual := n.dualRetry(e)
		d.Loops = slices.Concat(d.Loops, dual, n.endlessRetry(e, dual), n.priorityInversion(e, d.Drains), n.unanswered(e))
	}
	d.Loops = append(d.Loops, pinned(n.Evacuations, env.slotLimits(limitPerNode), n.name, env, now)...)
	d.Loops = byOpening(d.Loops)
	d.Decisions = n.observedBlocks()
	d.Timeline = byTime(slices.Concat((&speaker{env: NewEnv(facts)}).lines(facts), loopLines(d.Loops), drainLines(d.Drains)))
	return d
}

// deriveCluster derives what belongs to the cluster as a whole.
func deriveCluster(env *Env, now *moment) Derived {
	var d Derived
	d.Loops = pinned(env.rows[ClusterSubject].Evacuations, env.slotLimits(limitTotal), "", env, now)
	d.Timeline = loopLines(d.Loops)
	return d
}

// byDescheduler tells the requests of the descheduler that KubeVirt accepted, or had accepted before.
func (r *EvictionRequest) byDescheduler() bool {
	accepted := r.Answer == AnswerMarked || r.Answer == AnswerAlreadyMarked || r.Answer == AnswerUnknown && r.EvacuationID != nil
	return r.RequesterClass == RequesterDescheduler && !r.DryRun && accepted
}

// byOthers tells the requests of anybody but the descheduler.
func (r *EvictionRequest) byOthers() bool {
	return r.RequesterClass != RequesterDescheduler && r.RequesterClass != RequesterUnknown && !r.DryRun
}

// vm names the VM of a request.
func (r *EvictionRequest) vm() string { return r.Namespace + "/" + r.VMI }

// vm names the VM of an evacuation.
func (e *Evacuation) vm() string { return e.Namespace + "/" + e.VMI }

// guests gives the placements that the node held at a time.
func (n *node) guests(at time.Time) []*Placement {
	var out []*Placement
	for i := range n.Placements {
		if p := &n.Placements[i]; n.within(interval{p.FromAt, p.ToAt}, at) {
			out = append(out, p)
		}
	}
	return out
}

// within tells whether a time lies in an interval. What lies ahead of us, as clocks of the cluster may, is looked at again
// when it has come.
func (n *node) within(i interval, at time.Time) bool {
	for _, t := range []time.Time{i.from, i.to} {
		if t.After(at) {
			n.now.reached(t)
		}
	}
	return i.holds(at)
}
