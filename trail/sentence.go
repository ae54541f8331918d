package trail

import (
	"fmt"
	"strings"
	"time"
)

// Answer is what evictrail says to a question about one VM: a paragraph, and the lines that it rests on.
type Answer struct {
	Namespace string `json:"namespace"`
	VMI       string `json:"vmi"`
	Paragraph string `json:"paragraph"`
	Evidence  []Line `json:"evidence"`
}

// Why answers why a VM moved, or is to move: what was last asked, what was tried, what came of it. It speaks of the
// latest evacuation or, where a later migration belongs to none, of that migration. Now is the moment for which it
// speaks, UTC.
func Why(namespace, vmi string, d Derived, now time.Time) Answer {
	a := Answer{Namespace: namespace, VMI: vmi}
	var text []string
	from := time.Time{}
	e, m := latest(d)
	switch {
	case e != nil:
		text, from = e.story(d.Migrations, now), e.MarkedAt
	case m != nil:
		text, from = m.story(now), m.CreatedAt
	default:
		text = []string{"Nothing was seen that would move it: no eviction and no migration."}
	}
	text = append(text, whereNow(d.Placements, now))
	a.Paragraph = fmt.Sprintf("%s/%s: %s", namespace, vmi, strings.Join(nonEmpty(text), " "))
	for _, l := range d.Timeline {
		if !l.At.Before(from.Truncate(time.Second)) {
			a.Evidence = append(a.Evidence, l)
		}
	}
	return a
}

// latest gives the last evacuation, or the last migration outside of any where that one is later.
func latest(d Derived) (*Evacuation, *Migration) {
	var e *Evacuation
	for i := range d.Evacuations {
		if e == nil || d.Evacuations[i].MarkedAt.After(e.MarkedAt) {
			e = &d.Evacuations[i]
		}
	}
	for i := len(d.Migrations) - 1; i >= 0; i-- {
		m := &d.Migrations[i]
		if m.EvacuationID == nil && (e == nil || m.CreatedAt.After(e.MarkedAt)) {
			return nil, m
		}
	}
	return e, nil
}

// story tells an evacuation from its mark on.
func (e Evacuation) story(migrations []Migration, now time.Time) []string {
	text := []string{fmt.Sprintf("At %s KubeVirt accepted to move it away from %s, asked by %s (%s: %s).",
		clock(e.MarkedAt), e.Node, e.asker(), e.Confidence, e.Evidence)}
	var mine []Migration
	for _, m := range migrations {
		if m.EvacuationID != nil && *m.EvacuationID == e.ID {
			mine = append(mine, m)
		}
	}
	text = append(text, e.attemptsSoFar(mine)...)
	switch e.Outcome {
	case OutcomeMigrated:
		text = append(text, fmt.Sprintf("It was done at %s, after %s%s.", clock(e.EndedAt), span(e.EndedAt.Sub(e.MarkedAt)), e.fulfilment(mine)))
	case OutcomeCancelled:
		text = append(text, fmt.Sprintf("The evacuation was cancelled at %s; the guest stayed.", clock(e.EndedAt)))
	case OutcomeVMIGone:
		text = append(text, fmt.Sprintf("The VMI ended at %s, before it was moved.", clock(e.EndedAt)))
	default:
		text = append(text, e.stillOpen(mine, now)...)
	}
	return text
}

// attemptsSoFar tells how often KubeVirt tried and why it failed, each cause once with its count.
func (e Evacuation) attemptsSoFar(mine []Migration) []string {
	var order []string
	count := map[string]int{}
	for _, m := range mine {
		if m.Outcome != OutcomeFailed && m.Outcome != OutcomeAborted {
			continue
		}
		cause := fmt.Sprintf("%s, %s", m.FailureClass, m.FailureReason)
		if count[cause] == 0 {
			order = append(order, cause)
		}
		count[cause]++
	}
	if len(order) == 0 {
		return nil
	}
	for i, cause := range order {
		order[i] = fmt.Sprintf("%d × %s", count[cause], cause)
	}
	return []string{fmt.Sprintf("KubeVirt made %s; %d failed (%s).", plural(e.Attempts, "attempt"), e.FailedAttempts, strings.Join(order, "; "))}
}

func (e Evacuation) fulfilment(mine []Migration) string {
	if e.FulfilledBy == "" {
		return ""
	}
	for _, m := range mine {
		if m.UID == e.FulfilledBy {
			return fmt.Sprintf(", by attempt %d (%s) to %s", m.Attempt, m.Name, m.TargetNode)
		}
	}
	return ", by a migration that was made for another cause"
}

// stillOpen tells what an open evacuation waits for and what to do.
func (e Evacuation) stillOpen(mine []Migration, now time.Time) []string {
	text := []string{fmt.Sprintf("It is still to move, %s after the request.", span(now.Sub(e.MarkedAt)))}
	if e.Strategy == "External" {
		return append(text, "Its strategy is External, so KubeVirt makes no migration: the controller that owns the VM has to act.", e.advice())
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
		text = append(text, fmt.Sprintf("Attempt %d (%s) is in phase %s since %s.", last.Attempt, last.Name, phase, clock(last.phaseSince())))
	default:
		text = append(text, "KubeVirt will try again.")
	}
	if e.FailedAttempts >= 3 {
		text = append(text, e.advice())
	}
	return text
}

// advice says how an evacuation that does not come to an end is stopped. virtctl v1.7 to v1.9 leaves the node name
// out and is refused, so the call is spelled out (reference: kubevirt-signals §0.7).
func (e Evacuation) advice() string {
	return fmt.Sprintf("To stop it: PUT /apis/subresources.kubevirt.io/v1/namespaces/%s/virtualmachineinstances/%s/evacuate/cancel with {\"evacuationNodeName\": %q}.",
		e.Namespace, e.VMI, e.Node)
}

// story tells a migration that belongs to no evacuation.
func (m Migration) story(now time.Time) []string {
	text := []string{fmt.Sprintf("At %s migration %s was created (%s).", clock(m.CreatedAt), m.Name, m.cause())}
	switch m.Outcome {
	case OutcomeSucceeded:
		return append(text, fmt.Sprintf("It succeeded at %s%s.", clock(m.FinishedAt), route(&m)))
	case OutcomeFailed, OutcomeAborted:
		return append(text, fmt.Sprintf("It %s at %s%s: %s.", ended(m.Outcome), clock(m.FinishedAt), route(&m), m.whyFailed()))
	case OutcomeMigrated, OutcomeCancelled, OutcomeVMIGone:
	}
	if !m.FinishedAt.IsZero() {
		return append(text, "It is gone; how it ended was not seen.")
	}
	return append(text, fmt.Sprintf("It is in phase %s, %s after its creation.", m.Phase, span(now.Sub(m.CreatedAt))))
}

func whereNow(placements []Placement, now time.Time) string {
	if len(placements) == 0 {
		return ""
	}
	p := placements[len(placements)-1]
	if !p.ToAt.IsZero() {
		return fmt.Sprintf("The guest last ran on %s, until %s.", p.Node, clock(p.ToAt))
	}
	return fmt.Sprintf("The guest runs on %s, for %s now.", p.Node, span(now.Sub(p.FromAt)))
}

// asker names who asked as far as it is known.
func (e Evacuation) asker() string {
	switch {
	case e.RequesterClass == RequesterDescheduler:
		return "the descheduler"
	case e.Trigger == TriggerDrain:
		return "whoever drains the node"
	case e.Trigger == TriggerDrainTaint:
		return "whoever set the drain taint"
	}
	return "an unknown requester"
}

// label names a migration in a sentence.
func (m Migration) label() string {
	if m.Attempt > 0 {
		return fmt.Sprintf("attempt %d (%s)", m.Attempt, m.Name)
	}
	return "migration " + m.Name
}

func (m Migration) cause() string {
	if m.TriggerConfidence == ConfidenceAsserted {
		return "for: " + string(m.Trigger)
	}
	return fmt.Sprintf("for: %s, %s", m.Trigger, m.TriggerConfidence)
}

func (m Migration) whyFailed() string {
	text := fmt.Sprintf("%s, %s", m.FailureClass, m.FailureReason)
	if m.FailureText != "" {
		text += " (" + strings.TrimSpace(m.FailureText) + ")"
	}
	return text
}

// phaseSince gives the time of the last phase, the creation where there is none.
func (m Migration) phaseSince() time.Time {
	if n := len(m.Phases); n > 0 {
		return m.Phases[n-1].At
	}
	return m.CreatedAt
}

func route(m *Migration) string {
	if m.SourceNode == "" || m.TargetNode == "" {
		return ""
	}
	return fmt.Sprintf(" from %s to %s", m.SourceNode, m.TargetNode)
}

func ended(o Outcome) string {
	if o == OutcomeAborted {
		return "was aborted"
	}
	return string(o)
}

func nonEmpty(text []string) []string {
	out := text[:0]
	for _, t := range text {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// clock writes a time as people say it in an incident: to the second, UTC.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// span writes a duration to the second; negative ones, which skewed clocks make, as 0s.
func span(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
