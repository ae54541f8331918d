package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
)

// firingsShown is how many firings of an alert are listed.
const firingsShown = 20

// renderBacktest returns a table of the alerts that would have fired, or of all where some are asked for by name, and
// what it does not say.
func renderBacktest(r *backtest.Answer, named bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Replayed %s from %s to %s, every %s.\n", r.Cluster, trail.FormatClock(r.Since),
		trail.FormatClock(r.Until), r.StepText())
	t := textTable{columns: []tableColumn{
		{head: "ALERT"}, {head: "SEVERITY"}, {head: "WITH"}, {head: "FIRINGS"}, {head: "FIRING IN " +
			"ALL"}, {head: "WITH CAUSE"}, {head: "WITHOUT"},
	}}
	var silent []string
	for _, rule := range r.Rules {
		if !named && !rule.Fires() {
			silent = append(silent, rule.Alert+" ("+rule.Severity+")")
			continue
		}
		for i, v := range rule.Variants {
			cells := []string{
				rule.Alert, rule.Severity, rule.Describe(v), strconv.Itoa(v.Count),
				trail.Age(v.FiringTime()),
				strconv.Itoa(v.WithCause), strconv.Itoa(v.WithoutAny),
			}
			if i > 0 {
				cells[0], cells[1] = "", ""
			}
			t.rows = append(t.rows, tableRow{cells: cells})
		}
	}
	if len(t.rows) > 0 {
		table, _ := t.render(0, false)
		b.WriteString("\n" + table)
	}
	if named {
		for _, rule := range r.Rules {
			b.WriteString(renderFirings(rule, r.Until))
		}
	}
	if len(silent) > 0 {
		b.WriteString("\n" + wrapParagraph("Never fired, with none of the numbers tried: "+strings.Join(silent,
			", ")+".") + "\n")
	}
	b.WriteString(renderNotInHistory(r.MissingReasons()))
	if n := len(r.NotObserved); n > 0 {
		b.WriteString("\n" + wrapParagraph(fmt.Sprintf("%s in this period: what happened then may be missing "+
			"(`evictrail gaps`).",
			trail.FormatCount(n, "gap"))) + "\n")
	}
	return b.String()
}

// renderFirings lists the firings of an alert as it is, each with what stood beside it.
func renderFirings(rule *backtest.RuleReport, until time.Time) string {
	if len(rule.Firings) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s (%s) as it is:\n", rule.Alert, rule.Severity)
	for i, f := range rule.Firings {
		if i == firingsShown {
			fmt.Fprintf(&b, "  and %d more: -o json has all\n", len(rule.Firings)-i)
			break
		}
		lasted := f.EndOr(until).Sub(f.FiredAt)
		line := fmt.Sprintf("%s for %s: %s", trail.FormatClock(f.FiredAt), trail.Age(lasted), f.Subject())
		if len(f.Causes) == 0 {
			line += "; no cause recorded"
		}
		for k, c := range f.Causes {
			if k == 3 {
				line += fmt.Sprintf(" and %d more", len(f.Causes)+f.CausesMore-k)
				break
			}
			line += "; " + c.Describe()
		}
		b.WriteString("  " + cleanText(line) + "\n")
	}
	return b.String()
}

// renderNotInHistory lists the alerts of which nothing is said, with the reasons.
func renderNotInHistory(reasons []backtest.MissingReason) string {
	text := ""
	for _, m := range reasons {
		text += wrapParagraph(strings.Join(m.Alerts, ", ")+": "+m.Reason+".") + "\n"
	}
	if text != "" {
		text = "\nNot in history, so nothing is said of them:\n" + text
	}
	return text
}
