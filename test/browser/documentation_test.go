package browser_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// documentation builds the documentation site once, in a folder that stays as long as the test that asked first.
var documentation = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(root, "bin/test/site")
	out, err := exec.Command("go", "run", "../site", "-out", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the documentation site: %w: %s", err, out)
	}
	return filepath.Abs(dir)
})

// TestDocumentationLayout looks at pages of the documentation site at the width of a desk and of a phone, in light and dark: nothing scrolls
// sideways, and axe-core finds nothing. In the long form it looks at all of them.
func TestDocumentationLayout(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	dir, err := documentation()
	require.NoError(t, err)
	server := httptest.NewServer(http.FileServer(http.Dir(dir))) // axe-core cannot read style sheets of files
	t.Cleanup(server.Close)
	pictures := os.Getenv("EVICTRAIL_SCREENSHOTS")
	for _, l := range []look{desk, phone, {width: desk.width, height: desk.height, dark: true}, {width: phone.width, height: phone.height, phone: true, dark: true}} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := newTab(t, server.URL+"/", l)
			pages := []string{"index.html", "docs/runbooks/EvictrailDualRetryLoop.html", "docs/cli.html", "docs/api.html", "docs/guarantees.html", "docs/adr/index.html"}
			if storetest.Count(0, 1) > 0 {
				pages = nil
				require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
					if strings.HasSuffix(name, ".html") {
						pages = append(pages, name)
					}
					return err
				}))
				require.Greater(t, len(pages), 90)
			}
			for _, page := range pages {
				b.openPage(page)
				require.Empty(t, evaluateJS[[]string](b, misplaced+`(%d)`, l.width), page)
				require.Equal(t, l.width >= 1100, evaluateJS[bool](b, `document.querySelector(".toc")?.open ?? innerWidth >= 1100`), "%s: what is on the page is listed where there is room", page)
				b.checkAccessibility(string(axe))
				if pictures != "" {
					b.saveScreenshot(filepath.Join(pictures, fmt.Sprintf("documentation_%s_%s.png", strings.ReplaceAll(page, "/", "_"), l)))
				}
			}
		})
	}
}

// TestDocumentationSearch searches by the keyboard alone, from files without a server: what is asked for most is what is found first.
func TestDocumentationSearch(t *testing.T) {
	t.Parallel()
	dir, err := documentation()
	require.NoError(t, err)
	for query, want := range map[string]string{
		"dual retry loop":          "EvictrailDualRetryLoop",
		"cooldown":                 "cooldown",
		"glossary":                 "Glossary",
		"evictrailnoleader":        "EvictrailNoLeader",
		"evictrail_loops_total":    "Metrics",
		"evictrail why-not":        "Commands: evictrail why-not",
		"/api/v1/loops":            "HTTP API: GET /api/v1/loops",
		"audit-webhook-config":     "Audit events: who asked",
		"kubectl drain [a-z]+ \\d": "",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, "file://"+dir+"/", desk)
			b.openPage("docs/runbooks/EvictrailStoreDown.html")
			b.runActions(newCommandAction(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Text: "/"})) // one event, as of a real key
			require.Equal(t, "q", evaluateJS[string](b, `document.activeElement.id`))
			b.pressKeys(query)
			b.awaitCondition(`document.querySelector("#q").value === %q && /result|Nothing/.test(document.querySelector("[role=status]").textContent)`, query)
			if want == "" {
				require.False(t, b.hasElement(".results a"))
				require.Contains(t, b.elementText("[role=status]"), "Nothing has all of")
				return
			}
			first := b.elementText(".results b")
			require.Contains(t, strings.ToLower(first), strings.ToLower(want))
			b.pressKeys(kb.ArrowDown)
			require.Equal(t, first, evaluateJS[string](b, `document.activeElement.querySelector("b").textContent`))
			b.awaitPageChange(func() { b.pressKeys(kb.Enter) })
			require.True(t, strings.HasPrefix(first, b.elementText("h1")), "%s leads to %s", first, b.currentURL())
			if fragment := b.currentURL().Fragment; fragment != "" {
				require.True(t, b.hasElement(":target"), "%s is on the page", fragment)
			}
		})
	}
}
