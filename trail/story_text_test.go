package trail_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

func (s *story) rowTexts(facts []trail.Fact) string {
	thresholds := trail.DefaultThresholds()
	thresholds.Accounts = s.accounts
	return rowTexts(facts, thresholds, s.now)
}

func rowTexts(facts []trail.Fact, thresholds trail.Thresholds, now time.Time) string {
	all := trail.DeriveAll(facts, thresholds, now).Rows
	subjects := slices.SortedFunc(maps.Keys(all), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) })
	var b strings.Builder
	for _, s := range subjects {
		writeRows(&b, all[s])
	}
	return b.String()
}

// settingsText returns which settings were in force when, and by which name requests and evacuations know them.
func settingsText(facts []trail.Fact, now time.Time) string {
	var b strings.Builder
	for _, s := range trail.NewEnv(facts).Settings("test") {
		fmt.Fprintf(&b, "%s to %s: %s\n", formatShortTime(s.From), formatShortTime(s.Until), s.Policy)
		for _, p := range s.MigrationPolicies {
			fmt.Fprintf(&b, "  %s\n", p.Name)
		}
		fmt.Fprintf(&b, "  %s\n", s.Semantics)
	}
	all := trail.DeriveAll(facts, trail.DefaultThresholds(), now).Rows
	for _, subject := range slices.SortedFunc(maps.Keys(all), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }) {
		d := all[subject]
		for _, r := range d.Requests {
			fmt.Fprintf(&b, "request at %s: %s\n", formatShortTime(r.RequestedAt), r.Policy)
		}
		for _, e := range d.Evacuations {
			fmt.Fprintf(&b, "evacuation at %s: %s\n", formatShortTime(e.MarkedAt), e.Policy)
		}
	}
	return b.String()
}

// whyNotTexts answers why-not about VMs and nodes, each with what to do.
func whyNotTexts(facts []trail.Fact, asked []string, now time.Time) string {
	c := trail.DeriveAll(facts, trail.DefaultThresholds(), now)
	var b strings.Builder
	for _, name := range asked {
		a := c.WhyNotNode(name)
		if namespace, vmi, isVM := strings.Cut(name, "/"); isVM {
			a = c.WhyNot(namespace, vmi)
		}
		for _, o := range a.Obstacles {
			fmt.Fprintf(&b, "[%s %s] ", o.Kind, formatOrDash(o.Reason))
		}
		fmt.Fprintf(&b, "%s\n", a.Paragraph)
		if a.Advice != "" {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(a.Advice, "\n", "\n  "))
		}
	}
	return b.String()
}

// whyTexts writes the paragraph about each VM, a line each.
func whyTexts(facts []trail.Fact, now time.Time) string {
	c := trail.DeriveAll(facts, trail.DefaultThresholds(), now)
	var lines []string
	for s := range c.Rows {
		if s.Kind == trail.SubjectVMI {
			namespace, name, _ := strings.Cut(s.Name, "/")
			lines = append(lines, c.Why(namespace, name).Paragraph+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func writeRows(b *strings.Builder, d trail.Derived) {
	for _, r := range d.Requests {
		fmt.Fprintf(b, "request for %s on %s/%s: %s to %s by %s, %s (%s, %s), %s, effect %s, repeats %d%s\n", formatOrDash(r.Pod), formatOrDash(r.VMI), formatOrDash(r.Node), formatShortTime(r.RequestedAt),
			formatShortTime(r.AnsweredAt), formatOrDash(r.Requester), r.RequesterClass, r.Source, r.Confidence, r.Answer, formatOrDash(string(r.Effect)), r.Repeats, requestTail(r))
	}
	for _, e := range d.Evacuations {
		retry := ""
		if !e.NextRetryAt.IsZero() {
			retry = ", next retry " + formatShortTime(e.NextRetryAt)
		}
		fmt.Fprintf(b, "evacuation of %s/%s from %s: %s to %s %s, by %s, %s by %s (%s), attempts %d failed %d, fulfilled by %s%s\n", e.VMI, e.VMIUID, e.Node,
			formatShortTime(e.MarkedAt), formatShortTime(e.EndedAt), formatOrDash(string(e.Outcome)), e.MarkedBy, e.Trigger, e.RequesterClass, e.Confidence, e.Attempts, e.FailedAttempts, formatOrDash(e.FulfilledBy), retry)
		if e.Outlook != "" {
			fmt.Fprintf(b, "outlook of %s/%s: %s\n", e.VMI, e.VMIUID, e.DescribeOutlook())
		}
	}
	for _, m := range d.Migrations {
		wait := ""
		if m.WaitReason != "" {
			wait = strings.TrimRight(fmt.Sprintf(", waits: %s %s", m.WaitReason, m.WaitDetail), " ")
		}
		fmt.Fprintf(b, "migration %s of %s/%s: %s (%s), attempt %d, %s -> %s, %s to %s %s %s, %s/%s%s\n", m.Name, m.VMI, formatOrDash(m.VMIUID), m.Trigger, m.TriggerConfidence, m.Attempt,
			formatOrDash(m.SourceNode), formatOrDash(m.TargetNode), formatShortTime(m.CreatedAt), formatShortTime(m.FinishedAt), formatOrDash(m.Phase), formatOrDash(string(m.Outcome)), formatOrDash(string(m.FailureClass)), formatOrDash(string(m.FailureReason)), wait+madeBy(m))
	}
	for _, p := range d.Placements {
		fmt.Fprintf(b, "placement of %s/%s on %s: %s to %s, arrived by %s, left by %s%s\n", p.VMI, p.VMIUID, p.Node, formatShortTime(p.FromAt), formatShortTime(p.ToAt), p.ArrivedBy, formatOrDash(p.LeftBy), formatTimeAfter(", terminating since ", p.TerminatingSince)+formatTimeAfter(", outdated since ", p.OutdatedSince)+placementTail(p))
	}
	for _, x := range d.Decisions {
		about := ""
		if x.Verdict == trail.VerdictBlocked && x.Origin == trail.OriginObserved {
			about = " about " + formatOrDash(strings.Join(x.Inputs.Candidates, ", "))
		}
		fmt.Fprintf(b, "decision on %s: %s %s %s %s, count %d, effective %s until %s, capped %t, %s%s%s\n", formatOrDash(x.VMI), formatShortTime(x.DecidedAt), x.Layer, x.Verdict, x.Reason, x.Count,
			trail.SpanText(time.Duration(x.Effective)), formatShortTime(x.Until), x.Capped, x.Model, strings.TrimRight("; "+x.Inputs.Finding, "; "), about)
	}
	for _, o := range d.Outages {
		fmt.Fprintf(b, "outage of %s: %s to %s %s, %s: %s\n", o.Node, formatShortTime(o.BeganAt), formatShortTime(o.EndedAt), formatOrDash(string(o.EndedBy)), o.Cause, formatOrDash(o.Message))
	}
	for _, l := range d.Loops {
		fmt.Fprintf(b, "loop %s %s of %s on %s: %s to %s %s, %s\n  %s\n", l.Kind, formatOrDash(string(l.Path)), formatOrDash(l.VMI), formatOrDash(l.Node), formatShortTime(l.OpenedAt), formatShortTime(l.ClosedAt), formatOrDash(string(l.ClosedBy)), strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(l.Counts), "map["), "]"), l.Summary)
	}
	for _, x := range d.Drains {
		fmt.Fprintf(b, "drain of %s by %s: %s to %s %s, %d of %d VMs left, last asked for at %s\n", x.Node, x.RequesterClass, formatShortTime(x.StartedAt), formatShortTime(x.EndedAt),
			formatOrDash(string(x.Outcome)), x.VMIsLeft, x.VMIsTotal, formatShortTime(x.LastAskedAt))
	}
	for _, x := range d.Blockers {
		fmt.Fprintf(b, "left on %s: %s since %s, last asked for at %s: %s, %s; KubeVirt will: %s\n", x.Node, x.VMI, formatShortTime(x.WaitingSince),
			formatShortTime(x.LastAskedAt), x.Blocker, x.Reason, x.Next)
	}
	for _, g := range d.Gaps {
		fmt.Fprintf(b, "gap of %s: %s to %s %s\n", g.Source, formatShortTime(g.OpenedAt), formatShortTime(g.ClosedAt), g.Cause)
	}
	for _, l := range d.Timeline {
		fmt.Fprintf(b, "%s %s\n", formatShortTime(l.At), l.Sentence)
	}
}

// madeBy returns who made a migration that belongs to no evacuation.
func madeBy(m trail.Migration) string {
	if m.Requester == "" || m.EvacuationID != nil {
		return ""
	}
	return fmt.Sprintf(", by %s, %s%s", m.Requester, m.RequesterClass, formatSender(m.Impersonator, m.SourceIP))
}

func formatSender(impersonator, from string) string {
	text := ""
	if impersonator != "" {
		text += ", impersonated by " + impersonator
	}
	if from != "" {
		text += ", from " + from
	}
	return text
}

// placementTail returns how the platform ended the guest, where it did.
func placementTail(p trail.Placement) string {
	if !p.EndedBy.ByPlatform() {
		return ""
	}
	return fmt.Sprintf(", ended by %s: %s, %s, %q", p.EndedBy, formatOrDash(p.EndedRequester), formatOrDash(string(p.EndedRequesterClass)), p.EndedDetail)
}

// requestTail returns what only some requests have.
func requestTail(r trail.EvictionRequest) string {
	text := formatSender(r.Impersonator, r.SourceIP)
	if r.RepeatOf != nil {
		text += ", a repeat"
	}
	if r.EvacuationID != nil {
		text += ", of an evacuation"
	}
	if r.DryRun {
		text += ", dry run"
	}
	if r.StatedReason != "" {
		text += fmt.Sprintf(", saying %q", r.StatedReason)
	}
	if r.SeenLate {
		text += ", late"
	}
	return text
}

// formatTimeAfter returns a time after what it says; empty where there is none.
func formatTimeAfter(what string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return what + formatShortTime(at)
}

func formatOrDash(s string) string { return cmp.Or(s, "-") }
