package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// misplaced is JavaScript that lists what lies outside of its place: a page wider than the screen, a text that leaves its lane or runs
// into what is drawn, a column that is squeezed, times above a chart that run into each other.
const misplaced = `(width => {
	const out = [], box = node => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect(); };
	const wide = document.documentElement.scrollWidth;
	if (wide > width) {
		const widest = [...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > width + 1 && !e.closest(".scroll, pre, svg"));
		out.push("the page is " + wide + " wide: " + widest.slice(0, 3).map(e => e.outerHTML.slice(0, 90)).join(" | "));
	}
	for (const lane of document.querySelectorAll(".lane")) {
		const place = lane.getBoundingClientRect(), name = lane.querySelector(".name"), plot = lane.querySelector(".plot").getBoundingClientRect(), text = box(name);
		if (!name.offsetParent) continue;
		if (text.top < place.top - 1 || text.bottom > place.bottom + 1 || text.right > place.right + 1) out.push("leaves its lane: " + name.textContent);
		if (text.right > plot.left + 1 && text.bottom > plot.top + 1) out.push("runs into its plot: " + name.textContent);
		for (const label of lane.querySelectorAll(".plot text")) {
			const r = label.getBoundingClientRect();
			if (r.width && (r.top < plot.top - 2 || r.bottom > plot.bottom + 2)) out.push("leaves its plot: " + label.textContent);
		}
	}
	for (const cell of document.querySelectorAll("td")) {
		const r = cell.getBoundingClientRect();
		if (r.height > 400 && r.width < 120) out.push("is squeezed: " + cell.textContent.slice(0, 60));
	}
	const ticks = [...document.querySelectorAll(".axis text")].map(t => t.getBoundingClientRect());
	ticks.forEach((r, i) => { if (i && r.left < ticks[i - 1].right + 2) out.push("times of the axis touch: " + i); });
	return out;
})`

// findPagesByKind returns the addresses of one page of each kind for an incident: front, VM, node and, where it has one, loop.
func findPagesByKind(b *tab, incident string) map[string]string {
	b.Helper()
	front := "/?cluster=" + incident
	out := map[string]string{"front": front}
	b.openPage(front)
	first := func(selector string) string {
		return evaluateJS[string](b, `document.querySelector(%q)?.getAttribute("href") ?? ""`, selector)
	}
	if loop := first(`main a[href^="/loops/"]`); loop != "" {
		out["loop"] = loop
		b.openPage(loop)
		out["node"] = first(`h1 a[href^="/nodes/"]`)
	}
	vm := first(`main a[href^="/vms/"]`)
	if vm == "" {
		b.openPage("/search?q=demo/&cluster=" + incident)
		vm = first(`.hits a[href^="/vms/"]`)
	}
	out["vm"] = vm
	b.openPage(vm)
	out["facts"] = strings.Split(first(`p a[href^="/facts"]`), "#")[0]
	if out["node"] == "" {
		out["node"] = first(`.lane.node a`)
	}
	return out
}

// TestLayout looks at the pages of each incident at the width of a desk and of a phone: nothing scrolls sideways, no text covers another.
// With EVICTRAIL_SCREENSHOTS it takes their pictures, in light and dark.
func TestLayout(t *testing.T) {
	t.Parallel()
	pictures := os.Getenv("EVICTRAIL_SCREENSHOTS")
	for _, l := range []look{desk, phone} {
		for _, incident := range listIncidents(t) {
			t.Run(l.String()+"/"+incident, func(t *testing.T) {
				t.Parallel()
				looks := []look{l}
				if pictures != "" {
					looks = append(looks, look{width: l.width, height: l.height, phone: l.phone, dark: true})
				}
				for _, l := range looks {
					b := newTab(t, site, l)
					for kind, address := range findPagesByKind(b, incident) {
						b.openPage(address)
						require.Empty(t, evaluateJS[[]string](b, misplaced+`(%d)`, l.width), address)
						if pictures != "" {
							b.saveScreenshot(filepath.Join(pictures, fmt.Sprintf("%s_%s_%s.png", incident, kind, l)))
						}
					}
				}
			})
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.expectTrouble("404")
			for _, address := range []string{"/", "/docs", "/search?q=vm-", "/vms/demo/nobody", "/search"} {
				b.openPage(address)
				require.Empty(t, evaluateJS[[]string](b, misplaced+`(%d)`, l.width), address)
			}
		})
	}
}

// saveScreenshot writes the whole page as it looks.
func (b *tab) saveScreenshot(path string) {
	b.Helper()
	beyond := true
	size := evaluateJS[struct{ W, H float64 }](b, `({ W: innerWidth, H: document.documentElement.scrollHeight })`)
	got, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Clip: &page.Viewport{Width: size.W, Height: size.H, Scale: 1}, CaptureBeyondViewport: &beyond,
	})
	require.NoError(b, err)
	require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(b, os.WriteFile(path, got.Data, 0o600))
}
