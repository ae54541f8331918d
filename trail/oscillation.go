package trail

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// isSwing reports whether a migration is a move of the descheduler between two nodes. It matters at the one whose name
// comes first.
func (m *Migration) isSwing() bool {
	return m.Trigger == TriggerDescheduler && m.Outcome == OutcomeSucceeded &&
		m.SourceNode != "" && m.TargetNode != "" && m.SourceNode != m.TargetNode
}

// SwingReach returns how far before a time at which no oscillation is open moves bear on those that come: fewer swings
// than open one, each answering a move from as long before as it may, and the first of these bringing a VM round.
func (t Thresholds) SwingReach() time.Duration {
	return time.Duration(t.Swings)*t.SwingWithin + t.ReturnWithin
}

// way is how VMs leave a node in an oscillation and come back: to and from the same node, or round.
type way struct{ to, from string }

// isRound reports whether more than two nodes are on the way.
func (w way) isRound() bool { return w.to != w.from }

// findOscillations finds the times in which the descheduler moves VMs to and fro between the node and another one, or
// round: away to one node, and back from another. It is found at the node whose name comes before those of both.
//
// A move on a way is a swing if the last move on it before went the other way at the node, was of another VM, and is no
// older than SwingWithin. So many swings that follow each other as closely (Swings) open an oscillation: X left n1 for
// n2, Y came back, and both again. It is over when there is none for as long. On the way round from n1 to n2 and back
// from n3 are all moves from n1 to n2, and those from n3 of VMs that left n1 for n2 not long before (ReturnWithin).
// What follows from the rule:
//
//   - The way of one VM alone, to and fro or round, has no swing: that is a ping-pong. A VM that swings with others may
//     have one beside.
//   - A drain and the filling up afterwards have none, as a drain's moves are not the descheduler's, and its own all go
//     one way. Where one node after the other is emptied and filled up again there is at most one swing for each time.
//   - Moves that pass through a node, from n3 to n1 and from n1 to n2, are none: those that come are not those that
//     left.
//   - Whether a move is a swing, and belongs to an oscillation, depends on none that comes later.
//   - What VMs do between the two nodes is not looked at. Where four or more nodes are on the way, two of them may come
//     before their neighbours, and each has an oscillation.
func (n *node) findOscillations() []Loop {
	byWay := n.splitByWay(slices.SortedStableFunc(slices.Values(n.Swings), byEnd))
	var loops []Loop
	for _, w := range slices.SortedFunc(maps.Keys(byWay), compareWays) {
		loops = append(loops, n.findOscillationsOn(w, byWay[w])...)
	}
	return loops
}

func compareWays(a, b way) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) }

func byEnd(a, b *Migration) int { return a.bestEndTime().Compare(b.bestEndTime()) }

// splitByWay returns the moves on each way, in the order of their ends, as some moves are.
func (n *node) splitByWay(moves []*Migration) map[way][]*Migration {
	byWay, left, away := map[way][]*Migration{}, map[string]*Migration{}, map[string][]*Migration{}
	for _, m := range moves {
		if m.SourceNode == n.name {
			w := way{m.TargetNode, m.TargetNode}
			byWay[w], away[w.to], left[m.VMIUID] = append(byWay[w], m), append(away[w.to], m), m
			continue
		}
		w := way{m.SourceNode, m.SourceNode}
		byWay[w] = append(byWay[w], m)
		last := left[m.VMIUID]
		delete(left, m.VMIUID)
		if last != nil && last.TargetNode != m.SourceNode &&
			m.bestEndTime().Sub(last.bestEndTime()) <= n.thresholds.ReturnWithin {
			w.to = last.TargetNode
			byWay[w] = append(byWay[w], m)
		}
	}
	for w, back := range byWay {
		if w.isRound() {
			byWay[w] = slices.SortedStableFunc(slices.Values(slices.Concat(away[w.to], back)), byEnd)
		}
	}
	return byWay
}

// findOscillationsOn finds the oscillations on a way, of all moves on it.
func (n *node) findOscillationsOn(w way, moves []*Migration) []Loop {
	t := n.thresholds
	var loops []Loop
	var run []int // swings that follow each other closely, as their places among the moves
	end := func() {
		if t.Swings > 0 && len(run) >= t.Swings {
			loops = append(loops, n.newOscillation(w, moves, run))
		}
		run = nil
	}
	for i := 1; i < len(moves); i++ {
		if !n.answers(moves[i], moves[i-1]) {
			continue
		}
		if len(run) > 0 && moves[i].bestEndTime().Sub(moves[run[len(run)-1]].bestEndTime()) > t.SwingWithin {
			end()
		}
		run = append(run, i)
	}
	end()
	return loops
}

// answers reports whether a move goes the other way at the node than the last one before it, which was of another VM,
// within the time for a swing.
func (n *node) answers(m, before *Migration) bool {
	return (m.SourceNode == n.name) != (before.SourceNode == n.name) && m.VMIUID != before.VMIUID &&
		m.bestEndTime().Sub(before.bestEndTime()) <= n.thresholds.SwingWithin
}

// newOscillation makes the loop of some swings among the moves on a way.
func (n *node) newOscillation(w way, moves []*Migration, swings []int) Loop {
	opening, last := moves[swings[n.thresholds.Swings-1]], moves[swings[len(swings)-1]]
	period := 2 * last.bestEndTime().Sub(moves[swings[0]].bestEndTime()) / time.Duration(max(len(swings)-1, 1))
	others := []string{w.to}
	if w.isRound() {
		others = append(others, w.from)
	}
	l := Loop{
		ID:   hashID(slices.Concat([]string{"loop", string(LoopOscillation), n.name}, others, []string{opening.UID})...),
		Kind: LoopOscillation, Node: n.name, Nodes: append([]string{n.name}, others...), OpenedAt: opening.bestEndTime(),
	}
	if quiet := last.bestEndTime().Add(n.thresholds.SwingWithin); n.now.hasReached(quiet) {
		l.close(quiet, LoopQuiet)
	}
	members := map[string]bool{}
	var proof []Exhibit
	moves = moves[swings[0]-1 : swings[len(swings)-1]+1]
	for _, m := range moves {
		vm := m.Namespace + "/" + m.VMI
		members[vm] = true
		swing := move{m.bestEndTime(), m.SourceNode, m.TargetNode, true, m}
		proof = append(proof, swing.newExhibit(vm))
	}
	l.setEvidence(proof)
	l.Counts = map[string]int{
		countMoves: len(moves), countSwings: len(swings), countMembers: len(members), countPeriod: int(period.Seconds()),
	}
	took := last.bestEndTime().Sub(moves[0].bestEndTime())
	l.Summary = fmt.Sprintf("The descheduler %s VMs %s, %s in %s, once %s in %s%s.",
		l.selectTense("moves", "moved"), n.describeWay(w), formatRepetition(len(moves)), formatSpan(took),
		w.formatTurn(), formatSpan(period), formatMembers(slices.Sorted(maps.Keys(members))))
	l.Advice = l.selectTense(adviceSwings(n.name, moves[0], n.env.kubevirtSettingsAt(l.OpenedAt)), adviceOver(l))
	return l
}

// describeWay says how VMs leave the node, and come back.
func (n *node) describeWay(w way) string {
	if w.isRound() {
		return fmt.Sprintf("in a circle, from %[1]s to %[2]s and back to %[1]s from %[3]s", n.name, w.to, w.from)
	}
	return fmt.Sprintf("to and fro between %s and %s", n.name, w.to)
}

// formatTurn names what VMs do once they have left and come back.
func (w way) formatTurn() string {
	if w.isRound() {
		return "round"
	}
	return "to and fro"
}

// membersNamed is how many of the VMs that go to and fro are named in a sentence; the evidence has them all.
const membersNamed = 10

// formatMembers names VMs, in parentheses.
func formatMembers(vms []string) string {
	more := ""
	if n := len(vms) - membersNamed; n > 0 {
		vms, more = vms[:membersNamed], " and "+formatCountInWords(n, "other VM")
	}
	return " (" + strings.Join(vms, ", ") + more + ")"
}
