package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
)

// backtestPath is the page that tries alerts on history.
const backtestPath = "/backtest"

// besideBacktest leads to that page from others, which add their cluster.
var besideBacktest = choice{"How often would alerts have fired?", backtestPath}

// firingsShown is how many firings of an alert are listed.
const firingsShown = 50

// backtestBody is the form, and what came of it.
type backtestBody struct {
	Hidden  bool // to a visitor who sees some namespaces alone: alerts speak of the whole cluster
	Fields  []listField
	Problem string // what is wrong with what was typed; empty: nothing
	Nothing string // why there is no answer; empty: there is one, or nothing was asked
	Answer  *backtest.Answer
	Rules   []triedRule // that are shown
	Silent  []triedRule // that would never have fired, with none of the numbers tried
	Named   bool        // alerts were asked for by name: all are shown, with their firings
	Notes   []string    // what may be missing in it
	Command string      // that asks the same
	JSON    string      // address at which the API answers the same
}

// triedRule is what came of an alert.
type triedRule struct {
	*backtest.RuleReport
	Href    string // of its firings
	Firings []shownFiring
	More    int // firings that are only counted
}

// shownFiring is a firing with what it is about, and what stood beside it.
type shownFiring struct {
	backtest.Firing
	Lasted time.Duration
	About  []linked
	Beside []linked
}

// linked is a name or a few words with what they lead to.
type linked struct{ Before, Text, Href string }

// backtestPage says how often alerts would have fired, as the command does. It replays only when the form was sent:
// that can take long.
func backtestPage(v *visit) error {
	v.Title = "Alerts tried on history"
	if v.leadToTidyAddress() {
		return nil
	}
	b, status := &backtestBody{Hidden: v.limited}, http.StatusOK
	values := dropAppearance(v.URL.Query())
	if asked := len(values) > 1 || len(values) == 1 && !values.Has("cluster"); asked && !b.Hidden {
		q, err := v.site.ParseBacktest(values.Encode(), v.asked)
		if err != nil {
			b.Problem, status = trail.UpperFirst(err.Error())+".", http.StatusBadRequest
		} else if err := b.loadAnswer(v, q, values); err != nil {
			return err
		}
	}
	b.addFields(v)
	v.Content = b
	return v.renderPage("backtest", status)
}

// addFields adds the form, with what was typed.
func (b *backtestBody) addFields(v *visit) {
	rule := listField{Name: "rule", Label: "Alert", Options: []listOption{{"", "all", v.param("rule") == ""}}}
	known := v.param("rule") == ""
	for _, name := range alerts.ListNames(alerts.Groups(alerts.DefaultOptions())) {
		rule.Options = append(rule.Options, listOption{name, name, name == v.param("rule")})
		known = known || name == v.param("rule")
	}
	if !known {
		rule.Options = append(rule.Options, listOption{v.param("rule"), v.param("rule"), true})
	}
	step := v.param("step")
	if step == "" {
		step = model.Duration(backtest.UsualStep).String() // is sent, so that a form that was sent asks
	}
	b.Fields = append(v.clusterField(), rule,
		listField{Name: "since", Label: "Since", Value: v.param("since"), Hint: "7d"},
		listField{Name: "until", Label: "Until", Value: v.param("until"), Hint: "now"},
		listField{Name: "threshold", Label: "Other thresholds", Value: v.param("threshold"), Hint: "2100=3600"},
		listField{Name: "for", Label: "Other for", Value: v.param("for"), Hint: "0s,10m"},
		listField{Name: "step", Label: "Scrape interval", Value: step},
	)
	if target := v.param("evacuation-target"); target != "" {
		b.Fields = append(b.Fields, listField{
			Name: "evacuation-target", Label: "Evacuation target, in percent", Value: target,
		})
	}
}

// loadAnswer gets the answer. That nothing is found is one, too.
func (b *backtestBody) loadAnswer(v *visit, q backtest.Question, values url.Values) error {
	b.JSON = "/api/v1/alerts/backtest?" + values.Encode()
	a, err := v.reader.Backtest(v.Context(), q)
	b.Command = formatBacktestCommand(values, cmp.Or(a.Until, q.Until))
	switch {
	case errors.Is(err, trail.ErrNotFound) && v.checkCluster() == nil:
		b.Nothing = "Nothing was recorded in that time. Choose another."
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		b.Nothing = "Replaying that took too long. Choose one alert or less time, or ask the command, which waits: `" +
			b.Command + "`"
		return nil
	case err != nil:
		return err
	}
	v.Cluster, v.AsOf = a.Cluster, a.Until
	b.Answer, b.Named = &a, len(q.Rules) > 0
	for _, r := range a.Rules {
		tried := triedRule{RuleReport: r, Href: v.linkWith("rule", r.Alert, "threshold", "", "for", "", "cluster", a.Cluster)}
		if !r.Fires() && !b.Named {
			b.Silent = append(b.Silent, tried)
			continue
		}
		if b.Named {
			tried.showFirings(&a)
		}
		b.Rules = append(b.Rules, tried)
	}
	b.Notes = trail.DescribeRecording(nil, a.NotObserved)
	return nil
}

// showFirings lays out the first firings of the alert as it is.
func (t *triedRule) showFirings(a *backtest.Answer) {
	for i, f := range t.RuleReport.Firings {
		if i == firingsShown {
			t.More = len(t.RuleReport.Firings) - i
			return
		}
		shown := shownFiring{Firing: f, Lasted: f.EndOr(a.Until).Sub(f.FiredAt), About: listAbout(a.Cluster, f)}
		for _, c := range f.Causes {
			shown.Beside = append(shown.Beside, labelCause(a.Cluster, f, c))
		}
		t.Firings = append(t.Firings, shown)
	}
}

// listAbout returns the labels of a firing in order; its VM and its node lead to their pages as of then.
func listAbout(cluster string, f backtest.Firing) (out []linked) {
	namespace, vm := f.VM()
	if namespace != "" && vm != "" {
		of := trail.VMISubject(namespace, vm)
		out = append(out, linked{"VM ", namespace + "/" + vm, PageOf(cluster, of, f.FiredAt)})
	}
	if node := f.Node(); node != "" {
		of := trail.Subject{Kind: trail.SubjectNode, Name: node}
		out = append(out, linked{"node ", node, PageOf(cluster, of, f.FiredAt)})
	}
	if other := f.OtherLabels(); other != "" {
		out = append(out, linked{Text: other})
	}
	if len(out) == 0 {
		out = append(out, linked{Text: "the cluster"})
	}
	return out
}

// labelCause returns a cause with the page of its VM or node, as of when it began.
func labelCause(cluster string, f backtest.Firing, c backtest.Cause) linked {
	out := linked{Before: c.Describe()}
	switch {
	case c.VMI != "":
		out.Before, out.Text = out.Before+", VM ", c.Namespace+"/"+c.VMI
		out.Href = PageOf(cluster, trail.VMISubject(c.Namespace, c.VMI), f.FiredAt)
	case c.Node != "":
		out.Before, out.Text = out.Before+", node ", c.Node
		out.Href = PageOf(cluster, trail.Subject{Kind: trail.SubjectNode, Name: c.Node}, f.FiredAt)
	}
	return out
}

// formatBacktestCommand writes the command that asks the same of a period that ends then; zero: now. Where none is
// named the command replays more than a week.
func formatBacktestCommand(values url.Values, until time.Time) string {
	text := "evictrail alerts backtest"
	values = maps.Clone(values)
	switch {
	case values.Has("since"):
	case until.IsZero():
		values.Set("since", fmt.Sprintf("%dd", backtest.UsualPeriod/(24*time.Hour)))
	default:
		values.Set("since", until.Add(-backtest.UsualPeriod).UTC().Format(time.RFC3339Nano))
	}
	for _, name := range []string{"cluster", "since", "until", "rule", "threshold", "for", "step", "evacuation-target"} {
		if value := values.Get(name); value != "" {
			text += fmt.Sprintf(" --%s %s", name, quoteWord(value))
		}
	}
	return text
}

// quoteWord quotes what a shell would not read as one word.
func quoteWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:=/+@"
	if strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
