package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// formatCloserHref is the address of a page that shows a span of time.
func formatCloserHref(from, to time.Time) string {
	return "/?from=" + formatTimestamp(from) + "&to=" + formatTimestamp(to)
}

// newDayWindow is a window of a day that began at noon, and is over.
func newDayWindow() window {
	return window{From: noon, To: noon.Add(24 * time.Hour), Now: noon.Add(24 * time.Hour)}
}

// drawRetries draws a lane with so many failed attempts, one every few minutes, over a whole window.
func drawRetries(w window, n int) lane {
	var l lane
	d := draft{window: w, cluster: &trail.Cluster{Name: "c"}, closer: formatCloserHref}
	each := w.To.Sub(w.From) / time.Duration(n)
	for i := range n {
		at := w.From.Add(time.Duration(i) * each)
		d.drawMigration(&l, trail.Migration{
			Name: fmt.Sprint("m-", i), Attempt: i + 1, CreatedAt: at, FinishedAt: at.Add(each / 2), Outcome: trail.OutcomeFailed,
			Phases: []trail.PhaseTime{
				{Phase: trail.PhasePending, At: at}, {Phase: trail.PhaseScheduling, At: at.Add(each / 8)}, {Phase: trail.PhaseRunning, At: at.Add(each / 4)},
			},
		})
	}
	return l
}

// TestLanesThatFitAreLeft joins nothing of 245 attempts: their phases, of which there are more, take no place from them.
func TestLanesThatFitAreLeft(t *testing.T) {
	t.Parallel()
	l := drawRetries(newDayWindow(), 245)
	l.joinMarks(newDayWindow(), formatCloserHref)
	require.Equal(t, 245, marksOf(l, shapeBar))
	require.LessOrEqual(t, marksOf(l, shapeStrip), marksKept)
	require.Contains(t, l.Text, "phases joined into bands")
	requireNoWhite(t, newDayWindow(), l, shapeStrip)
}

func TestLanesJoinWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, n := range []int{301, 738, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := drawRetries(newDayWindow(), n)
			c := chart{window: newDayWindow(), Lanes: []lane{l}}
			c.joinMarks(formatCloserHref)
			l = c.Lanes[0]
			require.LessOrEqual(t, marksOf(l, shapeBar), marksKept)
			c.explainMarks()
			require.Contains(t, c.Legend, key{"joined", "several, joined"})
			requireNoWhite(t, newDayWindow(), l, shapeBar)

			joined, last := n-marksKept+bandsKept, l.Marks[0]
			counted := 0
			for _, m := range l.Marks {
				if m.Shape == shapeBar && strings.HasSuffix(m.Class, " joined") {
					require.Equal(t, "by unknown bad joined", m.Class)
					var some int
					_, err := fmt.Sscanf(m.Title, "%d failed, ", &some)
					require.NoError(t, err, m.Title)
					counted += some
					require.Contains(t, m.Href, "/?from=2026-11-2", "it leads closer")
				}
				if m.Shape == shapeBar && m.to.After(last.to) {
					last = m
				}
			}
			require.Equal(t, joined, counted, "each is counted")
			require.Contains(t, last.Title, fmt.Sprintf("Attempt %d,", n), "the newest is kept")
			require.Contains(t, l.Text, fmt.Sprintf("%d migrations", joined))
		})
	}
}

// TestBandsKeepApart joins neither colours, as long as they are few, nor what lies far from each other.
func TestBandsKeepApart(t *testing.T) {
	t.Parallel()
	w := newDayWindow()
	var l lane
	for i := range 600 {
		at, m := noon.Add(time.Duration(i)*time.Minute), mark{Shape: shapeBar, Class: "bad", of: "migrations", what: "failed"}
		if i == 100 {
			m.Class, m.what = "good", "succeeded"
		}
		if i >= 200 {
			at = at.Add(3 * time.Hour)
		}
		l.addMark(w, at, at.Add(30*time.Second), m)
	}
	l.joinMarks(w, formatCloserHref)
	var bands []string
	for _, m := range l.Marks {
		if strings.HasSuffix(m.Class, " joined") {
			bands = append(bands, m.Class+": "+strings.TrimSuffix(m.Title, ": look closer"))
		}
	}
	require.Equal(t, []string{
		"bad joined: 100 failed, 2026-11-21 12:00:00 to 2026-11-21 13:39:30",
		"good joined: 1 succeeded, 2026-11-21 13:40:00 to 2026-11-21 13:40:30",
		"bad joined: 99 failed, 2026-11-21 13:41:00 to 2026-11-21 15:19:30",
		"bad joined: 160 failed, 2026-11-21 18:20:00 to 2026-11-21 20:59:30",
	}, bands)
	require.Equal(t, "100 failed", l.Marks[0].Label)
}

// TestFlagsAreJoined joins moments: what they come to lasts.
func TestFlagsAreJoined(t *testing.T) {
	t.Parallel()
	w := newDayWindow()
	var l lane
	d := draft{window: w, cluster: &trail.Cluster{Name: "c"}}
	for i := range 1000 {
		d.drawRequest(&l, trail.EvictionRequest{RequestedAt: noon.Add(time.Duration(i) * time.Minute), RequesterClass: trail.RequesterDescheduler, Answer: trail.AnswerMarked})
	}
	l.joinMarks(w, formatCloserHref)
	require.Equal(t, "760 requests", l.Marks[0].Label)
	require.Equal(t, shapeMany, l.Marks[0].Shape)
	require.Equal(t, marksKept-bandsKept, marksOf(l, shapeFlag))
}

func marksOf(l lane, shape string) int {
	n := 0
	for _, m := range l.Marks {
		if m.Shape == shape {
			n++
		}
	}
	return n
}

// requireNoWhite requires that marks cover each hour of a window.
func requireNoWhite(t *testing.T, w window, l lane, shape string) {
	t.Helper()
	for at := w.From; at.Before(w.To); at = at.Add(time.Hour) {
		covered := false
		for _, m := range l.Marks {
			covered = covered || m.Shape == shape && m.from.Before(at.Add(time.Hour)) && m.to.After(at)
		}
		require.True(t, covered, "white from %s on", at)
	}
}
