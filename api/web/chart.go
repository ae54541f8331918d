package web

import (
	"cmp"
	"strconv"
	"time"
	"unicode/utf8"
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
	shapeMany  = "many"  // several that happen between X and W later, joined
	shapeBand  = "band"  // lasts, behind everything
)

// mark is one thing on a lane.
type mark struct {
	Shape string
	Class string // says which colour it has
	X, W  string // per cent
	Label string // drawn on it, where it fits
	Short string // drawn in its place where that fits alone
	Title string // said of it
	Href  string // to what it rests on
	Quiet bool   // the keyboard passes over it: another mark beside it leads to the same

	from, to time.Time // what of it lies before Now; equal where it happens at a moment
	of       string    // of what it is a mark, in the plural: "attempts"
	what     string    // what it is counted as where it is joined with others: "failed"
}

// Pattern returns the name of the pattern that is drawn over the mark, by which it is seen how something ended that a trigger caused; empty for none.
func (m mark) Pattern() string { return patternOf(m.Class) }

// patternOf returns the name of the pattern of a class that says by whom something was caused and how it ended; empty for none.
func patternOf(class string) string {
	switch {
	case containsWords(class, "by bad"):
		return "failed"
	case containsWords(class, "by blocked"):
		return "aborted"
	}
	return ""
}

// tick is a time of the axis; without a text where that would be cut.
type tick struct{ X, Text string }

// key explains a colour.
type key struct{ Class, Text string }

func formatPercent(p float64) string { return strconv.FormatFloat(p, 'f', 3, 64) + "%" }

// positionOf returns where a time lies, from 0 to 100, no further than the edges.
func (w window) positionOf(t time.Time) float64 {
	return min(max(float64(t.Sub(w.From))/float64(w.To.Sub(w.From))*100, 0), 100)
}

// overlapsSpan reports whether any part of a span lies in the window; a zero end is not reached yet.
func (w window) overlapsSpan(from, to time.Time) bool {
	return from.Before(w.To) && (to.IsZero() || !to.Before(w.From))
}

// newSpanMark is a mark from one time to another; a zero end is not reached yet.
func (w window) newSpanMark(shape, class string, from, to time.Time) mark {
	if to.IsZero() {
		to = w.Now
	}
	x := w.positionOf(from)
	width := max(w.positionOf(to)-x, 0)
	return mark{Shape: shape, Class: class, X: formatPercent(x), W: formatPercent(width), from: from, to: to}
}

// newPointMark is a mark at one time.
func (w window) newPointMark(shape, class string, at time.Time) mark {
	return mark{Shape: shape, Class: class, X: formatPercent(w.positionOf(at)), from: at, to: at}
}

// addMark puts a mark on a lane where any of it is shown, from one time to another, of which a zero one is not reached yet; flags and ticks are at the first.
// Where the mark lies is computed; the rest of it is kept.
func (l *lane) addMark(w window, from, to time.Time, m mark) {
	point := m.Shape == shapeFlag || m.Shape == shapeTick
	if point && (from.Before(w.From) || from.After(w.To)) || !point && !w.overlapsSpan(from, to) {
		return
	}
	placed := w.newPointMark(m.Shape, m.Class, from)
	if !point {
		placed = w.newSpanMark(m.Shape, m.Class, from, to)
	}
	m.X, m.W, m.from, m.to = placed.X, placed.W, placed.from, placed.to
	m.what = cmp.Or(m.what, m.of)
	m.fitLabel(w)
	m.Quiet = m.Shape == shapeStrip || m.Shape == shapeTick && m.Label == ""
	l.Marks = append(l.Marks, m)
}

// The widths by which a text is drawn or left out. A text that is cut says something else.
const (
	plotWidth  = 1000 // pixels of a lane, on the screen of a desk
	labelWidth = 6    // pixels of a letter on a mark, about
	tickWidth  = 1    // per cent of an axis that half a letter takes, on the screen of a phone
)

// fitLabel leaves out the label of what lasts where the mark is too narrow for it.
func (m *mark) fitLabel(w window) {
	if m.Shape != shapeBar && m.Shape != shapeMany {
		return
	}
	room := int((w.positionOf(m.to)-w.positionOf(m.from))/100*plotWidth) - 6
	for _, text := range []string{m.Label, m.Short} {
		if utf8.RuneCountInString(text)*labelWidth <= room {
			m.Label = text
			return
		}
	}
	m.Label = ""
}

// steps are the distances that ticks may have.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// ticksWanted is about how many ticks fit the narrowest screen.
const ticksWanted = 5

// buildTicks returns times that are easy to read, at most some more than wanted.
func (w window) buildTicks() []tick {
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
		x, text := w.positionOf(t), t.UTC().Format(form)
		if edge := float64(len(text) * tickWidth); x < edge || x > 100-edge {
			text = ""
		}
		out = append(out, tick{formatPercent(x), text})
	}
	return out
}
