package web

import (
	"fmt"
	"strconv"
	"time"
)

// chart is lanes over one span of time. Places along it are per cent of its width, so that it fits every screen.
type chart struct {
	Title string // for those who cannot see it
	window
	Lanes  []lane
	Bands  []mark // behind all lanes
	Ticks  []tick
	Legend []key
	Range  timeRange
	More   int // lanes that are left out
}

// window is the span of time that is shown.
type window struct {
	From time.Time
	To   time.Time
	Now  time.Time // up to which anything is known; what goes on is drawn until then
}

// lane is one row of a chart.
type lane struct {
	Name  string
	Href  string // of what it is about; empty: of nothing that has a page
	Note  string // below the name
	Class string
	Marks []mark
	Text  string // all of it in words, where marks are left out
}

// The shapes of marks.
const (
	shapeBar   = "bar"   // lasts from X for W
	shapeStrip = "strip" // the same, thin, below bars
	shapeFlag  = "flag"  // happens at X
	shapeTick  = "tick"  // the same, without a flag
	shapeBand  = "band"  // lasts, behind everything
)

// mark is one thing on a lane.
type mark struct {
	Shape string
	Class string // says which colour it has
	X, W  string // per cent
	Label string // drawn on it
	Title string // said of it
	Href  string // to what it rests on
	Quiet bool   // the keyboard passes over it: another mark beside it leads to the same
}

type tick struct{ X, Text string }

// key explains a colour.
type key struct{ Class, Text string }

// marksKept bounds the marks of one lane: a longer span of time shows the first of them, and says so.
const marksKept = 300

func percent(p float64) string { return strconv.FormatFloat(p, 'f', 3, 64) + "%" }

// at gives where a time lies, from 0 to 100, no further than the edges.
func (w window) at(t time.Time) float64 {
	return min(max(float64(t.Sub(w.From))/float64(w.To.Sub(w.From))*100, 0), 100)
}

// shows tells whether any part of a span lies in the window; a zero end is not reached yet.
func (w window) shows(from, to time.Time) bool {
	return from.Before(w.To) && (to.IsZero() || !to.Before(w.From))
}

// lasting is a mark from one time to another; a zero end is not reached yet.
func (w window) lasting(shape, class string, from, to time.Time) mark {
	if to.IsZero() {
		to = w.Now
	}
	x := w.at(from)
	return mark{Shape: shape, Class: class, X: percent(x), W: percent(max(w.at(to)-x, 0))}
}

// moment is a mark at one time.
func (w window) moment(shape, class string, at time.Time) mark {
	return mark{Shape: shape, Class: class, X: percent(w.at(at))}
}

// add puts a mark on a lane where any of it is shown; it keeps the title, the label and the address that it is given.
func (l *lane) add(w window, shape, class string, from, to time.Time, label, title, href string) {
	point := shape == shapeFlag || shape == shapeTick
	if point && (from.Before(w.From) || from.After(w.To)) || !point && !w.shows(from, to) {
		return
	}
	if len(l.Marks) == marksKept {
		l.Text = fmt.Sprintf("only the first %d marks are drawn: look at less time", marksKept)
		return
	}
	m := w.moment(shape, class, from)
	if !point {
		m = w.lasting(shape, class, from, to)
	}
	m.Label, m.Title, m.Href, m.Quiet = label, title, href, shape == shapeStrip || shape == shapeTick && label == ""
	l.Marks = append(l.Marks, m)
}

// steps are the distances that ticks may have.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// ticksWanted is about how many ticks fit the narrowest screen.
const ticksWanted = 5

// ticks gives times that are easy to read, at most some more than wanted.
func (w window) ticks() []tick {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if w.To.Sub(w.From)/s <= ticksWanted {
			step = s
			break
		}
	}
	form := "15:04"
	switch {
	case step < time.Minute:
		form = "15:04:05"
	case step >= 24*time.Hour:
		form = "Jan 2"
	case w.To.Sub(w.From) > 24*time.Hour:
		form = "Jan 2 15:04"
	}
	var out []tick
	for t := w.From.Truncate(step).Add(step); t.Before(w.To); t = t.Add(step) {
		if p := w.at(t); p > 3 && p < 97 { // a text at the edge would be cut
			out = append(out, tick{percent(p), t.UTC().Format(form)})
		}
	}
	return out
}
