package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// pinned finds the times in which evacuations that are old hold all slots of the descheduler: of a node, or, where it is
// empty, of the cluster. Evacuations come in the order of their marks.
func pinned(evacuations []*Evacuation, limit int, node string, env *Env, now *moment) []Loop {
	type edge struct {
		at time.Time
		e  *Evacuation
		up bool
	}
	var edges []edge
	for _, e := range evacuations {
		begin := e.MarkedAt.Add(env.thresholds.PinnedAfter)
		over := e.Outcome != "" && !begin.Before(e.EndedAt)
		if !e.holdsSlot() || over || !now.reached(begin) {
			continue
		}
		edges = append(edges, edge{begin, e, true})
		if e.Outcome != "" {
			edges = append(edges, edge{e.EndedAt, e, false})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	var loops []Loop
	var held []*Evacuation
	open := false
	for _, x := range edges {
		if x.up {
			held = append(held, x.e)
			if !open && limit > 0 && len(held) >= limit {
				loops, open = append(loops, pinnedLoop(held, limit, node, x.at, env)), true
			}
			continue
		}
		held = slices.DeleteFunc(held, func(e *Evacuation) bool { return e == x.e })
		if open && len(held) < limit {
			loops[len(loops)-1].close(x.at, LoopEnd(x.e.Outcome))
			open = false
		}
	}
	return loops
}

// holdsSlot tells whether the descheduler counts the evacuation as under way: for as long as its pod is annotated, whoever
// asked. Before KubeVirt v1.6.1 the annotation is taken off at each failure.
func (e *Evacuation) holdsSlot() bool {
	return e.InProgress != "kubevirt" && e.MarkedBy != MarkedByTaint
}

func pinnedLoop(held []*Evacuation, limit int, node string, at time.Time, env *Env) Loop {
	var names []string
	var proof []Exhibit
	for _, e := range held {
		names = append(names, e.vm())
		proof = append(proof, Exhibit{&e.ID, e.MarkedAt, e.vm(), "marked to leave " + e.Node + ", and not moved since"})
	}
	where, whose := "of "+node, "from "+node
	if node == "" {
		where, whose = "of the cluster", "from any node"
	}
	l := Loop{
		ID: hashID("loop", string(LoopBudgetPinned), node, held[len(held)-1].ID.String()), Kind: LoopBudgetPinned, Node: node, OpenedAt: at,
		Counts: map[string]int{"slots": limit, "held": len(held)},
		Summary: fmt.Sprintf("Evacuations that do not end hold all %s %s (%s): the descheduler evicts nothing %s until one ends.",
			plural(limit, "slot"), where, strings.Join(names, ", "), whose),
		Advice: adviceStuck(held[0], env.settings(at)),
	}
	l.prove(proof)
	return l
}
