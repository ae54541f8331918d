package web

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// timeRange lets a visitor move along the time and look closer, by links and by a form.
type timeRange struct {
	In, Out, Earlier, Later, Whole string // addresses
	Hidden                         []hidden
}

// hidden is a parameter of the page that the form keeps.
type hidden struct{ Name, Value string }

// shortest is the least span of time that a chart shows.
const shortest = 10 * time.Second

// parseTimeParam reads a time among the parameters, UTC where it names no zone; zero where it is not given.
func (v *visit) parseTimeParam(name string) (time.Time, error) {
	t, err := trail.ParseTime(v.param(name), v.asked)
	if err != nil {
		return t, fmt.Errorf("%w: %s=%w", errBadQuestion, name, err)
	}
	return t, nil
}

// parseWindow reads which span of time is to be shown; without parameters it is the one given, widened a little, and no shorter than a minute.
func (v *visit) parseWindow(from, to, now time.Time) (window, error) {
	asked, err := v.parseTimeParam("from")
	if err != nil {
		return window{}, err
	}
	until, err := v.parseTimeParam("to")
	if err != nil {
		return window{}, err
	}
	if to.IsZero() {
		to = now
	}
	margin := max(to.Sub(from)/30, 2*time.Second)
	w := window{From: from.Add(-margin), To: to.Add(margin), Now: now}
	if w.To.Sub(w.From) < time.Minute {
		w.From = w.To.Add(-time.Minute)
	}
	if !asked.IsZero() {
		w.From = asked
	}
	if !until.IsZero() {
		w.To = until
	}
	if w.To.Sub(w.From) < shortest {
		return w, fmt.Errorf("%w: from %s to %s: expected at least %s", errBadQuestion, formatTime(w.From), formatTime(w.To), shortest)
	}
	return w, nil
}

// rangeOf returns the ways from one window to others.
func (v *visit) rangeOf(w window) timeRange {
	to := v.linkToSpan
	d := w.To.Sub(w.From)
	r := timeRange{
		Out: to(w.From.Add(-d/2), w.To.Add(d/2)), Earlier: to(w.From.Add(-d/2), w.To.Add(-d/2)), Later: to(w.From.Add(d/2), w.To.Add(d/2)),
		Whole: v.linkWith("from", "", "to", ""),
	}
	if d >= 2*shortest {
		r.In = to(w.From.Add(d/4), w.To.Add(-d/4))
	}
	r.Hidden = v.hiddenWithout("from", "to", zoneParam)
	return r
}

// linkToSpan returns the address of this page with another span of time.
func (v *visit) linkToSpan(from, to time.Time) string {
	return v.linkWith("from", formatTimestamp(from), "to", formatTimestamp(to))
}

func formatTimestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }
