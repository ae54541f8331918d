package trail

import (
	"fmt"
	"slices"
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

// findBounceLoops finds the loops in which one VMI is moved again and again.
func findBounceLoops(l *life, moves []move, env *Env, now *moment) []Loop {
	vm := VMISubject(l.namespace, l.vmi)
	loops := append(
		env.settled.numberLoops(vm, l.uid, LoopPingPong, pingPong(l, moves, env.thresholds, now)),
		env.settled.numberLoops(vm, l.uid, LoopChurn, findChurnLoops(l, moves, env.thresholds, now))...,
	)
	frequent := findFrequentMoves(l, slices.DeleteFunc(slices.Clone(moves), func(m move) bool { return m.isCounted(loops) }), env.thresholds, now)
	loops = append(loops, env.settled.numberLoops(vm, l.uid, LoopFrequentMoves, frequent)...)
	for i := range loops {
		loops[i].Advice = loops[i].selectTense(adviceBounce(l.namespace, l.vmi, env.kubevirtSettingsAt(loops[i].OpenedAt)), adviceOver(loops[i]))
		if loops[i].Kind == LoopFrequentMoves && loops[i].Open() {
			loops[i].Advice = adviceMoves(l.namespace, l.vmi)
		}
	}
	return loops
}

// isCounted reports whether a move was the descheduler's, and was made in one of some loops that count such moves.
func (m move) isCounted(loops []Loop) bool {
	return m.descheduler && slices.ContainsFunc(loops, func(l Loop) bool {
		return !m.at.Before(l.OpenedAt) && (l.Open() || !m.at.After(l.ClosedAt))
	})
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
	return newBurstLoops(l, LoopChurn, theirs, t.Moves, t.MovesWithin, now)
}

// findFrequentMoves finds the times in which one VMI was moved very often, no matter who asked.
func findFrequentMoves(l *life, moves []move, t Thresholds, now *moment) []Loop {
	return newBurstLoops(l, LoopFrequentMoves, moves, t.AllMoves, t.MovesWithin, now)
}

// newBurstLoops makes a loop of each burst of some moves.
func newBurstLoops(l *life, kind LoopKind, moves []move, count int, within time.Duration, now *moment) []Loop {
	var loops []Loop
	for _, b := range findBursts(moves, func(m move) time.Time { return m.at }, count, within) {
		loops = append(loops, l.newBounceLoop(kind, b.of, b.opened, b.quiet, now))
	}
	return loops
}

// listEnds returns the nodes that moves begin and end at, in the order of their names.
func listEnds(moves []move) []string {
	var nodes []string
	for _, m := range moves {
		nodes = append(nodes, m.from, m.to)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// newBounceLoop makes the loop of some moves. It is over at a time, if the VMI lives till then.
func (l *life) newBounceLoop(kind LoopKind, moves []move, opened, quiet time.Time, now *moment) Loop {
	loop := Loop{
		Kind: kind, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid,
		OpenedAt: opened, Counts: map[string]int{countMoves: len(moves)},
	}
	loop.closeQuietly(l, quiet, now)
	var proof []Exhibit
	var way []string
	for _, m := range moves {
		way = append(way, m.to)
		proof = append(proof, m.newExhibit(l.namespace+"/"+l.vmi))
	}
	loop.setEvidence(proof)
	if kind == LoopPingPong { // the nodes of a churn say little: VMs only pass through them
		loop.Nodes = listEnds(moves)
	}
	took := formatSpan(moves[len(moves)-1].at.Sub(moves[0].at))
	name := l.namespace + "/" + l.vmi
	switch kind {
	case LoopPingPong:
		loop.Counts = map[string]int{countReturns: len(moves)}
		loop.Summary = fmt.Sprintf("The descheduler took %s back to nodes that it had taken it from, %d times in %s: %s.", name, len(moves), took, strings.Join(way, ", "))
	case LoopFrequentMoves:
		loop.Summary = fmt.Sprintf("%s was moved %d times in %s (%s): to %s.", name, len(moves), took,
			countTriggers(moves, move.trigger), strings.Join(way, ", "))
	default:
		loop.Summary = fmt.Sprintf("The descheduler moved %s %d times in %s: to %s.", name, len(moves), took, strings.Join(way, ", "))
	}
	return loop
}

// closeQuietly closes the loop of one VMI when nothing that belongs to it has happened for long, or with the VMI if that ended before.
func (l *Loop) closeQuietly(of *life, quiet time.Time, now *moment) {
	switch {
	case !of.endedAt.IsZero() && of.endedAt.Before(quiet):
		l.close(of.endedAt, LoopVMIGone)
	case now.hasReached(quiet):
		l.close(quiet, LoopQuiet)
	}
}

// trigger says why the guest was moved; unknown where its migration was not seen.
func (m move) trigger() Trigger {
	if m.migration == nil {
		return TriggerUnknown
	}
	return m.migration.Trigger
}

// newExhibit shows a move of a VM.
func (m move) newExhibit(vm string) Exhibit {
	x := Exhibit{At: m.at, VMI: vm, Text: fmt.Sprintf("moved from %s to %s", m.from, m.to)}
	switch {
	case m.descheduler:
		x.Text += " for the descheduler"
	case m.migration != nil:
		x.Text += fmt.Sprintf(" (for: %s)", m.migration.Trigger.Label())
	}
	if m.migration != nil {
		x.EventID = m.migration.EndEvent
		x.Text += fmt.Sprintf(" (%s)", m.migration.Name)
	}
	return x
}

// BounceOf returns what a loop of a VM is counted under when it is frozen.
func BounceOf(l Loop) Bounce {
	if l.VMIUID != "" {
		return Bounce{Of: l.VMIUID, Kind: l.Kind}
	}
	return Bounce{Of: l.Namespace + "/" + l.VMI, Kind: l.Kind}
}
