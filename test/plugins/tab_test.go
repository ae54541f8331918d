package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is how long a page may take for anything; it is long because machines may be busy.
const patience = 30 * time.Second

// tab is a tab of the browser with a storage of its own. Errors and warnings in its console fail the test at its end.
type tab struct {
	*testing.T
	ctx  context.Context
	host string // address of what stands in for a console

	mu       sync.Mutex
	troubles []string
	expected string // part of troubles that the test asks for
}

// openTab opens a tab for the pages of a host. Troubles that contain a text are expected; none are if it is empty.
func openTab(t *testing.T, host, expected string) *tab {
	t.Helper()
	b := &tab{T: t, host: host, expected: expected}
	ctx, cancel := chromedp.NewContext(window, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.handleEvent))
	t.Cleanup(cancel)
	b.ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(b.ctx, newCommandAction(log.Enable, cdp.Empty{}), setWidth(1280)))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, trouble := range b.troubles {
			t.Error(trouble)
		}
	})
	return b
}

// setWidth returns an action that makes the window so wide.
func setWidth(width int64) chromedp.Action[chromedp.Void] {
	return newCommandAction(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
}

// newCommandAction makes an action of a command to the browser.
func newCommandAction[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// handleEvent notes what a panel must not do.
func (b *tab) handleEvent(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.recordTrouble("console", e.Args)
		}
	case *runtime.EventExceptionThrown:
		b.recordTrouble("exception", e.ExceptionDetails)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.recordTrouble("log", e.Entry)
		}
	}
}

func (b *tab) recordTrouble(kind string, of any) {
	text, _ := json.Marshal(of)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expected == "" || !strings.Contains(string(text), b.expected) {
		b.troubles = append(b.troubles, kind+": "+string(text))
	}
}

// evaluateJS evaluates an expression on the page.
func evaluateJS[T any](b *tab, format string, args ...any) T {
	b.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...)))
	require.NoError(b, err)
	return out
}

// awaitCondition waits until an expression is true of the page.
func (b *tab) awaitCondition(format string, args ...any) {
	b.Helper()
	condition := fmt.Sprintf(format, args...)
	require.Eventually(b, func() bool {
		so, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		return err == nil && so
	}, patience, 20*time.Millisecond, "%s", condition)
}

// openPage opens a page of the host.
func (b *tab) openPage(query url.Values) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.ctx, chromedp.Navigate(b.host+"/?"+query.Encode())))
}

// openVM opens the page of a VM and waits until its panel shows a kind of outcome, by name in shared/ask.ts.
func (b *tab) openVM(vm, outcome string) {
	b.Helper()
	namespace, name, _ := strings.Cut(vm, "/")
	b.openPage(url.Values{"namespace": {namespace}, "name": {name}})
	b.awaitOutcome(outcome)
}

func (b *tab) awaitOutcome(outcome string) {
	b.Helper()
	b.awaitCondition(`document.querySelector("[data-evictrail]")?.dataset.evictrail === %q`, outcome)
}

// panelText returns the words of the panel, with single spaces.
func (b *tab) panelText() string {
	b.Helper()
	return joinWords(evaluateJS[string](b, `document.querySelector("[data-evictrail]").textContent`))
}

// joinWords puts single spaces between the words of a text.
func joinWords(text string) string { return strings.Join(strings.Fields(text), " ") }

// pressButton presses the button with a text.
func (b *tab) pressButton(text string) {
	b.Helper()
	require.True(b, evaluateJS[bool](b, `(button => { button?.click(); return button !== undefined })([...document.querySelectorAll("button")].find(b => b.textContent === %q))`, text), text)
}

// linkTarget returns where the link of the panel leads; empty where there is none.
func (b *tab) linkTarget() string {
	b.Helper()
	return evaluateJS[string](b, `document.querySelector("[data-evictrail] a")?.href ?? ""`)
}

// audit is JavaScript that returns what axe-core finds seriously wrong with a page.
const audit = `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], resultTypes: ["violations"] }).then(result =>
	result.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html).join(" ")))`

// checkAccessibility fails where axe-core finds a serious violation, and writes a picture of the page if asked to.
func (b *tab) checkAccessibility(name string) {
	b.Helper()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(b, err, "run hack/ensure-axe.sh")
	evaluateJS[bool](b, "%s", string(axe)+";true")
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](audit, chromedp.EvalAwaitPromise))
	require.NoError(b, err)
	require.Empty(b, found, name)
	if dir := os.Getenv("EVICTRAIL_SCREENSHOTS"); dir != "" {
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		require.NoError(b, err)
		require.NoError(b, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
	}
}
