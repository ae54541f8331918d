package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Brief is an answer about a VM in a few labelled lines: what a reader needs before the full account. A line that has nothing to say is empty.
type Brief struct {
	Status   string `json:"status"`             // where the guest is, and what keeps it there
	AskedBy  string `json:"asked_by,omitempty"` // who asked for what happened last, when, and with which words
	Attempts string `json:"attempts,omitempty"` // how often it was tried to move it, how that ended, and why it last failed
	Outlook  string `json:"outlook,omitempty"`  // whether the open evacuation can succeed, why, and the smallest change that would help
	Verdict  string `json:"verdict,omitempty"`  // whether the move was needed, and what came of it
}

// BriefLine is one line of a Brief.
type BriefLine struct{ Label, Text string }

// Lines returns the lines that say something, in their order.
func (b Brief) Lines() []BriefLine {
	all := []BriefLine{{"Status", b.Status}, {"Asked by", b.AskedBy}, {"Attempts", b.Attempts}, {"Outlook", b.Outlook}, {"Verdict", b.Verdict}}
	return slices.DeleteFunc(all, func(l BriefLine) bool { return l.Text == "" })
}

// briefReason bounds the stated reason in a Brief, in bytes.
const briefReason = 120

// newBrief returns the Brief of a VM about what last happened to it.
func (c *Cluster) newBrief(namespace, vmi string, d Derived, last episode) Brief {
	s := standing{Cluster: c, d: d, namespace: namespace, vmi: vmi}
	b := Brief{Status: s.summarizeStatus(), AskedBy: last.summarizeRequester(d)}
	tried := last.listAttempts(d)
	b.Attempts = countAttempts(tried, last.evacuation)
	if e := openEvacuation(d); e != nil {
		b.Outlook = e.DescribeOutlook()
	}
	for i := len(tried) - 1; i >= 0 && b.Verdict == ""; i-- {
		b.Verdict = tried[i].summarizeVerdict(i == len(tried)-1)
	}
	return b
}

// summarizeStatus says where the guest is, since when it is to leave, what is in its way, and in which loops it is.
func (s *standing) summarizeStatus() string {
	p := placementNow(s.d)
	if p == nil {
		return s.summarizeEnd()
	}
	place := p.Node
	if zone := s.env.findLabels(p.Node, s.Now).Zone; zone != "" {
		place += fmt.Sprintf(" (zone %s)", zone)
	}
	parts := []string{fmt.Sprintf("On %s for %s", place, Age(s.Now.Sub(p.FromAt)))}
	e := openEvacuation(s.d)
	if e != nil {
		parts = append(parts, fmt.Sprintf("to leave it for %s", Age(s.Now.Sub(e.MarkedAt))))
	} else if down, found := s.d.lastShutdown(); found && !down.backAt.IsZero() && s.Now.Sub(down.ToAt) <= lostLately {
		parts = append(parts, fmt.Sprintf("restarted %s ago without its memory (%s)", Age(s.Now.Sub(down.backAt)), down.EndedBy.Label().Short))
	} else if last := lastUnmoved(s.d, p.VMIUID); last != nil && s.Now.Sub(last.EndedAt) <= lostLately {
		parts = append(parts, fmt.Sprintf("started again: its VMI before ended at %s, before it was moved", FormatClock(last.EndedAt)))
	}
	for _, o := range s.findObstacles() {
		text := o.Kind.Label().Short
		switch {
		case !o.Until.IsZero():
			text += fmt.Sprintf(" until %s", FormatClock(o.Until))
		case o.Kind == ObstacleWaiting && o.Reason == "" && e != nil && e.RetryOverdue(s.Now) > 0:
			text = fmt.Sprintf("next attempt overdue by %s", Age(e.RetryOverdue(s.Now)))
		case o.Kind == ObstacleWaiting && o.Reason != "":
			text += ": " + WaitReason(o.Reason).Label().Short
		}
		parts = append(parts, text)
	}
	for _, l := range s.LoopsOf(s.namespace, s.vmi) {
		if l.Open() {
			parts = append(parts, fmt.Sprintf("open loop: %s, for %s", l.Kind.Label().Short, Age(s.Now.Sub(l.OpenedAt))))
		}
	}
	return strings.Join(parts, "; ")
}

// lastUnmoved returns the last evacuation that ended as its VMI did, before another one of the VM; nil where there is none.
func lastUnmoved(d Derived, vmiUID string) *Evacuation {
	for i := len(d.Evacuations) - 1; i >= 0; i-- {
		if e := &d.Evacuations[i]; e.Outcome == OutcomeVMIGone && e.VMIUID != vmiUID {
			return e
		}
	}
	return nil
}

// summarizeEnd says where a guest ran that does not run, and how it ended.
func (s *standing) summarizeEnd() string {
	if len(s.d.Placements) == 0 {
		return "Not running"
	}
	p := s.d.Placements[len(s.d.Placements)-1]
	text := fmt.Sprintf("Not running; last on %s, until %s", p.Node, FormatClock(p.ToAt))
	if p.EndedBy != "" {
		text += fmt.Sprintf(" (%s)", p.EndedBy.Label().Short)
	}
	return text
}

// summarizeRequester says who asked for what happened, when and with which words, and how often it was asked for once more. Where who asked is unknown, how the
// cause is known.
func (p episode) summarizeRequester(d Derived) string {
	r, e, m := p.request, p.evacuation, p.migration
	if p.askedBy != "" {
		return p.askedBy
	}
	if e != nil {
		r = e.findRequest(d.Requests)
	}
	switch {
	case r != nil:
		text := fmt.Sprintf("%s, at %s", capitalizeRequester(r.formatRequester()), FormatClock(r.RequestedAt))
		if reason := strings.TrimSpace(r.StatedReason); reason != "" {
			text += fmt.Sprintf(", saying %q", ClipText(reason, briefReason))
		}
		if n, until := r.countLater(d.Requests); n > 0 {
			text += fmt.Sprintf("; %s, the last at %s", FormatCount(n, "later request"), FormatClock(until))
		}
		if e == nil {
			text += ": " + ClipText(r.describeOutcome(), briefReason)
		}
		return text
	case e != nil:
		how := e.Confidence.Label().Short
		if e.Trigger != "" {
			how = e.Trigger.Label().Short + ", " + how
		}
		return fmt.Sprintf("%s, marked at %s (%s)", capitalizeRequester(e.formatRequester()), FormatClock(e.MarkedAt), how)
	case m != nil:
		who := cmp.Or(strings.TrimPrefix(m.byWhom(), " by "), m.whoAsked(), "an unknown requester")
		return fmt.Sprintf("%s, at %s (%s)", capitalizeRequester(who), FormatClock(m.CreatedAt), strings.TrimPrefix(m.formatTrigger(), "for: "))
	}
	return ""
}

// countLater counts the requests that came while the effect of this one lasted, its repetitions among them, and returns when the last came.
func (r *EvictionRequest) countLater(all []EvictionRequest) (n int, last time.Time) {
	n, last = r.Repeats, r.LastRepeatAt
	for _, x := range all {
		if r.EvacuationID != nil && x.EvacuationID != nil && *x.EvacuationID == *r.EvacuationID && x.RepeatOf == nil && x.RequestedAt.After(r.RequestedAt) {
			n += 1 + x.Repeats
			last = maxTime(last, maxTime(x.RequestedAt, x.LastRepeatAt))
		}
	}
	return n, last
}

// listAttempts returns the migrations of the episode, in the order of their creation: the attempts of its evacuation and what else moved the guest, or the one migration.
func (p episode) listAttempts(d Derived) []Migration {
	var tried []Migration
	for _, m := range d.Migrations {
		switch {
		case p.evacuation != nil && (m.isAttemptOf(p.evacuation.ID) || m.UID == p.evacuation.FulfilledBy):
			tried = append(tried, m)
		case p.migration != nil && m.UID == p.migration.UID:
			tried = append(tried, m)
		case p.migration != nil && m.isRetriedBy(p.migration):
			tried = append(tried, m)
		}
	}
	return tried
}

// isRetriedBy reports whether KubeVirt made a later migration for the same cause, as this one had failed.
func (m *Migration) isRetriedBy(later *Migration) bool {
	return m.Outcome == OutcomeFailed && later.EvacuationID == nil && later.Requester == "" && later.Trigger == m.Trigger && later.VMIUID == m.VMIUID &&
		m.FinishedAt.Before(later.CreatedAt) && later.CreatedAt.Sub(m.FinishedAt) <= groupedWithin
}

// countAttempts counts migrations by how they ended, and says why the last of those failed that did; e is the evacuation that they belong to, nil where there is none.
func countAttempts(tried []Migration, e *Evacuation) string {
	if len(tried) == 0 {
		switch {
		case e == nil || e.Outcome != "":
			return ""
		case e.Strategy == StrategyExternal:
			return "None by KubeVirt: its owner must move it"
		}
		return "None yet"
	}
	count := map[string]int{}
	var done, failed *Migration
	for i := range tried {
		m := &tried[i]
		switch {
		case m.goneWithVMI():
			count["ended with the VMI"]++
		case m.Outcome == OutcomeFailed:
			failed = m
			count["failed"]++
		case m.Outcome == OutcomeSucceeded:
			done = m
			count["succeeded"]++
		case m.Outcome == OutcomeAborted:
			failed = m
			count["aborted"]++
		case m.FinishedAt.IsZero() && m.SchedulingAt.IsZero():
			count["waiting"]++
		case m.FinishedAt.IsZero():
			count["under way"]++
		default:
			count["ended unseen"]++
		}
	}
	var parts []string
	for _, how := range []string{"failed", "aborted", "ended with the VMI", "ended unseen", "succeeded", "waiting", "under way"} {
		if n := count[how]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, how))
		}
	}
	text := strings.Join(parts, ", ")
	if done != nil {
		text += fmt.Sprintf(" (to %s at %s", done.TargetNode, FormatClock(done.FinishedAt))
		if e != nil && e.FulfilledBy == done.UID {
			text += fmt.Sprintf(", after %s", Age(done.FinishedAt.Sub(e.MarkedAt)))
		}
		text += ")"
	}
	if failed != nil {
		text += fmt.Sprintf("; last failure at %s: %s", FormatClock(failed.FinishedAt), failed.whyShort())
	}
	return text
}

// summarizeVerdict returns whether a migration was needed and what came of it, with the reason; empty where load is not why it was made. Last
// reports whether it is the last attempt of those that the answer is about.
func (m *Migration) summarizeVerdict(last bool) string {
	what := "The move"
	switch {
	case m.Outcome == OutcomeSucceeded:
	case last:
		what = "The last attempt"
	default:
		what = "An earlier attempt"
	}
	switch {
	case m.Need == Needed && m.Benefit == Helped:
		what += " was needed and relieved " + m.SourceNode
	case m.Need == Needed && m.Benefit == Harmed:
		what += " was needed, but made " + m.TargetNode + " worse"
	case m.Need == Needed && m.Benefit == NoEffect:
		what += " was needed, but did not relieve " + m.SourceNode
	case m.Need == Needed:
		what += " was needed"
	case m.Need == NotNeeded && m.Benefit == Harmed:
		what += " was not needed, and made " + m.TargetNode + " worse"
	case m.Need == NotNeeded && m.Benefit == Helped:
		what += " was not needed, but relieved " + m.SourceNode
	case m.Need == NotNeeded:
		what += " was not needed"
	case m.Need == NeedUnknown && m.Outcome == OutcomeSucceeded: // of one that changed nothing it does not matter
		what = "Unknown whether the move was needed"
	default:
		return ""
	}
	return joinReason(what, m.NeedBecause)
}

// joinReason adds a reason to a sentence, where there is one.
func joinReason(sentence, reason string) string {
	if reason == "" {
		return sentence
	}
	return sentence + ": " + reason
}
