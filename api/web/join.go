package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The bounds of the marks of one kind on a lane: where there are more, the newest are kept and the others are joined into bands.
const (
	marksKept = 300
	bandsKept = 60 // of the marks that are kept, at most
)

// joinWithin is the share of a window within which neighbours are joined: about what a mark is wide.
const joinWithin = 200

// kind is what a mark is a mark of. Only marks of one kind are joined.
type kind struct{ Shape, Of string }

// joinMarks joins the marks of each lane that do not fit; closer leads to a page that shows a span of time by itself.
func (c *chart) joinMarks(closer func(from, to time.Time) string) {
	for i := range c.Lanes {
		c.Lanes[i].joinMarks(c.window, closer)
	}
}

// joinMarks joins the marks that do not fit, kind by kind.
func (l *lane) joinMarks(w window, closer func(from, to time.Time) string) {
	var order []kind
	byKind := map[kind][]mark{}
	for _, m := range l.Marks {
		k := kind{m.Shape, m.of}
		if byKind[k] == nil {
			order = append(order, k)
		}
		byKind[k] = append(byKind[k], m)
	}
	cut := map[string]int{}
	l.Marks = nil
	for _, k := range order {
		marks := byKind[k]
		if n := len(marks); n > marksKept {
			older := n - marksKept + bandsKept
			slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Or(a.to.Compare(b.to), a.from.Compare(b.from)) })
			for _, b := range bandsOf(marks[:older], w) {
				l.Marks = append(l.Marks, b.drawMark(w, k, closer))
			}
			cut[k.Of] = max(cut[k.Of], older)
			marks = marks[older:]
		}
		l.Marks = append(l.Marks, marks...)
	}
	if len(cut) == 0 {
		return
	}
	var text []string
	for _, of := range slices.Sorted(maps.Keys(cut)) {
		text = append(text, formatCount(cut[of], of))
	}
	l.Text = strings.Join(text, " and ") + " joined into bands: zoom in to see each"
}

// band stands for marks of one kind that lie close to each other.
type band struct {
	from, to time.Time
	count    map[string]int           // of what, each
	lasts    map[string]time.Duration // of each colour
	marks    map[string]int           // of each colour
}

func bandOf(m mark) band {
	return band{m.from, m.to, map[string]int{m.what: 1}, map[string]time.Duration{m.Class: m.to.Sub(m.from)}, map[string]int{m.Class: 1}}
}

// mergeBand adds what another band stands for.
func (b *band) mergeBand(o band) {
	if o.from.Before(b.from) {
		b.from = o.from
	}
	if o.to.After(b.to) {
		b.to = o.to
	}
	for what, n := range o.count {
		b.count[what] += n
	}
	for class, d := range o.lasts {
		b.lasts[class] += d
		b.marks[class] += o.marks[class]
	}
}

// bandsOf joins marks into at most bandsKept bands, in the order of their times. Neighbours of one colour are joined first; where that leaves too many, neighbours of
// any, further and further away from each other. What lies in no band is a time in which nothing happened, as far as the width of a screen can show that.
func bandsOf(marks []mark, w window) []band {
	bands := make([]band, 0, len(marks))
	for _, m := range marks {
		bands = append(bands, bandOf(m))
	}
	slices.SortStableFunc(bands, func(a, b band) int { return a.from.Compare(b.from) })
	within := w.To.Sub(w.From) / joinWithin
	bands = joinNeighbours(bands, within, true)
	for len(bands) > bandsKept {
		bands = joinNeighbours(bands, within, false)
		within *= 2
	}
	return bands
}

// joinNeighbours joins each band with those after it that begin within a time of its end: those of its colour alone, or all.
func joinNeighbours(bands []band, within time.Duration, sameColour bool) []band {
	var out []band
	for _, b := range bands {
		if n := len(out); n > 0 && b.from.Sub(out[n-1].to) <= within && (!sameColour || out[n-1].dominantClass() == b.dominantClass()) {
			out[n-1].mergeBand(b)
		} else {
			out = append(out, b)
		}
	}
	return out
}

// dominantClass returns the colour of most of the band's time; of moments, which last for none, that of most of them.
func (b band) dominantClass() string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(b.lasts)), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.lasts[x], b.lasts[y]), cmp.Compare(b.marks[x], b.marks[y]))
	})
}

// formatCounts says how many of what the band stands for, the most first: "245 failed, 3 succeeded".
func (b band) formatCounts() string {
	whats := slices.SortedFunc(maps.Keys(b.count), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.count[y], b.count[x]), cmp.Compare(x, y))
	})
	var text []string
	for _, what := range whats {
		text = append(text, formatCount(b.count[what], what))
	}
	return strings.Join(text, ", ")
}

// drawMark draws the band.
func (b band) drawMark(w window, k kind, closer func(from, to time.Time) string) mark {
	shape := k.Shape
	if shape == shapeFlag || shape == shapeTick {
		shape = shapeMany
	}
	m := w.newSpanMark(shape, b.dominantClass()+" joined", b.from, b.to)
	m.of = k.Of
	counts := b.formatCounts()
	m.Title = fmt.Sprintf("%s, %s to %s", counts, formatTime(b.from), formatTime(b.to))
	if m.Quiet = shape == shapeStrip; !m.Quiet {
		m.Label = counts
		m.fitLabel(w)
	}
	if closer != nil {
		margin := max(shortest-b.to.Sub(b.from), b.to.Sub(b.from)/10)
		m.Href = closer(b.from.Add(-margin/2), b.to.Add(margin/2))
		m.Title += ": look closer"
	}
	return m
}

// formatCount says how many of something there are. what is an adjective, or a noun in the plural.
func formatCount(n int, what string) string {
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	return fmt.Sprintf("%d %s", n, what)
}
