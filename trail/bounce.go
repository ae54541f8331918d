package trail

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// move is a guest's way from one node to another.
type move struct {
	at          time.Time
	from, to    string
	descheduler bool // it was the descheduler's
	migration   *Migration
}

// movesOf returns the moves of one VMI, in their order.
func movesOf(l *life, migrations []*migration) []move {
	by := map[string]*Migration{}
	for _, m := range migrations {
		by[m.UID] = &m.Migration
	}
	var out []move
	for i := 1; i < len(l.placements); i++ {
		p := l.placements[i]
		m := by[p.arrivalMigrationUID()]
		out = append(out, move{p.FromAt, l.placements[i-1].Node, p.Node, m != nil && m.Trigger == TriggerDescheduler, m})
	}
	return out
}

// findBounceLoops finds the loops in which the descheduler moves one VMI again and again.
func findBounceLoops(l *life, migrations []*migration, env *Env, now *moment) []Loop {
	moves := movesOf(l, migrations)
	vm := VMISubject(l.namespace, l.vmi)
	loops := append(
		env.settled.numberLoops(vm, l.uid, LoopPingPong, pingPong(l, moves, env.thresholds, now)),
		env.settled.numberLoops(vm, l.uid, LoopChurn, findChurnLoops(l, moves, env.thresholds, now))...,
	)
	for i := range loops {
		loops[i].Advice = loops[i].selectTense(adviceBounce(l.namespace, l.vmi, env.kubevirtSettingsAt(loops[i].OpenedAt)), adviceOver(loops[i]))
	}
	return loops
}

// loopID is the identity of a loop around what Bounce.Of names, by its number among those of its kind.
func loopID(kind LoopKind, of string, ordinal int) FactID {
	return hashID("loop", string(kind), of, strconv.Itoa(ordinal))
}

// pingPong finds the returns of a VMI to nodes that it left not long ago, both moves being the descheduler's.
func pingPong(l *life, moves []move, t Thresholds, now *moment) []Loop {
	var loops []Loop
	var run []move // returns that follow each other closely
	end := func() {
		if len(run) >= t.Returns {
			loops = append(loops, l.newBounceLoop(LoopPingPong, run, run[t.Returns-1].at, run[len(run)-1].at.Add(t.ReturnWithin), now))
		}
		run = nil
	}
	for i, m := range moves {
		if !isReturn(moves[:i], m, t.ReturnWithin) {
			continue
		}
		if len(run) > 0 && m.at.Sub(run[len(run)-1].at) > t.ReturnWithin {
			end()
		}
		run = append(run, m)
	}
	end()
	return loops
}

// isReturn reports whether a move brings the guest back to a node that it left within a time.
func isReturn(before []move, m move, within time.Duration) bool {
	for i := len(before) - 1; i >= 0 && m.descheduler; i-- {
		if left := before[i]; left.from == m.to {
			return left.descheduler && m.at.Sub(left.at) <= within
		}
	}
	return false
}

// findChurnLoops finds the times in which the descheduler moved one VMI very often.
func findChurnLoops(l *life, moves []move, t Thresholds, now *moment) []Loop {
	var theirs []move
	for _, m := range moves {
		if m.descheduler {
			theirs = append(theirs, m)
		}
	}
	var loops []Loop
	for i := t.Moves - 1; i < len(theirs); i++ {
		if theirs[i].at.Sub(theirs[i-t.Moves+1].at) >= t.MovesWithin {
			continue
		}
		first, last := i-t.Moves+1, i
		falls := func() time.Time { return theirs[last-t.Moves+1].at.Add(t.MovesWithin) }
		for last+1 < len(theirs) && theirs[last+1].at.Before(falls()) {
			last++
		}
		loops = append(loops, l.newBounceLoop(LoopChurn, theirs[first:last+1], theirs[i].at, falls(), now))
		i = last
	}
	return loops
}

// newBounceLoop makes the loop of some moves. It is over at a time, if the VMI lives till then.
func (l *life) newBounceLoop(kind LoopKind, moves []move, opened, quiet time.Time, now *moment) Loop {
	loop := Loop{
		Kind: kind, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid,
		OpenedAt: opened, Counts: map[string]int{countMoves: len(moves)},
	}
	switch {
	case !l.endedAt.IsZero() && l.endedAt.Before(quiet):
		loop.close(l.endedAt, LoopVMIGone)
	case now.hasReached(quiet):
		loop.close(quiet, LoopQuiet)
	}
	var proof []Exhibit
	var way []string
	for _, m := range moves {
		way = append(way, m.to)
		proof = append(proof, Exhibit{m.migration.EndEvent, m.at, l.namespace + "/" + l.vmi, fmt.Sprintf("moved from %s to %s for the descheduler (%s)", m.from, m.to, m.migration.Name)})
	}
	loop.setEvidence(proof)
	took := formatSpan(moves[len(moves)-1].at.Sub(moves[0].at))
	name := l.namespace + "/" + l.vmi
	if kind == LoopPingPong {
		loop.Counts = map[string]int{countReturns: len(moves)}
		loop.Summary = fmt.Sprintf("The descheduler took %s back to nodes that it had taken it from, %d times in %s: %s.", name, len(moves), took, strings.Join(way, ", "))
	} else {
		loop.Summary = fmt.Sprintf("The descheduler moved %s %d times in %s: to %s.", name, len(moves), took, strings.Join(way, ", "))
	}
	return loop
}

// BounceOf returns what a loop of a VM is counted under when it is frozen.
func BounceOf(l Loop) Bounce {
	if l.VMIUID != "" {
		return Bounce{Of: l.VMIUID, Kind: l.Kind}
	}
	return Bounce{Of: l.Namespace + "/" + l.VMI, Kind: l.Kind}
}
