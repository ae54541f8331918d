package trail

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Check is something that is left to do because of what is over.
type Check struct {
	Text   string          // a sentence without its subject, and what to do now
	VM     IncidentSubject // no Kind: it is about none
	Node   string          // empty: it is about none
	Advice string          // what keeps it from coming again, as the advice of loops; empty where nothing is known
}

// checksShown is how many checks there are at most.
const checksShown = 8

// Checks returns what is to be looked at now because of what happened since From and is over, the most urgent first, then what keeps closed loops away. What is an
// incident is none.
func (o *Overview) Checks(incidents []Incident) []Check {
	known := map[IncidentSubject]bool{}
	for _, i := range incidents {
		known[i.Subject] = true
	}
	out := o.findChecks(known)
	out = append(out, o.preventClosed(known)...)
	return out[:min(len(out), checksShown)]
}

// findChecks returns what is to be looked at now, and adds the VMs that were lost to those that are known.
func (o *Overview) findChecks(known map[IncidentSubject]bool) []Check {
	var out []Check
	for _, g := range o.Lost {
		if vm := ofVM(g.Namespace, g.VMI); !known[vm] {
			known[vm] = true
			out = append(out, g.newCheck())
		}
	}
	for _, e := range o.Unmoved {
		if vm := ofVM(e.Namespace, e.VMI); e.Strategy == StrategyExternal && e.StartedOn != "" && !known[vm] {
			known[vm] = true
			out = append(out, Check{VM: vm, Advice: adviceOwner(e.Evacuation, o.KubeVirt), Text: fmt.Sprintf(
				"was shut down on %s at %s, not moved: %s had asked to evict it at %s, and its eviction strategy External leaves the move to its owner. "+
					"Who deleted its VMI is not recorded; %s. Look at what runs in it.", e.Node, FormatClock(e.EndedAt),
				cmp.Or(FormatShortRequester(e.Requester, e.Impersonator, e.RequesterClass), "somebody"), FormatClock(e.MarkedAt), describeStart(e.StartedOn, e.StartedAt.Sub(e.EndedAt)))})
		}
	}
	out = append(out, o.checkOverloads()...)
	for vm, m := range o.newestMigrations() {
		if !known[vm] && m.Outcome == OutcomeFailed {
			out = append(out, Check{VM: vm, Text: fmt.Sprintf("stays on %s: its last migration failed at %s (%s), and nobody retries it.%s", cmp.Or(m.SourceNode, "its node"), FormatClock(m.FinishedAt), m.whyShort(), cureText(m.FailureClass))})
		}
	}
	for _, d := range o.DrainsEnded {
		if d.Outcome == DrainAbandoned && d.VMIsLeft > 0 {
			out = append(out, Check{Node: d.Node, Text: fmt.Sprintf("was not emptied: its drain was abandoned at %s with %s left. Drain it again, or uncordon it.", FormatClock(d.EndedAt), FormatCount(d.VMIsLeft, "VM"))})
		}
	}
	return out
}

// preventClosed returns what keeps away evictions by the descheduler that are left to an owner, and the loops that were closed since From, but for what is about VMs
// that are known.
func (o *Overview) preventClosed(known map[IncidentSubject]bool) []Check {
	var out []Check
	for _, e := range o.Unmoved {
		if vm := ofVM(e.Namespace, e.VMI); e.Strategy == StrategyExternal && e.RequesterClass == RequesterDescheduler && !known[vm] {
			known[vm] = true
			out = append(out, Check{VM: vm, Advice: adviceOwner(e.Evacuation, o.KubeVirt), Text: fmt.Sprintf(
				"has the eviction strategy External, so the eviction that the descheduler asked for at %s was left to its owner; %s at %s.",
				FormatClock(e.MarkedAt), e.describeWithdrawal(), FormatClock(e.EndedAt))})
		}
	}
	for _, l := range o.Closed {
		if prevent := preventLoop(l); prevent != "" && l.ClosedBy != LoopBecameDualRetry && !known[ofVM(l.Namespace, l.VMI)] {
			c := Check{Text: fmt.Sprintf("was in a loop (%s) until %s.", l.Name(), FormatClock(l.ClosedAt)), Advice: prevent}
			if l.VMI != "" {
				c.VM = ofVM(l.Namespace, l.VMI)
			} else {
				c.Node = l.Node
			}
			out = append(out, c)
		}
	}
	return out
}

// describeWithdrawal says how an evacuation ended that nobody moved.
func (e Unmoved) describeWithdrawal() string {
	switch {
	case e.CancelledBy != "":
		return "cancelled by " + FormatShortRequester(e.CancelledBy, e.CancelImpersonator, RequesterOther)
	case e.Outcome == OutcomeVMIGone:
		return "its VMI ended"
	}
	return "cancelled"
}

// newestMigrations yields the newest migration since From of each VM, the newest first.
func (o *Overview) newestMigrations() iter.Seq2[IncidentSubject, Migration] {
	return func(yield func(IncidentSubject, Migration) bool) {
		seen := map[IncidentSubject]bool{}
		for _, m := range o.Recent {
			vm := ofVM(m.Namespace, m.VMI)
			if !seen[vm] && !yield(vm, m) {
				return
			}
			seen[vm] = true
		}
	}
}

// newCheck says what is left to do about a guest that was lost.
func (g LostGuest) newCheck() Check {
	c := Check{VM: ofVM(g.Namespace, g.VMI)}
	by := ""
	if who := g.whoAsked(); who != "" {
		by = ", asked by " + who
	}
	where := "on"
	if g.EndedBy == EndingPostCopy {
		where = "while it moved from"
	}
	c.Text = fmt.Sprintf("was lost %s %s at %s (%s%s): %s; %s. Look at what runs in it.", where, g.Node, FormatClock(g.ToAt), g.EndedBy.Label(), by, g.describeLoss(), g.describeRestart())
	switch g.EndedBy {
	case EndingEvicted:
		c.Advice = adviceMovable(g.Namespace, g.VMI, g.Strategy)
	case EndingPostCopy:
		c.Advice = preventPostCopy
	case EndingTaint, EndingPodGC:
		if g.mayRunTwice() {
			c.Text += " " + warnOfTwo(g.Node)
		}
	case EndingPreempted, EndingNodePressure, EndingHandOver, EndingStopped, EndingDeleted, EndingFailed:
	}
	return c
}

// checkOverloads names each node that went over its threshold when VMs came.
func (o *Overview) checkOverloads() []Check {
	var out []Check
	came := map[string][]string{}
	for _, m := range o.Recent {
		if m.Benefit != Harmed {
			continue
		}
		vm := ofVM(m.Namespace, m.VMI).String()
		if len(came[m.TargetNode]) == 0 {
			out = append(out, Check{Node: m.TargetNode, Text: m.BenefitBecause})
		}
		came[m.TargetNode] = append(came[m.TargetNode], vm)
	}
	for i, c := range out {
		out[i].Text = fmt.Sprintf("went over the descheduler's threshold when VMs came%s. The last time: %s. Look at its load now.", formatNames(came[c.Node]), c.Text)
	}
	return out
}

// preventLoop says what keeps a loop of the same sort from coming about once more; empty where nothing is known. It has no commands.
func preventLoop(l Loop) string {
	switch {
	case l.Path == PathAnnotationLost:
		return preventLost
	case l.Path == PathFreeSlot:
		return "One slot per node (maxNoOfPodsToEvictPerNode: 1) keeps the descheduler from evicting others while one VM is stuck; in return that one blocks it on its node."
	case l.Path == PathGateOff:
		return preventGateOff
	case l.Kind == LoopPingPong || l.Kind == LoopChurn:
		return preventBounce + "."
	case l.Kind == LoopOscillation:
		return preventSwings + "."
	case l.Kind == LoopShutdownChurn:
		return preventShutdown
	case l.Kind == LoopPriorityInversion:
		return preventInversion
	}
	return ""
}

// adviceOver says what is left to do about a loop that is over: nothing, but for what keeps the next one away.
func adviceOver(l Loop) string {
	return strings.Join(nonEmpty([]string{"This is over: nothing is left to do about it now.", preventLoop(l)}), "\n")
}
