package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// findRequest finds the request that began the evacuation, nil where unknown.
func (e Evacuation) findRequest(requests []EvictionRequest) *EvictionRequest {
	for i := range requests {
		r := &requests[i]
		if r.Effect == EffectEvacuation && r.EvacuationID != nil && *r.EvacuationID == e.ID && r.Source != string(SourceMark) {
			return r
		}
	}
	return nil
}

// renderRequest returns who asked for the evacuation, with which words, and when KubeVirt acted on it.
func (e Evacuation) renderRequest(requests []EvictionRequest, seen Coverage) []string {
	r := e.findRequest(requests)
	if r == nil {
		text := fmt.Sprintf("At %s KubeVirt accepted to move it away from %s, asked by %s (%s: %s).",
			FormatClock(e.MarkedAt), e.Node, e.formatRequester(), e.Confidence, e.Evidence)
		return []string{text, e.explainUnknownRequester(seen)}
	}
	late := ""
	if r.SeenLate {
		late = "; reported later, by an audit log"
	}
	return []string{fmt.Sprintf("At %s %s asked to evict it from %s%s; KubeVirt accepted at %s (%s: %s%s).",
		FormatClock(r.RequestedAt), r.formatRequester(), e.Node, r.describeReason(), FormatClock(e.MarkedAt), r.Confidence, r.Evidence, late)}
}

// explainUnknownRequester says why nobody can be named, and what would name them.
func (e Evacuation) explainUnknownRequester(seen Coverage) string {
	switch {
	case e.MarkedBy == MarkedByTaint || e.Requester != "":
		return ""
	case seen.Audit || seen.Observer:
		return "Requester unknown: the audit log and the observer have no such request at that time."
	}
	return "Requester unknown: no audit and no observer here. To know the next: send audit events (`evictrail run --audit-file`, " +
		"`evictrail audit import`, docs/audit.md), or let the observer see requests (`evictrail generate manifests observer`)."
}

// askedAgain describes every later request that met the evacuation, those of one requester together.
func (e Evacuation) askedAgain(requests []EvictionRequest) []string {
	var text []string
	for _, r := range requests {
		if r.EvacuationID == nil || *r.EvacuationID != e.ID || r.RepeatOf != nil {
			continue
		}
		switch first := r.Effect == EffectEvacuation; {
		case first && r.Repeats > 0:
			text = append(text, fmt.Sprintf("%s asked again%s; that changed nothing.", capitalizeRequester(r.formatRequester()), r.describeRepeats()))
		case !first && r.Repeats > 0:
			text = append(text, fmt.Sprintf("%s asked too, %s from %s to %s%s; that changed nothing.",
				capitalizeRequester(r.formatRequester()), FormatCount(r.Repeats+1, "time"), FormatClock(r.RequestedAt), FormatClock(r.LastRepeatAt), r.describeReason()))
		case !first:
			text = append(text, fmt.Sprintf("%s asked too at %s%s; that changed nothing.", capitalizeRequester(r.formatRequester()), FormatClock(r.RequestedAt), r.describeReason()))
		}
	}
	return text
}

// renderStory returns an evacuation from its request on.
func (e Evacuation) renderStory(d Derived, seen Coverage, now time.Time) []string {
	wanted := d.wantedLinesOf(&e)
	marked := slices.IndexFunc(wanted, func(l Line) bool { return l.At.After(e.MarkedAt) })
	if marked < 0 {
		marked = len(wanted)
	}
	text := append(describeWanted(wanted[:marked]), e.renderRequest(d.Requests, seen)...)
	text = append(append(text, e.askedAgain(d.Requests)...), describeWanted(wanted[marked:])...)
	mine := d.attemptsOf(e.ID)
	text = append(append(text, e.attemptsSoFar(mine)...), e.otherMigrations(d)...)
	text = append(text, policiesOf(mine))
	switch e.Outcome {
	case OutcomeMigrated:
		text = append(text, e.describeFulfilment(d.Migrations))
		for i := range d.Migrations {
			if m := &d.Migrations[i]; m.UID == e.FulfilledBy {
				text = append(text, m.describeTransfer("It"), m.describeVerdict())
			}
		}
	case OutcomeCancelled:
		text = append(text, fmt.Sprintf("The evacuation was cancelled at %s%s; the guest stayed.", FormatClock(e.EndedAt), formatByUser(e.CancelledBy, e.CancelImpersonator)))
	case OutcomeVMIGone:
		text = append(text, e.endWithVMI(d.deletionOf(e.VMIUID), mine)...)
	default:
		if n := len(mine); n > 0 {
			text = append(text, mine[n-1].describeTransfer(fmt.Sprintf("Attempt %d", n)))
		}
		text = append(text, e.stillOpen(mine, d.deletionOf(e.VMIUID), now)...)
	}
	return append(text, e.describeDelay())
}

// endWithVMI says that the VMI ended before it was moved, and which attempt that ended; deleted is zero where no deletion was seen.
func (e Evacuation) endWithVMI(deleted time.Time, mine []Migration) []string {
	text := []string{fmt.Sprintf("The VMI ended at %s, before it was moved.", FormatClock(e.EndedAt))}
	if !deleted.IsZero() && !deleted.After(e.EndedAt) {
		text[0] = fmt.Sprintf("The VMI was deleted at %s, before it was moved; it was gone at %s.", FormatClock(deleted), FormatClock(e.EndedAt))
	}
	for i := range mine {
		if m := &mine[i]; m.goneWithVMI() {
			text = append(text, fmt.Sprintf("%s ended because the VMI was deleted.", UpperFirst(m.formatLabel())))
		}
	}
	return text
}

// deletionOf returns when a VMI was asked to go while its guest ran, zero where that was not seen.
func (d *Derived) deletionOf(vmiUID string) time.Time {
	for _, l := range d.Timeline {
		if l.Kind == KindVMIDeletionAsked && l.VMIUID == vmiUID {
			return l.At
		}
	}
	return time.Time{}
}

// otherMigrations returns the migrations of the VMI that were made for another reason while the evacuation was open and that did not fulfil
// it: KubeVirt makes no attempt while one of them is under way.
func (e Evacuation) otherMigrations(d Derived) []string {
	var text []string
	for _, m := range d.Migrations {
		if m.isAttemptOf(e.ID) || m.VMIUID != e.VMIUID || m.UID == e.FulfilledBy || !e.isOpenAt(m.CreatedAt) {
			continue
		}
		how := "is under way"
		switch {
		case m.goneWithVMI():
			how = "ended because the VMI was deleted"
		case m.Outcome == OutcomeFailed || m.Outcome == OutcomeAborted:
			how = fmt.Sprintf("%s at %s: %s", formatOutcome(m.Outcome), FormatClock(m.FinishedAt), m.whyShort())
		case m.Outcome != "":
			how = fmt.Sprintf("%s at %s", m.Outcome, FormatClock(m.FinishedAt))
		case !m.FinishedAt.IsZero():
			how = "is gone; how it ended was not seen"
		}
		text = append(text, fmt.Sprintf("%s, created at %s, %s.", UpperFirst(m.formatOrigin()), FormatClock(m.CreatedAt), how))
	}
	return text
}

// attemptsOf returns the migrations that belong to an evacuation, in the order of their creation.
func (d *Derived) attemptsOf(evacuation FactID) []Migration {
	var mine []Migration
	for _, m := range d.Migrations {
		if m.isAttemptOf(evacuation) {
			mine = append(mine, m)
		}
	}
	return mine
}

// attemptsSoFar returns how often KubeVirt tried and why it failed, each cause once with its count.
func (e Evacuation) attemptsSoFar(mine []Migration) []string {
	causes := causesOf(mine)
	if causes == "" {
		return nil
	}
	return []string{fmt.Sprintf("KubeVirt made %s; %d failed%s.", FormatCount(e.Attempts, "attempt"), e.FailedAttempts, causes)}
}

// causesOf returns why migrations failed or were aborted, each cause once with its count; empty where none did.
func causesOf(mine []Migration) string {
	var order []string
	count := map[string]int{}
	for _, m := range mine {
		if m.Outcome != OutcomeFailed && m.Outcome != OutcomeAborted || m.goneWithVMI() {
			continue
		}
		cause := m.whyShort()
		if count[cause] == 0 {
			order = append(order, cause)
		}
		count[cause]++
	}
	if len(order) == 0 {
		return ""
	}
	for i, cause := range order {
		order[i] = fmt.Sprintf("%d × %s", count[cause], cause)
	}
	return " (" + strings.Join(order, "; ") + ")"
}

// describeFulfilment says when the guest had left, and by which migration: an attempt of the evacuation, or one that was made for another reason.
func (e Evacuation) describeFulfilment(migrations []Migration) string {
	when := fmt.Sprintf("at %s, %s after the request", FormatClock(e.EndedAt), Age(e.EndedAt.Sub(e.MarkedAt)))
	if e.FulfilledBy == "" {
		return fmt.Sprintf("It moved %s.", when)
	}
	for _, m := range migrations {
		switch {
		case m.UID != e.FulfilledBy:
		case m.isAttemptOf(e.ID):
			return fmt.Sprintf("Attempt %d (%s) to %s succeeded %s.", m.Attempt, m.Name, m.TargetNode, when)
		default:
			return fmt.Sprintf("It moved to %s %s, by %s.", m.TargetNode, when, m.formatOrigin())
		}
	}
	return fmt.Sprintf("It moved %s, by a migration whose object was not seen.", when)
}

// isAttemptOf reports whether KubeVirt made the migration for an evacuation.
func (m *Migration) isAttemptOf(evacuation FactID) bool {
	return m.EvacuationID != nil && *m.EvacuationID == evacuation
}

// formatOrigin names a migration by who made it.
func (m *Migration) formatOrigin() string {
	maker := ""
	switch m.Trigger {
	case TriggerWorkloadUpdate:
		maker = "the workload update"
	case TriggerHotplug:
		maker = "a hot-plug"
	case TriggerStorage:
		maker = "a volume update"
	case TriggerUser, TriggerNamedNode:
		maker = cmp.Or(m.Requester, "a user")
	case TriggerController:
		maker = cmp.Or(m.Requester, "a controller")
	case TriggerDescheduler, TriggerDrain, TriggerDrainTaint, TriggerEviction:
		maker = "another evacuation"
	case TriggerDecentralized, TriggerUnknown:
		return fmt.Sprintf("a migration that was made for another reason (%s)", m.Name)
	}
	return fmt.Sprintf("a migration that %s made (%s)", maker, m.Name)
}

// stillOpen returns what an open evacuation waits for and what to do.
func (e Evacuation) stillOpen(mine []Migration, deleted, now time.Time) []string {
	text := []string{fmt.Sprintf("Still not moved, %s after the request.", Age(now.Sub(e.MarkedAt)))}
	if !deleted.IsZero() {
		return append(text, fmt.Sprintf("Its deletion was requested at %s: KubeVirt makes no further attempt.", FormatClock(deleted)))
	}
	if e.Strategy == StrategyExternal {
		return append(text, "Its strategy is External, so KubeVirt makes no migration: the controller that owns the VM must act.")
	}
	if len(mine) == 0 {
		return append(text, "KubeVirt has made no migration for it so far.")
	}
	last := mine[len(mine)-1]
	switch {
	case last.FinishedAt.IsZero():
		phase := last.Phase
		if phase == "" {
			phase = "created"
		}
		text = append(text, fmt.Sprintf("Attempt %d (%s) is in phase %s since %s%s.", last.Attempt, last.Name, phase, FormatClock(last.phaseSince()), last.describeWait()))
	case now.Before(e.NextRetryAt):
		text = append(text, fmt.Sprintf("KubeVirt will try again, not before %s.", FormatClock(e.NextRetryAt)))
	case !e.NextRetryAt.IsZero():
		text = append(text, UpperFirst(e.overdueAttempt(now))+".")
	default:
		text = append(text, "KubeVirt will try again.")
	}
	return text
}

// describeWait says for what a migration waits that has no target pod yet or is stalled, empty where it does not.
func (m Migration) describeWait() string {
	if m.isStalled() {
		return ", and stalled: its target pod is there, and " + m.WaitDetail
	}
	if m.WaitReason == "" || !m.SchedulingAt.IsZero() {
		return ""
	}
	return " and waits (" + waitText(&m) + ")"
}

// overdueAttempt says when KubeVirt's wait after a failure was over although it has made no attempt since.
func (e Evacuation) overdueAttempt(now time.Time) string {
	return fmt.Sprintf("the next attempt was due at %s, %s ago", FormatClock(e.NextRetryAt), formatSpan(now.Sub(e.NextRetryAt)))
}

// formatRequester names who asked as far as it is known.
func (e Evacuation) formatRequester() string {
	switch {
	case e.RequesterClass == RequesterDescheduler || e.Requester != "":
		return formatRequester(e.Requester, e.Impersonator, e.RequesterClass)
	case e.Trigger == TriggerDrain:
		return "the user who drains the node"
	case e.Trigger == TriggerDrainTaint:
		return "the user who set the drain taint"
	}
	return "an unknown requester"
}
