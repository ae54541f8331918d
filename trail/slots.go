package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// slotLimit is how many VMs the descheduler may evict at a time, from a moment on; 0: any number.
type slotLimit struct {
	from time.Time
	n    int
}

// slotLimits returns the limits that were in force, of a node or in total, in the order of their times: the first since ever.
// It is empty where no policy is known.
func (e *Env) slotLimits(of func(*DeschedulerSettings) *int64) []slotLimit {
	var out []slotLimit
	for _, p := range e.policies {
		if p.detail.Descheduler == nil {
			continue
		}
		l := slotLimit{from: p.at}
		if n := of(p.detail.Descheduler); n != nil {
			l.n = int(*n)
		}
		switch {
		case len(out) == 0:
			out = append(out, slotLimit{n: l.n})
		case out[len(out)-1].n != l.n:
			out = append(out, l)
		}
	}
	return out
}

func limitPerNode(s *DeschedulerSettings) *int64 { return s.LimitPerNode }
func limitTotal(s *DeschedulerSettings) *int64   { return s.LimitTotal }

// findPinnedLoops finds the times in which evacuations that are old hold all slots of the descheduler: of a node, or, where it is
// empty, of the cluster. Evacuations come in the order of their marks.
func findPinnedLoops(evacuations []*Evacuation, limits []slotLimit, node string, env *Env, now *moment) []Loop {
	type edge struct {
		at    time.Time
		limit *slotLimit // a new limit, else
		e     *Evacuation
		up    bool // it begins to hold its slot, else it ends
	}
	var edges []edge
	for i := range limits {
		if l := &limits[i]; l.from.IsZero() || now.hasReached(l.from) {
			edges = append(edges, edge{at: l.from, limit: l})
		}
	}
	for _, e := range evacuations {
		begin := e.MarkedAt.Add(env.thresholds.PinnedAfter)
		until := e.slotUntil()
		over := !until.IsZero() && !begin.Before(until)
		if len(limits) == 0 || e.MarkedBy == MarkedByTaint || over || !now.hasReached(begin) {
			continue
		}
		edges = append(edges, edge{at: begin, e: e, up: true})
		if !until.IsZero() {
			edges = append(edges, edge{at: until, e: e})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	var loops []Loop
	var held []*Evacuation
	open, limit, holders := false, 0, "" // the VMs that held all slots when the last loop opened
	for _, x := range edges {
		by := LoopQuiet
		switch {
		case x.limit != nil:
			limit = x.limit.n
		case x.up:
			held = append(held, x.e)
		default:
			held = slices.DeleteFunc(held, func(e *Evacuation) bool { return e == x.e })
			if x.at.Equal(x.e.EndedAt) {
				by = LoopEnd(x.e.Outcome)
			}
		}
		switch full := limit > 0 && len(held) >= limit; {
		case full && !open:
			l := pinnedLoop(held, limit, node, x.at, env)
			holders = namesOf(held)
			l.Summary = pinnedSummary(l, holders)
			if x.limit != nil { // the same evacuations may have held all slots before
				l.ID = hashID(l.ID.String(), x.at.Format(time.RFC3339Nano))
			}
			loops, open = append(loops, l), true
		case !full && open:
			l := &loops[len(loops)-1]
			l.close(x.at, by)
			l.Summary, l.Advice, open = pinnedSummary(*l, holders), adviceOver(*l), false
		}
	}
	return loops
}

// HoldsSlot reports whether the descheduler counts an evacuation as under way: for as long as its pod is annotated, no matter who asked.
func (e *Evacuation) HoldsSlot() bool {
	return e.MarkedBy != MarkedByTaint && e.slotUntil().IsZero()
}

// slotUntil returns when an evacuation released its slot of the descheduler; zero while it holds it. Before KubeVirt v1.6.1 the annotation is taken off at
// each failure: from the first one on the slot is free again and again, and no longer counts.
func (e *Evacuation) slotUntil() time.Time {
	if e.InProgress != InProgressPerAttempt {
		return e.EndedAt
	}
	return minNonZeroTime(e.EndedAt, minNonZeroTime(e.FirstFailedAt, e.InProgressLostAt))
}

// InProgressPerAttempt is the value of the annotation eviction-in-progress where it lasts only as long as an attempt: KubeVirt before v1.6.1
// takes it off at each failure. Later it stays until the evacuation ends.
const InProgressPerAttempt = "kubevirt"

func pinnedLoop(held []*Evacuation, limit int, node string, at time.Time, env *Env) Loop {
	var proof []Exhibit
	for _, e := range held {
		proof = append(proof, Exhibit{new(e.ID), e.MarkedAt, e.formatVM(), "marked to leave " + e.Node + ", and not moved since"})
	}
	l := Loop{
		ID: hashID("loop", string(LoopBudgetPinned), node, held[len(held)-1].ID.String()), Kind: LoopBudgetPinned, Node: node, OpenedAt: at,
		Counts: map[string]int{countSlots: limit, countHeld: len(held)}, Advice: adviceStuck(held[0], env.kubevirtSettingsAt(at)),
	}
	l.setEvidence(proof)
	return l
}

// pinnedSummary says which VMs hold all slots, or held them.
func pinnedSummary(l Loop, holders string) string {
	node, from := l.Node, "it"
	if node == "" {
		node, from = "the cluster", "any node"
	}
	held := fmt.Sprintf(l.selectTense("A stuck evacuation (%s) occupies ", "A stuck evacuation (%s) occupied "), holders)
	if l.Counts[countHeld] > 1 {
		held = fmt.Sprintf(l.selectTense("Stuck evacuations (%s) occupy ", "Stuck evacuations (%s) occupied "), holders)
	}
	return held + allSlots(l.Counts[countSlots], node) + fmt.Sprintf(l.selectTense(
		"; the descheduler evicts nothing else from %s while it remembers this (10 to 20 minutes, or longer).",
		"; the descheduler evicted nothing else from %s while it remembered this."), from)
}

// namesOf lists the VMs of evacuations.
func namesOf(evacuations []*Evacuation) string {
	names := make([]string, len(evacuations))
	for i, e := range evacuations {
		names[i] = e.formatVM()
	}
	return strings.Join(names, ", ")
}

// allSlots names the slots of the descheduler for a node, or for the cluster.
func allSlots(n int, of string) string {
	if n == 1 {
		return "the only descheduler slot of " + of
	}
	return fmt.Sprintf("all %d descheduler slots of %s", n, of)
}

// Stretch is a time in which the source pod of an evacuation bore the annotation eviction-in-progress, by which the descheduler
// counts evictions that are under way.
type Stretch struct {
	Namespace string
	VMI       string
	From      time.Time
	To        time.Time // zero while it goes on
	EventID   FactID    // of the fact that began it
}

// Annotated returns the stretches of the VMs that are to leave a node, or were, in the order of their beginnings.
func (c *Cluster) Annotated(node string) []Stretch {
	var out []Stretch
	for s, d := range c.Rows {
		for i := range d.Evacuations {
			if e := &d.Evacuations[i]; e.Node == node {
				out = append(out, e.findAnnotatedStretches(c.facts[s])...)
			}
		}
	}
	slices.SortFunc(out, func(a, b Stretch) int {
		return cmp.Or(a.From.Compare(b.From), slices.Compare(a.EventID[:], b.EventID[:]))
	})
	return out
}

// findAnnotatedStretches finds when the evacuation's pod bore the annotation, in facts in the order of their times. The watch of pods may show it
// a little before the one of VMIs shows the mark.
func (e *Evacuation) findAnnotatedStretches(facts []Fact) []Stretch {
	var out []Stretch
	open := false
	for _, f := range facts {
		if f.Reason != ReasonEvictionInProgress || f.VMIUID != e.VMIUID || f.Node != e.Node ||
			f.OccurredAt.Before(e.MarkedAt.Add(-markSlack)) || !e.EndedAt.IsZero() && !f.OccurredAt.Before(e.EndedAt) {
			continue
		}
		switch set := f.Kind == KindAnnotationSet; {
		case set && !open:
			out = append(out, Stretch{Namespace: e.Namespace, VMI: e.VMI, From: f.OccurredAt, To: e.EndedAt, EventID: f.ID})
		case !set && open:
			out[len(out)-1].To = f.OccurredAt
		}
		open = f.Kind == KindAnnotationSet
	}
	return out
}

// LimitsTotal reports whether the rules in force at some time bound how many VMs the descheduler may evict from all nodes together: then
// the evacuations of the whole cluster matter to each VM.
func LimitsTotal(rules []Fact) bool {
	return slices.ContainsFunc(NewEnv(rules).slotLimits(limitTotal), func(l slotLimit) bool { return l.n > 0 })
}

// SlotLimit returns how many VMs the descheduler may evict from one node at a time, by the policy in force then; 0 where there is no
// limit, or no policy is known.
func (c *Cluster) SlotLimit(at time.Time) int {
	n, _, _ := c.env.SlotLimits(at)
	return n
}

// SlotLimits returns how many VMs the descheduler may evict at a time from one node, and from all, by the policy in force then; 0 where there
// is no limit. Known is false where no policy was ever seen.
func (e *Env) SlotLimits(at time.Time) (node, total int, known bool) {
	p := e.deschedulerSettingsAt(at)
	if p == nil {
		return 0, 0, false
	}
	if p.LimitPerNode != nil {
		node = int(*p.LimitPerNode)
	}
	if p.LimitTotal != nil {
		total = int(*p.LimitTotal)
	}
	return node, total, true
}
