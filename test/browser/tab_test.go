package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// patience is how long a page may take for anything; it is long because machines may be busy.
const patience = 30 * time.Second

// tab is a tab of the browser with cookies of its own. What goes wrong in it fails the test at its end.
type tab struct {
	*testing.T
	ctx  context.Context
	site string // address of the server

	mu       sync.Mutex
	troubles []string
	expected []string // parts of troubles that the test asks for
}

// look is how a visitor looks at a page.
type look struct {
	width, height int64
	phone         bool
	dark          bool // the browser prefers it
	noScript      bool
}

var (
	desk  = look{width: 1280, height: 900}
	phone = look{width: 390, height: 844, phone: true}
)

func (l look) String() string {
	name := "desk"
	if l.phone {
		name = "phone"
	}
	if l.dark {
		return name + "-dark"
	}
	return name + "-light"
}

// newTab opens a tab for the pages of a server.
func newTab(t *testing.T, site string, l look) *tab {
	t.Helper()
	b := &tab{T: t, site: site}
	ctx, cancel := chromedp.NewContext(window, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.handleEvent))
	t.Cleanup(cancel)
	b.ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.runActions(
		newCommandAction(log.Enable, cdp.Empty{}), newCommandAction(network.Enable, network.EnableParams{}), newCommandAction(audits.Enable, cdp.Empty{}),
		newCommandAction(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.phone,
		}),
		newCommandAction(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		newCommandAction(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}),
		newCommandAction(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}),
	)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, trouble := range b.troubles {
			t.Error(trouble)
		}
	})
	return b
}

// newCommandAction makes an action of a command to the browser.
func newCommandAction[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// handleEvent notes what a page must not do.
func (b *tab) handleEvent(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text, _ := json.Marshal(e.Args)
			b.recordTrouble("console: %s", text)
		}
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		b.recordTrouble("exception: %s", text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.recordTrouble("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			b.recordTrouble("network: %s: %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // somebody left the page
			b.recordTrouble("network: %s %s", e.Type, e.ErrorText)
		}
	case *audits.EventIssueAdded:
		issue, _ := json.Marshal(e.Issue)
		b.recordTrouble("issue: %s", issue)
	}
}

func (b *tab) recordTrouble(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return
		}
	}
	b.troubles = append(b.troubles, text)
}

// expectTrouble lets troubles that contain any of the parts be.
func (b *tab) expectTrouble(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, parts...)
}

func (b *tab) runActions(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.ctx, steps...))
}

// openPage goes to an address of the site as if it were typed.
func (b *tab) openPage(address string) {
	b.Helper()
	b.runActions(chromedp.Navigate(b.site + address))
}

// evaluateJS evaluates an expression on the page.
func evaluateJS[T any](b *tab, format string, args ...any) T {
	b.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...)))
	require.NoError(b, err)
	return out
}

// elementText returns the text of an element.
func (b *tab) elementText(selector string) string {
	b.Helper()
	return evaluateJS[string](b, `document.querySelector(%q)?.textContent ?? ""`, selector)
}

// hasElement reports whether there is such an element.
func (b *tab) hasElement(selector string) bool {
	b.Helper()
	return evaluateJS[bool](b, `document.querySelector(%q) !== null`, selector)
}

// awaitCondition waits until an expression is true of the page, whichever it is by then.
func (b *tab) awaitCondition(format string, args ...any) {
	b.Helper()
	condition := fmt.Sprintf(format, args...)
	require.Eventually(b, func() bool {
		so, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		return err == nil && so
	}, patience, 20*time.Millisecond, "%s", condition)
}

// awaitPageChange does what leads to another page, and waits for that.
func (b *tab) awaitPageChange(do func()) {
	b.Helper()
	evaluateJS[bool](b, `window.stillHere = true`)
	do()
	b.awaitCondition(`!window.stillHere && document.readyState === "complete"`)
}

// currentURL returns where the tab is.
func (b *tab) currentURL() *url.URL {
	b.Helper()
	u, err := url.Parse(evaluateJS[string](b, `location.href`))
	require.NoError(b, err)
	return u
}

// hittable is JavaScript that returns a point of the first element of a list that a pointer there would hit, with what leads there.
const hittable = `(elements => {
	for (const element of elements) {
		const drawn = element.querySelector?.("rect, circle, line") ?? element;
		drawn.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
		const r = drawn.getClientRects()[0];
		if (!r) continue;
		const x = r.left + r.width / 2, y = r.top + r.height / 2, hit = document.elementFromPoint(x, y);
		if (hit && element.contains(hit)) return { X: x, Y: y, Href: element.getAttribute("href") ?? "" };
	}
	return null;
})`

// point is where a pointer goes.
type point struct {
	X, Y float64
	Href string
}

// click presses the mouse on the first element of a selector that can be hit, and returns where it leads.
func (b *tab) click(selector string) string {
	b.Helper()
	at := evaluateJS[*point](b, hittable+`(document.querySelectorAll(%q))`, selector)
	require.NotNil(b, at, "%s: there is no %s that can be clicked", b.currentURL(), selector)
	b.runActions(chromedp.MouseClickXY(at.X, at.Y))
	return at.Href
}

// followLink clicks on a link and waits for its page.
func (b *tab) followLink(selector string) {
	b.Helper()
	b.awaitPageChange(func() { b.click(selector) })
}

// pressKeys presses keys as a keyboard does: a character comes with its key, so that a page which handles the key does not get the character, too.
func (b *tab) pressKeys(keys string) {
	b.Helper()
	for _, key := range keys {
		var text string
		events := kb.Encode(key)
		for _, e := range events {
			text += e.Text
		}
		for _, e := range events {
			if e.Type == kb.KeyChar {
				continue
			}
			if e.Type == kb.KeyDown {
				e.Text = text
			}
			b.runActions(newCommandAction(input.DispatchKeyEvent, *e))
		}
	}
}

// drag presses the mouse at one point, moves it to another and lets it go.
func (b *tab) drag(from, to point) {
	b.Helper()
	pressed := func(p *input.DispatchMouseEventParams) { p.Button, p.ClickCount = input.MouseButtonLeft, 1 }
	b.runActions(
		chromedp.MouseEvent(chromedp.MousePressed, from.X, from.Y, pressed),
		chromedp.MouseEvent(chromedp.MouseMoved, (from.X+to.X)/2, to.Y, pressed),
		chromedp.MouseEvent(chromedp.MouseMoved, to.X, to.Y, pressed),
		chromedp.MouseEvent(chromedp.MouseReleased, to.X, to.Y, pressed),
	)
}
