package trail

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rows are derived rows of several VMs that belong together: those that touch one node, or the evacuations of a cluster.
// They come in any order, and are read only.
//
// With Since, what was over before that time may be missing, and what is derived of it counts for nothing: no evacuation, drain or loop of a node
// was open at that time, and of the cluster no loop.
type Rows struct {
	Since       time.Time // zero: all rows are there
	Placements  []*Placement
	Evacuations []*Evacuation
	Requests    []*EvictionRequest // the salient ones
	Migrations  []*Migration       // from the node
	Arrivals    []*Migration       // to the node, those that may have caused others from it
	Swings      []*Migration       // the descheduler's between the node and those whose names come after its own
	Decisions   []*Decision        // that hold a VM back
}

// Add adds rows of other VMs.
func (r *Rows) Add(more Rows) {
	r.Placements = append(r.Placements, more.Placements...)
	r.Evacuations = append(r.Evacuations, more.Evacuations...)
	r.Requests = append(r.Requests, more.Requests...)
	r.Migrations = append(r.Migrations, more.Migrations...)
	r.Arrivals = append(r.Arrivals, more.Arrivals...)
	r.Swings = append(r.Swings, more.Swings...)
	r.Decisions = append(r.Decisions, more.Decisions...)
}

// Around passes the Env what the VMs have to do with a node or, under ClusterSubject, with the cluster: VMs are derived first.
func (e *Env) Around(s Subject, rows Rows) {
	byTimeAnd(rows.Placements, func(p *Placement) (time.Time, FactID) { return p.FromAt, p.ID })
	byTimeAnd(rows.Evacuations, func(e *Evacuation) (time.Time, FactID) { return e.MarkedAt, e.ID })
	byTimeAnd(rows.Requests, func(r *EvictionRequest) (time.Time, FactID) { return r.RequestedAt, r.ID })
	byTimeAnd(rows.Decisions, func(d *Decision) (time.Time, FactID) { return d.DecidedAt, d.ID })
	for _, migrations := range [][]*Migration{rows.Migrations, rows.Arrivals, rows.Swings} {
		slices.SortFunc(migrations, func(a, b *Migration) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID))
		})
	}
	e.rows[s] = rows
}

// byTimeAnd sorts rows by a time, those of one time by their identity.
func byTimeAnd[R any](rows []R, of func(R) (time.Time, FactID)) {
	slices.SortFunc(rows, func(a, b R) int {
		at, first := of(a)
		than, second := of(b)
		if c := at.Compare(than); c != 0 {
			return c
		}
		return slices.Compare(first[:], second[:])
	})
}

// ClusterSubject is what is derived of the cluster as a whole.
var ClusterSubject = Subject{SubjectCluster, "all"}

// node is one node with what the VMs have to do with it.
type node struct {
	Rows
	name       string
	facts      []Fact
	env        *Env
	own        *Env // of the node\'s own facts
	thresholds Thresholds
	now        *moment
	outages    []Outage
	acts       []*EvictionRequest      // of the descheduler, by which guests leave the node or are to leave it
	attempts   map[FactID][]*Migration // of each evacuation, in their order
	vmis       map[string]*Rows        // evacuations and requests of each VMI, once somebody asks
}

// ofVMI returns the evacuations of a VMI from the node, and the requests about it.
func (n *node) ofVMI(uid string) *Rows {
	if n.vmis == nil {
		n.vmis = map[string]*Rows{}
		of := func(uid string) *Rows {
			if n.vmis[uid] == nil {
				n.vmis[uid] = &Rows{}
			}
			return n.vmis[uid]
		}
		for _, e := range n.Evacuations {
			r := of(e.VMIUID)
			r.Evacuations = append(r.Evacuations, e)
		}
		for _, q := range n.Requests {
			r := of(q.VMIUID)
			r.Requests = append(r.Requests, q)
		}
	}
	if r := n.vmis[uid]; r != nil {
		return r
	}
	return &Rows{}
}

// deriveNode derives what belongs to a node: its loops, its drains, and what the descheduler's counters say about it.
func deriveNode(subject Subject, facts []Fact, env *Env, now *moment) Derived {
	n := node{
		Rows: env.rows[subject], name: subject.Name, facts: facts, env: env, own: env.newEnvForFacts(facts), thresholds: env.thresholds, now: now,
		outages: outagesOf(facts), attempts: map[FactID][]*Migration{},
	}
	for _, m := range n.Migrations {
		if m.EvacuationID != nil {
			n.attempts[*m.EvacuationID] = append(n.attempts[*m.EvacuationID], m)
		}
	}
	for _, r := range n.Requests {
		if n.isAct(r) {
			n.acts = append(n.acts, r)
		}
	}
	var d Derived
	d.Drains, d.Blockers = n.findDrains()
	for _, e := range n.Evacuations {
		dual := n.dualRetry(e)
		d.Loops = slices.Concat(d.Loops, dual, n.endlessRetry(e, dual), n.priorityInversion(e, d.Drains), n.findUnansweredLoops(e))
	}
	d.Loops = append(d.Loops, findPinnedLoops(n.Evacuations, env.slotLimits(limitPerNode), n.name, env, now)...)
	d.Loops = byOpening(append(d.Loops, n.findOscillations()...))
	n.nameOutages(d.Loops)
	d.Outages = n.outages
	d.Decisions = n.observedBlocks()
	d.Consequences = n.findConsequences()
	d.Timeline = byTime(slices.Concat((&speaker{env: n.own}).renderLines(facts), loopLines(d.Loops), drainLines(d.Drains)))
	d.Timeline = slices.DeleteFunc(d.Timeline, func(l Line) bool { return l.At.Before(n.Since) })
	return d
}

// nameOutages says of loops of the node that it is not ready or, of those that are closed, was not; and of those that go on which migrations are stalled.
func (n *node) nameOutages(loops []Loop) {
	for i := range loops {
		l := &loops[i]
		if !l.Open() {
			if outageAt(n.outages, l.ClosedAt.Add(-time.Microsecond)) != nil {
				l.Summary += fmt.Sprintf(" %s was not ready then.", n.name)
			}
			continue
		}
		if o := outageAt(n.outages, n.now.now); o != nil {
			if o.blocksMigration() {
				l.Summary += fmt.Sprintf(" Nothing leaves %s before it is ready: %s.", n.name, o.describePeriod())
				l.Advice = adviceOutage(n.name)
				continue
			}
			l.Summary += " The node " + o.describePeriod() + "."
		}
		for _, x := range l.Evidence {
			if x.EventID == nil {
				continue
			}
			if m := stalledOf(n.attempts[*x.EventID]); m != nil {
				l.Summary += fmt.Sprintf(" %s of %s/%s is stalled: its target pod is there, and %s.", UpperFirst(m.formatLabel()), m.Namespace, m.VMI, m.WaitDetail)
				l.Advice = adviceStalled(m, outageAt(n.env.findOutages(m.TargetNode), n.now.now))
			}
		}
	}
}

// stalledOf returns the migration among some whose target pod is on a node that is not ready; nil where there is none.
func stalledOf(migrations []*Migration) *Migration {
	for _, m := range migrations {
		if m.isStalled() {
			return m
		}
	}
	return nil
}

// deriveCluster derives what belongs to the cluster as a whole.
func deriveCluster(env *Env, now *moment) Derived {
	var d Derived
	d.Loops = findPinnedLoops(env.rows[ClusterSubject].Evacuations, env.slotLimits(limitTotal), "", env, now)
	d.Timeline = loopLines(d.Loops)
	return d
}

// byDescheduler returns the requests of the descheduler that KubeVirt accepted, or had accepted before.
func (r *EvictionRequest) byDescheduler() bool {
	accepted := r.Answer == AnswerMarked || r.Answer == AnswerAlreadyMarked || r.Answer == AnswerUnknown && r.EvacuationID != nil
	return r.RequesterClass == RequesterDescheduler && !r.DryRun && accepted
}

// isAct reports whether a request of the descheduler took a guest from the node, or was to take it: KubeVirt accepted it, had accepted one
// before, or let it pass, so that the guest was shut down. A request about the target pod of a migration is none: the guest ran elsewhere,
// and was to leave that node. KubeVirt answers it as already marked all the same, since it looks for a mark before it looks for the guest.
//
// Source: kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go.
func (n *node) isAct(r *EvictionRequest) bool {
	switch {
	case r.RequesterClass == RequesterDescheduler && r.Effect == EffectShutdown:
		return true
	case !r.byDescheduler():
		return false
	case r.EvacuationID == nil: // its mark was not seen
		return r.Answer == AnswerMarked
	}
	return slices.ContainsFunc(n.Evacuations, func(e *Evacuation) bool { return e.ID == *r.EvacuationID })
}

// byOthers returns the requests of anybody but the descheduler.
func (r *EvictionRequest) byOthers() bool {
	return r.RequesterClass != RequesterDescheduler && r.RequesterClass != RequesterUnknown && !r.DryRun
}

// formatVM names the VM of a request.
func (r *EvictionRequest) formatVM() string { return r.Namespace + "/" + r.VMI }

// formatVM names the VM of an evacuation.
func (e *Evacuation) formatVM() string { return e.Namespace + "/" + e.VMI }

// guestsAt returns the placements that the node held at a time.
func (n *node) guestsAt(at time.Time) []*Placement {
	var out []*Placement
	for _, p := range n.Placements {
		if n.isWithin(interval{p.FromAt, p.ToAt}, at) {
			out = append(out, p)
		}
	}
	return out
}

// isWithin reports whether a time lies in an interval. What lies ahead of us, as clocks of the cluster may, is looked at again
// when it has come.
func (n *node) isWithin(i interval, at time.Time) bool {
	for _, t := range []time.Time{i.from, i.to} {
		if t.After(at) {
			n.now.hasReached(t)
		}
	}
	return i.containsTime(at)
}
