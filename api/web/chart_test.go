package web

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newHourWindow() window {
	return window{From: noon, To: noon.Add(time.Hour), Now: noon.Add(45 * time.Minute)}
}

func TestWindowPlacesMarks(t *testing.T) {
	t.Parallel()
	w := newHourWindow()
	for _, c := range []struct {
		name     string
		from, to time.Duration // after noon; a negative end is not reached
		x, width string        // empty: not drawn
	}{
		{"within", 15 * time.Minute, 30 * time.Minute, "25.000%", "25.000%"},
		{"begins before", -time.Hour, 30 * time.Minute, "0.000%", "50.000%"},
		{"ends after", 30 * time.Minute, 3 * time.Hour, "50.000%", "50.000%"},
		{"goes on: drawn as far as anything is known", 30 * time.Minute, -1, "50.000%", "25.000%"},
		{"over before", -2 * time.Hour, -time.Hour, "", ""},
		{"begins after", 2 * time.Hour, 3 * time.Hour, "", ""},
		{"begins after all that is known", 50 * time.Minute, -1, "83.333%", "0.000%"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			to := noon.Add(c.to)
			if c.to == -1 {
				to = time.Time{}
			}
			var l lane
			l.addMark(w, noon.Add(c.from), to, mark{Shape: shapeBar, Class: "good", Label: "label", Title: "title", Href: "/facts"})
			if c.x == "" {
				require.Empty(t, l.Marks)
				return
			}
			require.Len(t, l.Marks, 1)
			m := l.Marks[0]
			require.Equal(t, []string{c.x, c.width, "title", "/facts"}, []string{m.X, m.W, m.Title, m.Href})
			require.Equal(t, c.width != "0.000%", m.Label == "label", "a label that does not fit is left out")
		})
	}
	var flags lane
	for _, at := range []time.Duration{-time.Second, 0, time.Hour, time.Hour + time.Second} {
		flags.addMark(w, noon.Add(at), noon.Add(at), mark{Shape: shapeFlag, Class: "drain"})
	}
	require.Len(t, flags.Marks, 2, "a moment is drawn where it lies within")
}

func TestLabelsAreNotCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lasts time.Duration
		want  string
	}{
		{"all of it fits", 10 * time.Minute, "12 ✗"}, {"the sign fits", time.Minute, "✗"}, {"nothing fits", 10 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l lane
			l.addMark(newHourWindow(), noon, noon.Add(c.lasts), mark{Shape: shapeBar, Label: "12 ✗", Short: "✗"})
			require.Equal(t, c.want, l.Marks[0].Label)
		})
	}
}

func TestTicksAreFewAndEasy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		span time.Duration
		want string
	}{
		{10 * time.Second, "12:00:05"},
		{time.Minute, "12:00:15 12:00:30 12:00:45"},
		{13 * time.Minute, "12:05 12:10"},
		{time.Hour, "12:15 12:30 12:45"},
		{21 * time.Minute, "12:05 12:10 12:15 -"}, // the last would be cut
		{26 * time.Hour, "Nov 21 18:00 Nov 22 00:00 Nov 22 06:00 -"},
		{31 * 24 * time.Hour, "- Nov 30 Dec 7 Dec 14 -"},
	} {
		w := window{From: noon, To: noon.Add(c.span)}
		var texts []string
		for _, tick := range w.buildTicks() {
			texts = append(texts, cmp.Or(tick.Text, "-"))
		}
		require.Equal(t, c.want, strings.Join(texts, " "), c.span)
	}
}

func TestSpansAreSaidInTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min 30 s", 11 * time.Minute: "11 min", 90 * time.Minute: "1 h 30 min",
		47 * time.Hour: "47 h 0 min", 50 * time.Hour: "2 d 2 h",
	} {
		require.Equal(t, want, formatSpan(d))
	}
}

func TestAdviceIsParted(t *testing.T) {
	t.Parallel()
	require.Equal(t, []block{{"Cancel it:", false}, {"kubectl a\nkubectl b", true}, {"Or wait.", false}},
		parseParagraphs("Cancel it:\n  kubectl a\n  kubectl b\n\nOr wait."))
	require.Empty(t, parseParagraphs(""))
}

func TestProseIsParted(t *testing.T) {
	t.Parallel()
	require.Equal(t, []span{{Text: "Set it up: "}, {Text: "evictrail run", Code: true}, {Text: ", then "}, {Text: "docs/audit.md", Href: documents + "docs/audit.md"}, {Text: "."}},
		splitProse("Set it up: `evictrail run`, then docs/audit.md."))
	require.Empty(t, splitProse(""))
}
