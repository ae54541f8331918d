package trail

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// nodeLookback is how long before its moment an answer about a node begins, where no drain and no loop is older.
const nodeLookback = 24 * time.Hour

// WhyNode answers why VMs left a node, or are to leave it: its last drain, the evacuations since then, the loops that it is part of, and how many VMs are
// there. Of VMs that may not be seen there are numbers and no names.
func (c *Cluster) WhyNode(name string) Answer {
	a, d, from := Answer{Node: name, AsOf: c.Now}, c.Node(name), c.Now.Add(-nodeLookback)
	text := []string{"Nobody was seen to drain it."}
	if n := len(d.Drains); n > 0 {
		last := d.Drains[n-1]
		text, from = last.renderStory(c.Now), last.StartedAt
	}
	there := len(c.findNodeGuests(name))
	text = append(text, c.evacuatedFrom(name, from), fmt.Sprintf("%s %s there now.", FormatCount(there, "VM"), isOrAre(there)))
	for _, l := range c.LoopsAt(name) {
		switch {
		case l.Open():
			text = append(text, fmt.Sprintf("%s, open since %s: %s", UpperFirst(l.Name()), FormatClock(l.OpenedAt), l.Summary))
			a.Advice = cmp.Or(a.Advice, l.Advice)
		case !l.ClosedAt.Before(from) && l.ClosedBy != LoopBecameDualRetry:
			text = append(text, fmt.Sprintf("%s, from %s to %s: %s", UpperFirst(l.Name()), FormatClock(l.OpenedAt), FormatClock(l.ClosedAt), l.Summary))
		}
	}
	a.Paragraph = name + ": " + strings.Join(nonEmpty(text), " ")
	for _, l := range d.Timeline {
		if !l.At.Before(from.Truncate(time.Second)) {
			a.Evidence = append(a.Evidence, l)
		}
	}
	return a
}

// renderStory returns a drain: who began it, and how far it is or how it ended.
func (d Drain) renderStory(now time.Time) []string {
	began := fmt.Sprintf("At %s %s %s", FormatClock(d.StartedAt), d.formatRequester(), d.describeStart())
	if d.Outcome == "" {
		lasts := formatSpan(now.Sub(d.StartedAt))
		return []string{began, fmt.Sprintf("It goes on: %d of %s %s left after %s.", d.VMIsLeft, FormatCount(d.VMIsTotal, "VM"), isOrAre(d.VMIsLeft), lasts)}
	}
	return []string{began, d.renderClosing()}
}

// evacuatedFrom counts the evacuations from a node that began at a time or later, by how they ended; empty where there were none.
func (c *Cluster) evacuatedFrom(node string, from time.Time) string {
	all, count := 0, map[Outcome]int{}
	for s, d := range c.Rows {
		if s.Kind != SubjectVMI {
			continue
		}
		for _, e := range d.Evacuations {
			if e.Node == node && !e.MarkedAt.Before(from) {
				all++
				count[e.Outcome]++
			}
		}
	}
	if all == 0 {
		return ""
	}
	var parts []string
	for _, of := range []struct {
		outcome Outcome
		text    string
	}{{"", "open"}, {OutcomeMigrated, "migrated"}, {OutcomeCancelled, "cancelled"}, {OutcomeVMIGone, "ended with the VMI"}} {
		if n := count[of.outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, of.text))
		}
	}
	return fmt.Sprintf("Since %s KubeVirt marked %s to leave it: %s.", FormatClock(from), FormatCount(all, "VM"), strings.Join(parts, ", "))
}
