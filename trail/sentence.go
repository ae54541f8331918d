package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is what evictrail says to a question about one VM, or one node: a paragraph, and the lines that it rests on.
type Answer struct {
	Namespace string `json:"namespace"`
	VMI       string `json:"vmi"`            // empty, as is the namespace, where the question is about a node
	Node      string `json:"node,omitempty"` // empty where the question is about a VM
	Brief     Brief  `json:"brief,omitzero"` // the answer in a few lines; zero where the question is about a node
	// Attempts are the migrations of what is latest, newest first, and those that failed alike as one; none where there was one migration at most.
	Attempts      []AttemptLine `json:"attempts,omitempty"`
	AttemptsOlder int           `json:"attempts_older,omitempty"` // how many of the oldest are in none of Attempts

	Paragraph string    `json:"paragraph"`        // the full account
	Advice    string    `json:"advice,omitempty"` // what to do: lines of which the indented ones can be pasted; empty where there is nothing to do
	AsOf      time.Time `json:"as_of"`            // the moment for which it speaks
	Evidence  []Line    `json:"evidence"`
	Rests

	Recorder    *RecorderNote `json:"recorder,omitempty"`     // state of the recorder now; nil where the question is about the past
	NotObserved []Gap         `json:"not_observed,omitempty"` // gaps that overlap the period of the answer, the newest first
}

// Coverage says which sources of requests a cluster has: whether any request was ever seen by each.
type Coverage struct {
	Audit    bool
	Observer bool
}

// Why answers why a VM moved, or is to move: what was last asked, what was tried, what came of it. It speaks of what is
// latest: an evacuation, a migration that belongs to none, a shutdown by Kubernetes, a request that was refused; of what
// holds the VM now; and of the loops that it is part of.
func (c *Cluster) Why(namespace, vmi string) Answer {
	a, d, now := Answer{Namespace: namespace, VMI: vmi, AsOf: c.Now}, c.VM(namespace, vmi), c.Now
	last := d.findLatestEpisode(c.Seen)
	a.Brief = c.newBrief(namespace, vmi, d, last)
	if last.story != nil {
		a.listAttempts(d.Migrations, last.from.Truncate(time.Second))
	}
	text, from := []string{"Nothing was seen that would move it: no eviction and no migration."}, time.Time{}
	if last.story != nil {
		text, from = last.story(now), last.from
	}
	if s, found := d.lastShutdown(); found && s.ToAt.Before(last.at) {
		text = append(text, d.describeRecentShutdown(now))
	}
	e := openEvacuation(d)
	if e != nil && !d.deletionOf(e.VMIUID).IsZero() { // nobody moves it any more
		e = nil
	}
	stranded := c.strandedAttempt(&d, e)
	if stranded != nil {
		text = append(text, UpperFirst(c.describeStranded(stranded))+".")
	}
	text = append(text, whereNow(d.Placements, now), c.describeNewPlace(d.Placements, from), cooldownNow(d, now))
	loops, advice := c.describeLoops(namespace, vmi, from)
	text = append(text, loops...)
	switch a.Advice = advice; {
	case e == nil || advice != "":
	case stranded != nil:
		a.Advice = adviceStranded(stranded)
	default:
		a.Advice = e.renderAdvice(c.env.kubevirtSettingsAt(now))
	}
	a.Paragraph = fmt.Sprintf("%s/%s: %s", namespace, vmi, strings.Join(nonEmpty(text), " "))
	restsFrom := from
	if p := placementNow(d); last.story == nil && p != nil { // that nothing moved it is said of all the time for which it is there
		restsFrom = p.FromAt
	}
	a.Rests = c.newRests(restsFrom)
	for _, l := range d.Timeline {
		if !l.At.Before(from.Truncate(time.Second)) {
			a.Evidence = append(a.Evidence, l)
			a.Since = minNonZeroTime(a.Since, l.At)
		}
	}
	return a
}

// StoryFrom returns from when on the rows and lines of a VM are those that Why shows: the beginning of what is latest, and of the loops
// that are open. Of the rows those suffice that say how it stands. Zero: all of them are.
func (d Derived) StoryFrom() time.Time {
	from := d.findLatestEpisode(Coverage{}).from
	for _, l := range d.Loops {
		if l.Open() && len(l.Evidence) > 0 && l.Evidence[0].At.Before(from) {
			from = l.Evidence[0].At
		}
	}
	return from
}

// findLatestEpisode returns what is said about a VM: the latest that happened to it.
func (d Derived) findLatestEpisode(seen Coverage) episode {
	tell := []episode{latestEvacuation(d, seen), latestMigration(d), latestShutdown(d), latestRefusal(d), latestWanted(d)}
	return slices.MaxFunc(tell, func(a, b episode) int { return a.at.Compare(b.at) })
}

// episode is something that a paragraph can describe; its story is nil where there is none.
type episode struct {
	at    time.Time // by which the latest is chosen
	from  time.Time // from which on the timeline is evidence
	story func(now time.Time) []string

	evacuation *Evacuation      // that it is; nil where it is none
	migration  *Migration       // that it is, or by which it lost the guest; nil where it belongs to an evacuation, or is none
	request    *EvictionRequest // that began it, where no evacuation did; nil where unknown
	askedBy    string           // who asked and when, where only an EvictionRequest says so; else empty
}

// latestEvacuation returns the last evacuation, with the migrations that were made for another reason while it was open, or that
// fulfilled it: they are part of its story, not later ones.
func latestEvacuation(d Derived, seen Coverage) episode {
	if len(d.Evacuations) == 0 {
		return episode{}
	}
	e := slices.MaxFunc(d.Evacuations, func(a, b Evacuation) int { return a.MarkedAt.Compare(b.MarkedAt) })
	last := episode{at: e.MarkedAt, from: e.MarkedAt, story: func(now time.Time) []string { return e.renderStory(d, seen, now) }, evacuation: &e}
	if r := e.findRequest(d.Requests); r != nil {
		last.from = r.RequestedAt
	}
	if wanted := d.wantedLinesOf(&e); len(wanted) > 0 && wanted[0].At.Before(last.from) {
		last.from = wanted[0].At
	}
	for _, m := range d.Migrations {
		if m.VMIUID == e.VMIUID && (e.isOpenAt(m.CreatedAt) || m.UID == e.FulfilledBy) {
			last.at = maxTime(last.at, m.CreatedAt)
			if m.CreatedAt.Before(last.from) {
				last.from = m.CreatedAt
			}
		}
	}
	return last
}

// latestMigration returns the last migration that belongs to no evacuation.
func latestMigration(d Derived) episode {
	for i := len(d.Migrations) - 1; i >= 0; i-- {
		if m := d.Migrations[i]; m.EvacuationID == nil {
			return episode{at: m.CreatedAt, from: m.CreatedAt, story: m.renderStory, migration: &m}
		}
	}
	return episode{}
}

// latestShutdown returns the last time that the platform ended the guest: evicted, not moved, or lost by a migration.
func latestShutdown(d Derived) episode {
	s, found := d.lastShutdown()
	if !found {
		return episode{}
	}
	last := episode{at: s.ToAt, from: s.ToAt.Add(-time.Minute), story: func(now time.Time) []string { return s.renderStory(d, now) }}
	for _, r := range d.Requests {
		if r.Effect == EffectShutdown && r.VMIUID == s.VMIUID {
			last.from = r.RequestedAt
			if r.RepeatOf == nil {
				last.request = &r
			}
		}
	}
	if m := d.lostBy(s); m != nil {
		last.from = m.CreatedAt
		if last.evacuation = d.evacuationOf(m); last.evacuation == nil {
			last.migration = m
		}
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

// latestRefusal returns the last request that was refused, with its repetitions.
func latestRefusal(d Derived) episode {
	var last episode
	for _, r := range d.Requests {
		refused := r.Answer == AnswerNotMigratable || r.Answer == AnswerTargetPod || r.Answer == AnswerPDB || r.Answer == AnswerError
		if refused && !r.DryRun && r.RepeatOf == nil {
			last = episode{at: r.RequestedAt, from: r.RequestedAt, story: r.renderRefusal, request: &r}
		}
	}
	return last
}

// renderRefusal returns a request that was refused.
func (r EvictionRequest) renderRefusal(time.Time) []string {
	times := fmt.Sprintf("At %s %s asked to evict it from %s%s", FormatClock(r.RequestedAt), r.formatRequester(), r.Node, r.describeReason())
	if r.Repeats > 0 {
		times += ", and again" + r.describeRepeats()
	}
	text := []string{times + ": " + r.describeOutcome() + "."}
	if r.Answer == AnswerNotMigratable {
		text = append(text, "As long as LiveMigratable is not True only stopping the VM, or another eviction strategy, lets the pod go.")
	}
	return text
}

// renderStory returns how the platform ended the guest, what came of that, and who had asked for what led to it.
func (s shutdown) renderStory(d Derived, now time.Time) []string {
	ended := s.newEnding().renderSentence()
	for _, l := range d.Timeline {
		if l.Kind == KindVMIEnded && l.VMIUID == s.VMIUID {
			ended = l.Sentence // which names the pod
			break
		}
	}
	text := []string{fmt.Sprintf("At %s: %s", FormatClock(s.ToAt), ended), s.describeAftermath()}
	for _, r := range d.Requests {
		if r.Effect == EffectShutdown && r.VMIUID == s.VMIUID && r.RepeatOf == nil {
			text = append(text, fmt.Sprintf("At %s %s asked to evict it from %s%s (%s: %s).", FormatClock(r.RequestedAt), r.formatRequester(), r.Node, r.describeReason(), r.Confidence, r.Evidence))
		}
	}
	m := d.lostBy(s)
	switch e := d.evacuationOf(m); {
	case m == nil:
	case e != nil:
		text = append(text, e.renderRequest(d.Requests, Coverage{})[0])
		text = append(text, e.attemptsSoFar(d.attemptsOf(e.ID))...)
	default:
		text = append(text, m.renderStory(now)...)
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

// takenInstead returns the dual retry loops around other VMs in which the descheduler took this one since a time.
func (c *Cluster) takenInstead(namespace, vmi string, since time.Time) []string {
	var text []string
	for _, l := range c.allLoops() {
		for _, x := range l.Evidence {
			if l.Kind == LoopDualRetry && x.VMI == namespace+"/"+vmi && l.Namespace+"/"+l.VMI != x.VMI && !x.At.Before(since) {
				about := formatHiddenVMs(1) // which may not be seen
				if l.VMI != "" {
					about = l.Namespace + "/" + l.VMI
				}
				text = append(text, fmt.Sprintf("The descheduler took it from %s while KubeVirt kept failing to move %s: part of %s since %s.",
					l.Node, about, l.formatWithArticle(), FormatClock(l.OpenedAt)))
				break
			}
		}
	}
	return text
}

// renderAdvice says how an evacuation that does not come to an end is stopped; empty while it may well end by itself.
func (e Evacuation) renderAdvice(s KubeVirtSettings) string {
	switch {
	case e.Strategy == StrategyExternal:
		return adviceExternal(&e, s)
	case e.FailedAttempts >= 2:
		return adviceStuck(&e, s)
	}
	return ""
}

// openEvacuation returns the evacuation that is open, nil where none is.
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
	return fmt.Sprintf("The descheduler leaves it alone until %s: its cooldown is %s%s.", FormatClock(held.Until), formatSpan(time.Duration(held.Effective)), held.describeCause())
}

// describeLoops returns the loops that the VM is part of and that were open since a time, and what to do about the first that is
// open still.
func (c *Cluster) describeLoops(namespace, vmi string, since time.Time) (text []string, advice string) {
	text = c.takenInstead(namespace, vmi, since)
	for _, l := range c.LoopsOf(namespace, vmi) {
		switch {
		case !l.Open() && (l.ClosedAt.Before(since) || l.ClosedBy == LoopBecameDualRetry):
			continue
		case l.Open():
			text = append(text, fmt.Sprintf("%s, open since %s: %s", UpperFirst(l.Name()), FormatClock(l.OpenedAt), l.Summary))
			if advice == "" {
				advice = l.Advice
			}
		default:
			text = append(text, fmt.Sprintf("%s, from %s to %s: %s", UpperFirst(l.Name()), FormatClock(l.OpenedAt), FormatClock(l.ClosedAt), l.Summary))
		}
	}
	return text, advice
}

// renderStory returns a migration that belongs to no evacuation.
func (m Migration) renderStory(now time.Time) []string {
	text := []string{fmt.Sprintf("At %s migration %s was created%s (%s).", FormatClock(m.CreatedAt), m.Name, m.formatCreator(), m.formatTrigger()), policiesOf([]Migration{m})}
	switch m.Outcome {
	case OutcomeSucceeded:
		return append(text, fmt.Sprintf("It succeeded at %s%s.", FormatClock(m.FinishedAt), formatRoute(&m)), m.describeTransfer("It"))
	case OutcomeFailed, OutcomeAborted:
		if m.goneWithVMI() {
			return append(text, fmt.Sprintf("It ended at %s because the VMI was deleted.", FormatClock(m.FinishedAt)))
		}
		return append(text, fmt.Sprintf("It %s at %s%s%s: %s.", formatOutcome(m.Outcome), FormatClock(m.FinishedAt), formatByUser(m.AbortedBy, m.AbortImpersonator), formatRoute(&m), m.whyFailed()), m.describeTransfer("It"))
	case OutcomeMigrated, OutcomeCancelled, OutcomeVMIGone:
	}
	if !m.FinishedAt.IsZero() {
		return append(text, "It is gone; how it ended was not seen.")
	}
	return append(text, fmt.Sprintf("It is in phase %s%s, %s after its creation.", m.Phase, m.describeWait(), formatSpan(now.Sub(m.CreatedAt))))
}

func whereNow(placements []Placement, now time.Time) string {
	if len(placements) == 0 {
		return ""
	}
	p := placements[len(placements)-1]
	if !p.ToAt.IsZero() {
		return fmt.Sprintf("The guest last ran on %s, until %s.", p.Node, FormatClock(p.ToAt))
	}
	return fmt.Sprintf("The guest runs on %s, for %s now.", p.Node, formatSpan(now.Sub(p.FromAt)))
}

// formatLabel names a migration in a sentence.
func (m Migration) formatLabel() string {
	if m.Attempt > 0 {
		return fmt.Sprintf("attempt %d (%s)", m.Attempt, m.Name)
	}
	return "migration " + m.Name
}

// formatCreator names who made the migration, where it belongs to no evacuation and somebody saw it.
func (m Migration) formatCreator() string {
	if m.EvacuationID != nil {
		return ""
	}
	return m.byWhom()
}

func (m Migration) formatTrigger() string {
	if m.TriggerConfidence == ConfidenceAsserted {
		return "for: " + m.Trigger.Label().Short
	}
	return fmt.Sprintf("for: %s, %s", m.Trigger.Label(), m.TriggerConfidence.Label())
}

// whyShort returns the class and the reason of a failure, without KubeVirt's own text.
func (m Migration) whyShort() string { return formatFailure(m.FailureClass, m.FailureReason) }

// formatFailure returns the class and the reason of a failure: data transfer, libvirt error. Where both say the same, or nothing finer is known, one of them.
func formatFailure(class FailureClass, reason FailureReason) string {
	c, r := class.Label().Short, reason.Label().Short
	if r == "" || strings.HasPrefix(r, c) {
		return cmp.Or(r, c)
	}
	return c + ", " + r
}

func (m Migration) whyFailed() string {
	text := m.whyShort()
	if m.FailureText != "" {
		text += " (" + strings.TrimSpace(m.FailureText) + ")"
	}
	return text
}

// phaseSince returns the time of the last phase, the creation where there is none.
func (m Migration) phaseSince() time.Time {
	if m.PhaseSince.IsZero() {
		return m.CreatedAt
	}
	return m.PhaseSince
}

func formatRoute(m *Migration) string {
	if m.SourceNode == "" || m.TargetNode == "" {
		return ""
	}
	return fmt.Sprintf(" from %s to %s", m.SourceNode, m.TargetNode)
}

func formatOutcome(o Outcome) string {
	if o == OutcomeAborted {
		return "was aborted"
	}
	return string(o)
}
