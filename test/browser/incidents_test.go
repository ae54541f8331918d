package browser_test

import (
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/store/storetest"
)

// listIncidents lists the recordings.
func listIncidents(t *testing.T) []string {
	t.Helper()
	folders, err := fs.ReadDir(evictrail.Recordings(), ".")
	require.NoError(t, err)
	var out []string
	for _, f := range folders {
		if f.IsDir() {
			out = append(out, f.Name())
		}
	}
	require.NotEmpty(t, out)
	return out
}

// scripts are a visitor with JavaScript and one without.
var scripts = map[string]look{"with JavaScript": desk, "without JavaScript": {width: desk.width, height: desk.height, noScript: true}}

// TestIncidents goes by clicks from the front page of each incident to what it is about, and from there to the facts.
func TestIncidents(t *testing.T) {
	t.Parallel()
	for i, name := range listIncidents(t) {
		for with, l := range scripts {
			if l.noScript && storetest.Count(i%3, 0) != 0 { // every third in the short form, all in the long one
				continue
			}
			t.Run(name+"/"+with, func(t *testing.T) {
				t.Parallel()
				b := newTab(t, site, l)
				b.openPage("/?cluster=" + name)
				require.Equal(t, name, b.elementText("h1"))
				b.toVM()
				require.Contains(t, b.currentURL().Path, "/vms/")
				b.checkZoomLinks()
				if !l.noScript {
					b.zoomByHand()
				}
				b.toFact()
				b.followLink(`h1 a`)
				b.followLink(`.lane.node .name a`)
				require.Contains(t, b.currentURL().Path, "/nodes/")
				b.checkZoomLinks()
				b.toFact()
			})
		}
	}
}

// toVM follows a loop to its VM where the front page has one, open or closed, and otherwise what is stuck, held back or found.
func (b *tab) toVM() {
	b.Helper()
	const open, closed = `.incident dd a[href^="/loops/"]`, `[aria-labelledby=lately] a[href^="/loops/"]`
	switch {
	case b.hasElement(open), b.hasElement(closed):
		b.followLink(open + "," + closed)
		require.Contains(b, b.currentURL().Path, "/loops/")
		require.NotEmpty(b, b.elementText(".advice"))
		here := b.currentURL()
		b.toFact()
		b.openPage(here.RequestURI())
		b.followLink(`.lines td a[href^="/vms/"]`)
	case b.hasElement(`td a[href^="/vms/"]`):
		b.followLink(`td a[href^="/vms/"]`)
	default:
		b.searchFor("demo/")
		b.followLink(`.hits a[href^="/vms/"]`)
	}
}

// toFact clicks on a mark of the chart that stands for one fact, and looks for that among the raw facts.
func (b *tab) toFact() {
	b.Helper()
	b.followLink(`.plot a[href*="#e-"]`)
	at := b.currentURL()
	require.Equal(b, "/facts", at.Path)
	b.awaitCondition(`(r => r && r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(":target")?.getBoundingClientRect())`)
	require.Equal(b, at.Fragment, evaluateJS[string](b, `document.querySelector(":target").id`))
	const colour = `getComputedStyle(document.querySelector(%q)).backgroundColor`
	require.NotEqual(b, evaluateJS[string](b, colour, "tbody tr:not(:target), thead tr"), evaluateJS[string](b, colour, ":target"), "%s: the fact is not marked", at)
}

// span is the time that a chart shows.
type span struct{ From, To time.Time }

func (s span) lengthSeconds() float64 { return s.To.Sub(s.From).Seconds() }

// readShownSpan reads the time that the form of a chart says.
func (b *tab) readShownSpan() span {
	b.Helper()
	return evaluateJS[span](b, `(form => ({ From: new Date(form.from.value).toISOString(), To: new Date(form.to.value).toISOString() }))(document.querySelector(".range form"))`)
}

// checkZoomLinks looks closer, farther, earlier and later by links, at a span of time by the form, and at the whole story again.
func (b *tab) checkZoomLinks() {
	b.Helper()
	const most = 2.5 // seconds: the form has none of their parts
	step := func(n int) string { return fmt.Sprintf(".range nav a:nth-child(%d)", n) }
	whole := b.readShownSpan()
	b.followLink(step(2))
	in := b.readShownSpan()
	require.InDelta(b, whole.lengthSeconds()/2, in.lengthSeconds(), most)
	b.followLink(step(1))
	require.InDelta(b, -in.lengthSeconds()/2, b.readShownSpan().From.Sub(in.From).Seconds(), most)
	b.followLink(step(4))
	require.InDelta(b, 0, b.readShownSpan().From.Sub(in.From).Seconds(), most)
	b.followLink(step(3))
	require.InDelta(b, whole.lengthSeconds(), b.readShownSpan().lengthSeconds(), most)
	chosen := span{whole.From.Add(5 * time.Second), whole.From.Add(35 * time.Second)}
	const written = "2006-01-02T15:04:05Z"
	evaluateJS[string](b, `document.querySelector(".range input[name=from]").value = %q`, chosen.From.Format(written))
	evaluateJS[string](b, `document.querySelector(".range input[name=to]").value = %q`, chosen.To.Format(written))
	b.followLink(`.range button`)
	require.Equal(b, chosen, b.readShownSpan())
	b.followLink(`.range nav a:last-child`)
	require.InDelta(b, whole.lengthSeconds(), b.readShownSpan().lengthSeconds(), 5)
}

// zoomByHand drags across the chart from its first quarter to its middle, and goes back to the story.
func (b *tab) zoomByHand() {
	b.Helper()
	whole := b.readShownSpan()
	at := evaluateJS[struct{ Left, Width, Y float64 }](b, `(() => {
		const lane = document.querySelector(".lane:nth-child(2) .plot");
		lane.scrollIntoView({ block: "center", behavior: "instant" });
		const r = lane.getBoundingClientRect();
		return { Left: r.left, Width: r.width, Y: r.top + r.height / 2 };
	})()`)
	b.awaitPageChange(func() { b.drag(point{X: at.Left + at.Width/4, Y: at.Y}, point{X: at.Left + at.Width/2, Y: at.Y + 5}) })
	got, about := b.readShownSpan(), whole.lengthSeconds()/50+2
	require.InDelta(b, whole.lengthSeconds()/4, got.From.Sub(whole.From).Seconds(), about)
	require.InDelta(b, whole.lengthSeconds()/4, got.lengthSeconds(), about)
	b.followLink(`.range nav a:last-child`)
}
