package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// focused is what has the focus: what it is, where it stands in the document, and whether that can be seen.
type focused struct {
	What    string
	Place   int
	Visible bool
}

// rememberLooks and seeFocus are JavaScript that returns how every element that can have the focus looks without it, and what has it.
const (
	rememberLooks = `(() => {
		const drawn = element => element.querySelector?.("rect, circle, line") ?? element;
		const look = element => (s => s.stroke + s.strokeWidth)(getComputedStyle(drawn(element)));
		const all = [...document.querySelectorAll("a, button, input:not([type=hidden]), select, summary, [tabindex]")];
		const before = new Map(all.map(element => [element, look(element)]));
		window.seeFocus = () => {
			const element = document.activeElement, style = getComputedStyle(element), r = drawn(element).getBoundingClientRect();
			return {
				What: element.id || element.getAttribute("aria-label") || element.textContent.trim() || element.name || element.tagName,
				Place: all.indexOf(element),
				Visible: r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth &&
					(style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 || look(element) !== before.get(element)),
			};
		};
		return true;
	})()`
	seeFocus = `seeFocus()`
)

// TestKeyboard goes through a page by the tab key alone: from the top, in the order of the document, always visible, to the marks of
// its chart, and follows one.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	b := newTab(t, site, desk)
	b.openPage("/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8")
	evaluateJS[bool](b, rememberLooks)
	var seen []string
	place, marks := -1, 0
	for marks < 3 {
		b.pressKeys(kb.Tab)
		f := evaluateJS[focused](b, seeFocus)
		seen = append(seen, f.What)
		require.GreaterOrEqual(t, f.Place, place, "the focus goes on in the order of the page, and through the parts of a time: %q", seen)
		if f.Place > place { // the browser itself shows on which part of a time it is
			require.True(t, f.Visible, "the focus is seen on %q", f.What)
		}
		place = f.Place
		if evaluateJS[bool](b, `document.activeElement.matches(".plot a")`) {
			marks++
			require.NotEmpty(t, strings.TrimSpace(f.What), "a mark says what it is")
		}
		require.Less(t, len(seen), 60, "the marks are reached: %q", seen)
	}
	require.Equal(t, "Skip to the content", seen[0])
	require.Contains(t, seen, "q")
	require.Contains(t, seen, "cluster")
	require.Contains(t, seen, "Dark")
	b.awaitPageChange(func() { b.pressKeys(kb.Enter) })
	require.Equal(t, "/facts", b.currentURL().Path, "Enter follows a mark")
}

// TestSkipToContent goes past what is above every page.
func TestSkipToContent(t *testing.T) {
	t.Parallel()
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/?cluster=c-node-drain")
			b.pressKeys(kb.Tab + kb.Enter)
			b.awaitCondition(`location.hash === "#main"`)
			b.pressKeys(kb.Tab)
			require.True(t, evaluateJS[bool](b, `document.activeElement.closest("main") !== null`))
		})
	}
}
