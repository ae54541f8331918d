package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// whatIfBody is the form, and what came of it.
type whatIfBody struct {
	Since, Until, Other, Sweep string // as they were typed
	Proposals                  []proposal
	Words                      []string
	Problem                    string // what is wrong with what was typed; empty: nothing
	Nothing                    string // why there is no answer; empty: there is one, or nothing was asked
	Answer                     *whatif.Answer
	Others                     []whatif.Result // of the policies that are not of the sweep
	Swept                      []whatif.Result
	Curve                      curve
	Unknown                    []untold
}

// proposal is a policy that can be ticked.
type proposal struct {
	Name, About string
	Ticked      bool
}

// untold is something that the history does not show, and how often with which policy.
type untold struct{ Text, Counts string }

var proposalAbout = map[string]string{
	"keep-mark": "the in-progress mark stays on the pod until the evacuation ends", "try-once": "KubeVirt tries an eviction of the descheduler once",
	"give-up-after=3": "KubeVirt gives up any evacuation after three attempts", "cooldown=off": "the descheduler has no cooldown",
}

// policiesTicked are those that can be ticked.
var policiesTicked = []string{"keep-mark", "try-once", "give-up-after=3", "cooldown=off"}

func whatIfPage(v *visit) error {
	v.Title = "What if"
	if v.Cluster == "" && len(v.Clusters) == 1 {
		v.Cluster = v.Clusters[0].Name
	}
	b := whatIfBody{Since: v.param("since"), Until: v.param("until"), Other: v.param("other"), Sweep: v.param("sweep"), Words: whatif.Words()}
	ticked := v.URL.Query()["policy"]
	for _, name := range policiesTicked {
		b.Proposals = append(b.Proposals, proposal{name, proposalAbout[name], slices.Contains(ticked, name)})
	}
	status := http.StatusOK
	if len(ticked) > 0 || b.Other != "" || b.Sweep != "" {
		q, err := b.parseQuestion(v, ticked)
		if err != nil {
			b.Problem, status = err.Error(), http.StatusBadRequest
		} else if err := b.loadAnswer(v, q); err != nil {
			return err
		}
	}
	v.Content = b
	return v.renderPage("whatif", status)
}

// parseQuestion reads the form.
func (b *whatIfBody) parseQuestion(v *visit, policies []string) (whatif.Question, error) {
	now := time.Now().UTC()
	q := whatif.Question{Cluster: v.Cluster, Namespace: v.param("namespace"), Node: v.param("node")}
	var err error
	if q.Since, err = trail.ParseTime(b.Since, now); err != nil {
		return q, fmt.Errorf("from: %w", err)
	}
	if q.Until, err = trail.ParseTime(b.Until, now); err != nil {
		return q, fmt.Errorf("to: %w", err)
	}
	if b.Other != "" {
		policies = append(policies, strings.Split(b.Other, ";")...)
	}
	if q.Policies, err = whatif.ParsePolicies(policies); err != nil {
		return q, err
	}
	if b.Sweep != "" {
		s, err := whatif.ParseSweep(b.Sweep, whatif.Policy{})
		if err != nil {
			return q, err
		}
		q.Sweep = &s
	}
	return q, q.Bound(now)
}

// loadAnswer gets the answer. That nothing is found is one, too.
func (b *whatIfBody) loadAnswer(v *visit, q whatif.Question) error {
	a, err := v.reader.WhatIf(v.Context(), q)
	switch {
	case errors.Is(err, trail.ErrNotFound):
		b.Nothing = "No evacuation began in that time: there is nothing that a policy could have changed. Choose a longer time."
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		b.Nothing = "Replaying that took too long. Choose less time or fewer policies, or ask `evictrail whatif` on the command line, which waits."
		return nil
	case err != nil:
		return err
	}
	v.Cluster, v.AsOf = a.Cluster, a.Until
	b.Answer = &a
	b.Others, b.Swept = a.Swept()
	b.Curve = curveOf(a.SweepOf, b.Swept)
	texts := map[whatif.UnknownReason]int{}
	for i := range b.Others {
		for _, u := range b.Others[i].Unknown {
			at, known := texts[u.Reason]
			if !known {
				at = len(b.Unknown)
				texts[u.Reason] = at
				b.Unknown = append(b.Unknown, untold{Text: u.Text})
			}
			b.Unknown[at].Counts = strings.TrimPrefix(fmt.Sprintf("%s, %d with %s", b.Unknown[at].Counts, u.Count, b.Others[i].Name), ", ")
		}
	}
	return nil
}

// curve is the trade-off of a sweep: what is saved, against how long evictions wait, over the setting. Each line is as high as its own most.
type curve struct {
	Of          string
	Saved, Wait curveLine
	Ticks       []tick
}

// curveLine is one line of a curve: places are per cent of the plot.
type curveLine struct {
	Most   string
	Points string // of a polyline, in a plot of 100 by 100
	Dots   []dot
}

type dot struct{ X, Y, Title string }

// curveOf draws a sweep. It has two points at least; without any it is empty.
func curveOf(of string, swept []whatif.Result) curve {
	c := curve{Of: of}
	if len(swept) < 2 {
		return c
	}
	first, last := swept[0].Value, swept[len(swept)-1].Value
	draw := func(value func(*whatif.Result) float64, text func(*whatif.Result) string) (l curveLine) {
		most := 0.0
		for i := range swept {
			if y := value(&swept[i]); y > most {
				most, l.Most = y, text(&swept[i])
			}
		}
		for i := range swept {
			r := &swept[i]
			x, y := 4+92*(r.Value-first)/(last-first), 96.0
			if most > 0 {
				y = 96 - 88*value(r)/most
			}
			l.Points += fmt.Sprintf("%.2f,%.2f ", x, y)
			l.Dots = append(l.Dots, dot{formatPercent(x), formatPercent(y), r.Name + ": " + text(r)})
		}
		return l
	}
	c.Saved = draw(func(r *whatif.Result) float64 { return float64(r.MigrationsSaved) },
		func(r *whatif.Result) string {
			return fmt.Sprintf("%d migration%s saved", r.MigrationsSaved, pluralSuffix(r.MigrationsSaved))
		})
	c.Wait = draw(func(r *whatif.Result) float64 { return r.WaitMean().Seconds() },
		func(r *whatif.Result) string { return formatSpan(r.WaitMean()) + " of waiting on average" })
	every := (len(swept) + ticksWanted - 1) / ticksWanted
	for i := 0; i < len(swept); i += every {
		x := 4 + 92*(swept[i].Value-first)/(last-first)
		c.Ticks = append(c.Ticks, tick{formatPercent(x), settingText(of, &swept[i])})
	}
	return c
}

// settingText writes the value of the setting that was swept.
func settingText(of string, r *whatif.Result) string {
	for _, word := range strings.Fields(r.Name) {
		if value, found := strings.CutPrefix(word, of+"="); found {
			return value
		}
	}
	return ""
}
