package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPaste copies a command: with a clipboard, and on a page of plain HTTP from another host, which has none. The button covers nothing of the command.
func TestPaste(t *testing.T) {
	t.Parallel()
	for name, clipboard := range map[string]string{
		"clipboard":    `{ writeText: async (text) => { window.copied = text; } }`,
		"no clipboard": `undefined`,
		"refused":      `{ writeText: async () => { throw new Error("not allowed"); } }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, desk)
			b.openPage("/vms/demo/nbr-1?cluster=k-blocked-slot")
			evaluateJS[bool](b, `(Object.defineProperty(navigator, "clipboard", { value: %s, configurable: true }), true)`, clipboard)
			require.True(b, evaluateJS[bool](b, `[...document.querySelectorAll(".copyable")].every(box =>
				box.querySelector("pre").getBoundingClientRect().right <= box.querySelector("button").getBoundingClientRect().left)`), "the button lies beside the command")
			b.click(".copyable button")
			if name == "clipboard" {
				b.awaitCondition(`document.querySelector(".copyable button").textContent === "Copied"`)
				require.Equal(b, b.elementText(".copyable code"), evaluateJS[string](b, `window.copied`))
			} else {
				b.awaitCondition(`["Copied", "Selected"].includes(document.querySelector(".copyable button").textContent)`)
				require.Equal(b, strings.TrimSpace(b.elementText(".copyable code")), strings.TrimSpace(evaluateJS[string](b, `getSelection().toString()`)))
			}
			b.awaitCondition(`document.querySelector(".copyable button").textContent === "Copy"`)
		})
	}
}

// TestPointer moves over a chart: the time under the pointer covers none of the fields above it.
func TestPointer(t *testing.T) {
	t.Parallel()
	b := newTab(t, site, desk)
	b.openPage("/vms/demo/nbr-1?cluster=k-blocked-slot")
	at := evaluateJS[point](b, `(r => ({ X: r.left + r.width / 2, Y: r.top + r.height / 2 }))(document.querySelector(".lane:not(.axis) .plot").getBoundingClientRect())`)
	b.runActions(chromedp.MouseEvent(chromedp.MouseMoved, at.X, at.Y))
	b.awaitCondition(`!document.querySelector(".reading").hidden`)
	require.True(t, evaluateJS[bool](b, `document.querySelector(".reading").getBoundingClientRect().top >= document.querySelector(".range").getBoundingClientRect().bottom`))
}

// TestLongNames has a VM with the longest name there can be: the other columns of its table stay on the screen.
func TestLongNames(t *testing.T) {
	t.Parallel()
	b := newTab(t, site, desk)
	b.openPage("/?cluster=k-blocked-slot")
	evaluateJS[string](b, `document.querySelector("td a[href^='/vms/']").textContent = %q`, strings.Repeat("n", 63)+"/"+strings.Repeat("v", 63))
	require.True(t, evaluateJS[bool](b, `(scroll => scroll.scrollWidth <= scroll.clientWidth)(document.querySelector("td a[href^='/vms/']").closest(".scroll"))`))
}
