package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is what evictrail says to a question about one VM: a paragraph, and the lines that it rests on.
type Answer struct {
	Namespace string    `json:"namespace"`
	VMI       string    `json:"vmi"`
	Paragraph string    `json:"paragraph"`
	Advice    string    `json:"advice,omitempty"` // what to do: lines of which the indented ones can be pasted; empty where there is nothing to do
	AsOf      time.Time `json:"as_of"`            // the moment for which it speaks
	Evidence  []Line    `json:"evidence"`

	Recorder    *RecorderNote `json:"recorder,omitempty"`     // state of the recorder now; nil where the question is about the past
	NotObserved []Gap         `json:"not_observed,omitempty"` // gaps that overlap the period of the answer, the newest first
}

// Coverage tells which sources of requests a cluster has: whether any request was ever seen by each.
type Coverage struct {
	Audit    bool
	Observer bool
}

// Why answers why a VM moved, or is to move: what was last asked, what was tried, what came of it. It speaks of what is
// latest: an evacuation, a migration that belongs to none, a shutdown by Kubernetes, a request that was refused; of what
// holds the VM now; and of the loops that it is part of.
func (c *Cluster) Why(namespace, vmi string) Answer {
	a, d, now := Answer{Namespace: namespace, VMI: vmi, AsOf: c.Now}, c.VM(namespace, vmi), c.Now
	last := d.latest(c.Seen)
	text, from := []string{"Nothing was seen that would move it: no eviction and no migration."}, time.Time{}
	if last.story != nil {
		text, from = last.story(now), last.from
	}
	if s, found := d.lastShutdown(); found && s.ToAt.Before(last.at) {
		text = append(text, d.lately(now))
	}
	text = append(text, whereNow(d.Placements, now), cooldownNow(d, now))
	loops, advice := c.tellLoops(namespace, vmi, from)
	text = append(text, loops...)
	a.Advice = advice
	if e := openEvacuation(d); e != nil && advice == "" {
		a.Advice = e.advice(c.env.settings(now))
	}
	a.Paragraph = fmt.Sprintf("%s/%s: %s", namespace, vmi, strings.Join(nonEmpty(text), " "))
	for _, l := range d.Timeline {
		if !l.At.Before(from.Truncate(time.Second)) {
			a.Evidence = append(a.Evidence, l)
		}
	}
	return a
}

// StoryFrom gives from when on the rows and lines of a VM are those that Why tells: the beginning of what is latest, and of the loops
// that are open. Of the rows those suffice that tell how it stands. Zero: all of them are.
func (d Derived) StoryFrom() time.Time {
	from := d.latest(Coverage{}).from
	for _, l := range d.Loops {
		if l.Open() && len(l.Evidence) > 0 && l.Evidence[0].At.Before(from) {
			from = l.Evidence[0].At
		}
	}
	return from
}

// latest gives what is told of a VM: the latest that happened to it.
func (d Derived) latest(seen Coverage) episode {
	tell := []episode{latestEvacuation(d, seen), latestMigration(d), latestShutdown(d), latestRefusal(d)}
	return slices.MaxFunc(tell, func(a, b episode) int { return a.at.Compare(b.at) })
}

// episode is something that a paragraph can tell; its story is nil where there is none.
type episode struct {
	at    time.Time // by which the latest is chosen
	from  time.Time // from which on the timeline is evidence
	story func(now time.Time) []string
}

func latestEvacuation(d Derived, seen Coverage) episode {
	var last episode
	for _, e := range d.Evacuations {
		if last.story != nil && !e.MarkedAt.After(last.at) {
			continue
		}
		last = episode{e.MarkedAt, e.MarkedAt, func(now time.Time) []string { return e.story(d, seen, now) }}
		if r := e.request(d.Requests); r != nil {
			last.from = r.RequestedAt
		}
	}
	return last
}

// latestMigration tells the last migration that belongs to no evacuation.
func latestMigration(d Derived) episode {
	for i := len(d.Migrations) - 1; i >= 0; i-- {
		if m := d.Migrations[i]; m.EvacuationID == nil {
			return episode{m.CreatedAt, m.CreatedAt, m.story}
		}
	}
	return episode{}
}

// latestShutdown tells the last time that the platform ended the guest: evicted, not moved, or lost by a migration.
func latestShutdown(d Derived) episode {
	s, found := d.lastShutdown()
	if !found {
		return episode{}
	}
	last := episode{s.ToAt, s.ToAt.Add(-time.Minute), func(now time.Time) []string { return s.story(d, now) }}
	for _, r := range d.Requests {
		if r.Effect == EffectShutdown && r.VMIUID == s.VMIUID {
			last.from = r.RequestedAt
		}
	}
	if m := d.lostBy(s); m != nil {
		last.from = m.CreatedAt
	}
	return last
}

// lostBy returns the migration that lost a guest, nil where none did.
func (d Derived) lostBy(s shutdown) *Migration {
	for i := range d.Migrations {
		m := &d.Migrations[i]
		if (s.EndedBy == EndingPostCopy || s.EndedBy == EndingHandOver) && m.VMIUID == s.VMIUID && m.Name == s.EndedDetail {
			return m
		}
	}
	return nil
}

// latestRefusal tells the last request that was refused, with its repetitions.
func latestRefusal(d Derived) episode {
	var last episode
	for _, r := range d.Requests {
		refused := r.Answer == AnswerNotMigratable || r.Answer == AnswerTargetPod || r.Answer == AnswerPDB || r.Answer == AnswerError
		if refused && !r.DryRun && r.RepeatOf == nil {
			last = episode{r.RequestedAt, r.RequestedAt, r.refusal}
		}
	}
	return last
}

// refusal tells a request that was refused.
func (r EvictionRequest) refusal(time.Time) []string {
	times := fmt.Sprintf("At %s %s asked to evict it from %s%s", clock(r.RequestedAt), r.who(), r.Node, r.saying())
	if r.Repeats > 0 {
		times += ", and again" + r.repeated()
	}
	text := []string{times + ": " + r.outcome() + "."}
	if r.Answer == AnswerNotMigratable {
		text = append(text, "As long as LiveMigratable is not True only stopping the VM, or another eviction strategy, lets the pod go.")
	}
	return text
}

// story tells how the platform ended the guest, what came of that, and who had asked for what led to it.
func (s shutdown) story(d Derived, now time.Time) []string {
	ended := s.ending().sentence()
	for _, l := range d.Timeline {
		if l.Kind == KindVMIEnded && l.VMIUID == s.VMIUID {
			ended = l.Sentence // which names the pod
			break
		}
	}
	text := []string{fmt.Sprintf("At %s: %s", clock(s.ToAt), ended), s.aftermath()}
	for _, r := range d.Requests {
		if r.Effect == EffectShutdown && r.VMIUID == s.VMIUID && r.RepeatOf == nil {
			text = append(text, fmt.Sprintf("At %s %s asked to evict it from %s%s (%s: %s).", clock(r.RequestedAt), r.who(), r.Node, r.saying(), r.Confidence, r.Evidence))
		}
	}
	m := d.lostBy(s)
	switch e := d.evacuationOf(m); {
	case m == nil:
	case e != nil:
		text = append(text, e.asked(d.Requests, Coverage{})[0])
		text = append(text, e.attemptsSoFar(d.attemptsOf(e.ID))...)
	default:
		text = append(text, m.story(now)...)
	}
	return text
}

// evacuationOf returns the evacuation of which a migration is an attempt, nil where it is none.
func (d Derived) evacuationOf(m *Migration) *Evacuation {
	for i := range d.Evacuations {
		if m != nil && m.EvacuationID != nil && d.Evacuations[i].ID == *m.EvacuationID {
			return &d.Evacuations[i]
		}
	}
	return nil
}

// takenInstead tells the dual retry loops around other VMs in which the descheduler took this one since a time.
func (c *Cluster) takenInstead(namespace, vmi string, since time.Time) []string {
	var text []string
	for _, l := range c.allLoops() {
		for _, x := range l.Evidence {
			if l.Kind == LoopDualRetry && x.VMI == namespace+"/"+vmi && l.Namespace+"/"+l.VMI != x.VMI && !x.At.Before(since) {
				about := others(1) // which may not be seen
				if l.VMI != "" {
					about = l.Namespace + "/" + l.VMI
				}
				text = append(text, fmt.Sprintf("The descheduler took it from %s while KubeVirt kept failing to move %s: part of a %s since %s.",
					l.Node, about, l.Name(), clock(l.OpenedAt)))
				break
			}
		}
	}
	return text
}

// request finds the request that began the evacuation, nil where nobody saw it.
func (e Evacuation) request(requests []EvictionRequest) *EvictionRequest {
	for i := range requests {
		r := &requests[i]
		if r.Effect == EffectEvacuation && r.EvacuationID != nil && *r.EvacuationID == e.ID && r.Source != string(SourceMark) {
			return r
		}
	}
	return nil
}

// asked tells who asked for the evacuation, with which words, and when KubeVirt acted on it.
func (e Evacuation) asked(requests []EvictionRequest, seen Coverage) []string {
	r := e.request(requests)
	if r == nil {
		text := fmt.Sprintf("At %s KubeVirt accepted to move it away from %s, asked by %s (%s: %s).",
			clock(e.MarkedAt), e.Node, e.asker(), e.Confidence, e.Evidence)
		return []string{text, e.unnamed(seen)}
	}
	late := ""
	if r.SeenLate {
		late = "; told later, by an audit log"
	}
	return []string{fmt.Sprintf("At %s %s asked to evict it from %s%s; KubeVirt accepted at %s (%s: %s%s).",
		clock(r.RequestedAt), r.who(), e.Node, r.saying(), clock(e.MarkedAt), r.Confidence, r.Evidence, late)}
}

// unnamed says why nobody can be named, and what would name them.
func (e Evacuation) unnamed(seen Coverage) string {
	switch {
	case e.MarkedBy == MarkedByTaint:
		return ""
	case seen.Audit || seen.Observer:
		return "Requester unknown: the audit log and the observer tell of no such request at that time."
	}
	return "Requester unknown: no audit and no observer here. To know the next: send audit events (`evictrail run --audit-file`, " +
		"`evictrail audit import`, docs/audit.md), or let the observer see requests (`evictrail generate manifests observer`)."
}

// askedAgain tells every later request that met the evacuation, those of one requester together.
func (e Evacuation) askedAgain(requests []EvictionRequest) []string {
	var text []string
	for _, r := range requests {
		if r.EvacuationID == nil || *r.EvacuationID != e.ID || r.RepeatOf != nil {
			continue
		}
		switch first := r.Effect == EffectEvacuation; {
		case first && r.Repeats > 0:
			text = append(text, fmt.Sprintf("%s asked again%s; that changed nothing.", opening(r.who()), r.repeated()))
		case !first && r.Repeats > 0:
			text = append(text, fmt.Sprintf("%s asked too, %s from %s to %s%s; that changed nothing.",
				opening(r.who()), plural(r.Repeats+1, "time"), clock(r.RequestedAt), clock(r.LastRepeatAt), r.saying()))
		case !first:
			text = append(text, fmt.Sprintf("%s asked too at %s%s; that changed nothing.", opening(r.who()), clock(r.RequestedAt), r.saying()))
		}
	}
	return text
}

// story tells an evacuation from its request on.
func (e Evacuation) story(d Derived, seen Coverage, now time.Time) []string {
	text := append(e.asked(d.Requests, seen), e.askedAgain(d.Requests)...)
	mine := d.attemptsOf(e.ID)
	text = append(text, e.attemptsSoFar(mine)...)
	switch e.Outcome {
	case OutcomeMigrated:
		text = append(text, fmt.Sprintf("It was done at %s, after %s%s.", clock(e.EndedAt), span(e.EndedAt.Sub(e.MarkedAt)), e.fulfilment(mine)))
		for i := range mine {
			if verdict := mine[i].tell(); mine[i].UID == e.FulfilledBy && verdict != "" {
				text = append(text, verdict)
			}
		}
	case OutcomeCancelled:
		text = append(text, fmt.Sprintf("The evacuation was cancelled at %s%s; the guest stayed.", clock(e.EndedAt), by(e.CancelledBy)))
	case OutcomeVMIGone:
		text = append(text, fmt.Sprintf("The VMI ended at %s, before it was moved.", clock(e.EndedAt)))
	default:
		text = append(text, e.stillOpen(mine, now)...)
	}
	return append(text, e.overdue())
}

// attemptsOf gives the migrations that belong to an evacuation, in the order of their creation.
func (d *Derived) attemptsOf(evacuation FactID) []Migration {
	var mine []Migration
	for _, m := range d.Migrations {
		if m.EvacuationID != nil && *m.EvacuationID == evacuation {
			mine = append(mine, m)
		}
	}
	return mine
}

// attemptsSoFar tells how often KubeVirt tried and why it failed, each cause once with its count.
func (e Evacuation) attemptsSoFar(mine []Migration) []string {
	causes := causesOf(mine)
	if causes == "" {
		return nil
	}
	return []string{fmt.Sprintf("KubeVirt made %s; %d failed%s.", plural(e.Attempts, "attempt"), e.FailedAttempts, causes)}
}

// causesOf tells why migrations failed or were aborted, each cause once with its count; empty where none did.
func causesOf(mine []Migration) string {
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
		return ""
	}
	for i, cause := range order {
		order[i] = fmt.Sprintf("%d × %s", count[cause], cause)
	}
	return " (" + strings.Join(order, "; ") + ")"
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
	if e.Strategy == StrategyExternal {
		return append(text, "Its strategy is External, so KubeVirt makes no migration: the controller that owns the VM has to act.")
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
		text = append(text, fmt.Sprintf("Attempt %d (%s) is in phase %s since %s%s.", last.Attempt, last.Name, phase, clock(last.phaseSince()), last.waiting()))
	case now.Before(e.NextRetryAt):
		text = append(text, fmt.Sprintf("KubeVirt will try again, not before %s.", clock(e.NextRetryAt)))
	default:
		text = append(text, "KubeVirt will try again.")
	}
	return text
}

// waiting says for what a migration waits that has no target pod yet, empty where it does not.
func (m Migration) waiting() string {
	if m.WaitReason == "" || !m.SchedulingAt.IsZero() {
		return ""
	}
	return " and waits (" + waitText(&m) + ")"
}

// advice says how an evacuation that does not come to an end is stopped; empty while it may well end by itself.
func (e Evacuation) advice(s KubeVirtSettings) string {
	switch {
	case e.Strategy == StrategyExternal:
		return adviceExternal(&e, s)
	case e.FailedAttempts >= 2:
		return adviceStuck(&e, s)
	}
	return ""
}

// openEvacuation gives the evacuation that is open, nil where none is.
func openEvacuation(d Derived) *Evacuation {
	for i := range d.Evacuations {
		if d.Evacuations[i].Outcome == "" {
			return &d.Evacuations[i]
		}
	}
	return nil
}

// cooldownNow says until when the descheduler leaves the VM alone, empty where it does not.
func cooldownNow(d Derived, now time.Time) string {
	held := heldAt(d.Decisions, LayerCooldown, now)
	if held == nil {
		return ""
	}
	return fmt.Sprintf("The descheduler leaves it alone until %s: its cooldown is %s%s.", clock(held.Until), span(time.Duration(held.Effective)), held.because())
}

// tellLoops tells the loops that the VM is part of and that were open since a time, and what to do about the first that is
// open still.
func (c *Cluster) tellLoops(namespace, vmi string, since time.Time) (text []string, advice string) {
	text = c.takenInstead(namespace, vmi, since)
	for _, l := range c.LoopsOf(namespace, vmi) {
		switch {
		case !l.Open() && (l.ClosedAt.Before(since) || l.ClosedBy == LoopBecameDualRetry):
			continue
		case l.Open():
			text = append(text, fmt.Sprintf("This is a %s since %s: %s", l.Name(), clock(l.OpenedAt), l.Summary))
			if advice == "" {
				advice = l.Advice
			}
		default:
			text = append(text, fmt.Sprintf("From %s to %s that was a %s: %s", clock(l.OpenedAt), clock(l.ClosedAt), l.Name(), l.Summary))
		}
	}
	return text, advice
}

// story tells a migration that belongs to no evacuation.
func (m Migration) story(now time.Time) []string {
	text := []string{fmt.Sprintf("At %s migration %s was created%s (%s).", clock(m.CreatedAt), m.Name, m.by(), m.cause())}
	switch m.Outcome {
	case OutcomeSucceeded:
		return append(text, fmt.Sprintf("It succeeded at %s%s.", clock(m.FinishedAt), route(&m)))
	case OutcomeFailed, OutcomeAborted:
		return append(text, fmt.Sprintf("It %s at %s%s%s: %s.", ended(m.Outcome), clock(m.FinishedAt), by(m.AbortedBy), route(&m), m.whyFailed()))
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
	case e.RequesterClass == RequesterDescheduler || e.Requester != "":
		return actor(e.Requester, e.RequesterClass)
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

// by names who made the migration, where it belongs to no evacuation and somebody saw it.
func (m Migration) by() string {
	if m.EvacuationID != nil {
		return ""
	}
	return by(m.Requester)
}

func by(user string) string {
	if user == "" {
		return ""
	}
	return " by " + user
}

func (m Migration) cause() string {
	if m.TriggerConfidence == ConfidenceAsserted {
		return "for: " + string(m.Trigger)
	}
	return fmt.Sprintf("for: %s, %s", m.Trigger, m.TriggerConfidence)
}

// whyShort gives the class and the reason of a failure, without KubeVirt's own text.
func (m Migration) whyShort() string { return fmt.Sprintf("%s, %s", m.FailureClass, m.FailureReason) }

func (m Migration) whyFailed() string {
	text := m.whyShort()
	if m.FailureText != "" {
		text += " (" + strings.TrimSpace(m.FailureText) + ")"
	}
	return text
}

// phaseSince gives the time of the last phase, the creation where there is none.
func (m Migration) phaseSince() time.Time {
	if m.PhaseSince.IsZero() {
		return m.CreatedAt
	}
	return m.PhaseSince
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
