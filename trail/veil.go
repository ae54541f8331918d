package trail

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a caller may not see of others' VMs: their names, and what was said about each. What is left are numbers and times, as the
// slots of the descheduler, a drain and a queue are shared, and are not understood without them.

// SeenBy returns the cluster as a Scope sees it. The VMs that it may not see have no names any more, and are counted where they matter;
// loops that neither are about a VM that it sees nor name one are left out.
func (c *Cluster) SeenBy(scope Scope) *Cluster {
	if !scope.Limited() {
		return c
	}
	seen := &Cluster{Name: c.Name, Rows: make(map[Subject]Derived, len(c.Rows)), Now: c.Now, Seen: c.Seen, env: c.env, facts: map[Subject][]Fact{}}
	others := 0
	for s, d := range c.Rows {
		namespace, _ := s.VM()
		switch {
		case s.Kind != SubjectVMI:
			seen.Rows[s] = scope.redactNodeRows(d)
		case scope.Sees(namespace):
			d.Loops = scope.Loops(d.Loops)
			seen.Rows[s], seen.facts[s] = d, c.facts[s]
		default:
			others++
			veiled := Subject{SubjectVMI, fmt.Sprintf("/%d", others)} // which is no VM's
			seen.Rows[veiled], seen.facts[veiled] = d.redactDetails(), veiledFacts(c.facts[s])
		}
	}
	return seen
}

// redactNodeRows hides what the rows of a node, or of the cluster as a whole, say about VMs that are not seen, and about users.
func (s Scope) redactNodeRows(d Derived) Derived {
	out := Derived{Outages: d.Outages, Loops: s.Loops(d.Loops), Drains: s.Drains(d.Drains), Gaps: s.Gaps(d.Gaps)}
	for _, c := range d.Consequences {
		if s.Sees(c.Namespace) {
			out.Consequences = append(out.Consequences, c)
		}
	}
	for _, b := range d.Blockers {
		if s.Sees(b.Namespace) {
			out.Blockers = append(out.Blockers, b)
		}
	}
	for _, x := range d.Decisions {
		if s.Sees(x.Namespace) {
			out.Decisions = append(out.Decisions, x)
		}
	}
	out.Timeline = append(loopLines(out.Loops), drainLines(out.Drains)...)
	for _, l := range d.Timeline {
		if veiled, seen := s.redactLine(l); seen {
			out.Timeline = append(out.Timeline, veiled)
		}
	}
	out.Timeline = byTime(out.Timeline)
	return out
}

// redactLine returns a line about a node as it may be seen: who changed the node is left out. False where nothing of it may be.
func (s Scope) redactLine(l Line) (Line, bool) {
	switch l.Kind {
	case KindLoopOpened, KindLoopClosed, KindDrainStarted, KindDrainEnded:
		return l, false // rendered again, of what is seen of them
	case KindNodeNotReady, KindNodeReady:
		return l, true
	case KindNodeCordoned, KindNodeUncordoned, KindNodeTainted, KindNodeUntainted, KindNodeGone:
		if what, _, cut := strings.Cut(l.Sentence, " by "); cut {
			l.Sentence = what + "."
		}
		return l, true
	default:
		return l, l.Namespace != "" && s.Sees(l.Namespace)
	}
}

// Loops returns those of some loops that are seen, as they are.
func (s Scope) Loops(loops []Loop) []Loop {
	if !s.Limited() {
		return loops
	}
	var out []Loop
	for _, l := range loops {
		if veiled, seen := s.Loop(l); seen {
			out = append(out, veiled)
		}
	}
	return out
}

// Loop returns a loop as it is seen; false where it is not: where it neither is about a VM that is, nor names one.
func (s Scope) Loop(l Loop) (Loop, bool) {
	if !s.Limited() {
		return l, true
	}
	about := l.VMI != "" && s.Sees(l.Namespace)
	if !about && !slices.ContainsFunc(l.Evidence, func(x Exhibit) bool { return s.seesVM(x.VMI) }) {
		return Loop{}, false
	}
	mine := about || l.VMI == "" && s.seesVM(l.Evidence[0].VMI) // whom the advice is about: of slots, who has held one longest
	if !about {
		l.Namespace, l.VMI, l.VMIUID = "", "", ""
	}
	if !mine && l.Open() {
		l.Advice = "What holds this up is a VM of another namespace: ask those who run the cluster, who see which."
	}
	l.Summary = s.redactNames(l.Summary)
	l.Evidence = slices.Clone(l.Evidence)
	for i, x := range l.Evidence {
		if !s.seesVM(x.VMI) && (x.VMI != "" || !about) {
			l.Evidence[i] = Exhibit{At: x.At, Text: "about " + formatHiddenVMs(1)}
		}
	}
	return l, true
}

// Drains returns drains without the names of users who began them.
func (s Scope) Drains(drains []Drain) []Drain {
	if !s.Limited() {
		return drains
	}
	drains = slices.Clone(drains)
	for i := range drains {
		drains[i].Requester, drains[i].Impersonator = "", ""
	}
	return drains
}

// Gaps returns gaps without what was said about them.
func (s Scope) Gaps(gaps []Gap) []Gap {
	if !s.Limited() {
		return gaps
	}
	gaps = slices.Clone(gaps)
	for i := range gaps {
		gaps[i].Detail = ""
	}
	return gaps
}

// nameOfVM is a VM as sentences name it: without the stop that may follow.
const nameOfVM = `[a-z0-9][-a-z0-9.]*/[a-z0-9]+(?:[-.]+[a-z0-9]+)*`

// namesOfVMs finds names of VMs, and lists of them.
var namesOfVMs = regexp.MustCompile(nameOfVM + `(?:, ` + nameOfVM + `)*`)

// redactNames replaces the names of VMs that are not seen by their number.
func (s Scope) redactNames(sentence string) string {
	return namesOfVMs.ReplaceAllStringFunc(sentence, func(list string) string {
		names := strings.Split(list, ", ")
		seen := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !s.seesVM(name) })
		if hidden := len(names) - len(seen); hidden > 0 {
			seen = append(seen, formatHiddenVMs(hidden))
		}
		return strings.Join(seen, ", ")
	})
}

// formatHiddenVMs stands for so many VMs that are not seen.
func formatHiddenVMs(n int) string {
	if n == 1 {
		return "a VM of another namespace"
	}
	return fmt.Sprintf("%d VMs of other namespaces", n)
}

// redactDetails returns as much of a VM that is not seen as matters to its neighbours: where and when, how often, and how it ended.
func (d *Derived) redactDetails() Derived {
	var out Derived
	for _, p := range d.Placements {
		p := Placement{
			VMIUID: p.VMIUID, Node: p.Node, FromAt: p.FromAt, ToAt: p.ToAt, Strategy: p.Strategy, NotMigratable: p.NotMigratable, OptedOut: p.OptedOut,
			TerminatingSince: p.TerminatingSince,
		}
		if p.NotMigratable != "" {
			p.NotMigratable = "for a reason of its own"
		}
		out.Placements = append(out.Placements, p)
	}
	for _, e := range d.Evacuations {
		out.Evacuations = append(out.Evacuations, Evacuation{
			ID: e.ID, VMIUID: e.VMIUID, Node: e.Node, Strategy: e.Strategy, MarkedAt: e.MarkedAt, MarkedBy: e.MarkedBy, Trigger: e.Trigger,
			RequesterClass: e.RequesterClass, EndedAt: e.EndedAt, Outcome: e.Outcome, Attempts: e.Attempts, FailedAttempts: e.FailedAttempts,
			FirstFailedAt: e.FirstFailedAt, NextRetryAt: e.NextRetryAt, InProgress: e.InProgress, InProgressLostAt: e.InProgressLostAt,
		})
	}
	for _, m := range d.Migrations {
		out.Migrations = append(out.Migrations, Migration{
			VMIUID: m.VMIUID, EvacuationID: m.EvacuationID, Trigger: m.Trigger, SourceNode: m.SourceNode, TargetNode: m.TargetNode,
			CreatedAt: m.CreatedAt, SchedulingAt: m.SchedulingAt, RunningAt: m.RunningAt, FinishedAt: m.FinishedAt, Outcome: m.Outcome,
			WaitReason: m.WaitReason,
		})
	}
	for _, x := range d.Decisions {
		out.Decisions = append(out.Decisions, Decision{VMIUID: x.VMIUID, Node: x.Node, DecidedAt: x.DecidedAt, Layer: x.Layer, Verdict: x.Verdict, Until: x.Until})
	}
	return out
}

// veiledFacts returns as much of the facts of a VM that is not seen as says when the descheduler counted it.
func veiledFacts(facts []Fact) []Fact {
	var out []Fact
	for _, f := range facts {
		if f.Reason == ReasonEvictionInProgress {
			out = append(out, Fact{Kind: f.Kind, Reason: f.Reason, VMIUID: f.VMIUID, Node: f.Node, OccurredAt: f.OccurredAt})
		}
	}
	return out
}
