package browser_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/storetest"
)

// violation is what axe-core finds wrong with a page.
type violation struct{ ID, Impact, Help, Where string }

// audit is JavaScript that returns the violations of a page.
const audit = `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], resultTypes: ["violations"] }).then(result =>
	result.violations.map(v => ({
		ID: v.id, Impact: v.impact ?? "", Help: v.help,
		Where: v.nodes.slice(0, 5).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join("\n\t"),
	})))`

// TestAccessibility has axe-core look at every kind of page, in light and dark, on a desk and on a phone.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	s := storetest.New(t)
	reader := answers.Reader{Reader: s.Reader}
	nothing := httptest.NewServer(api.Server{
		Readers: api.ForAll(reader), Site: &web.Site{Readers: web.ForAll(reader)}, Stream: api.StreamForAll(s, nil),
	}.Handler())
	t.Cleanup(nothing.Close)
	dark := func(l look) look { l.dark = true; return l }
	for _, l := range storetest.Some([]look{desk, dark(phone), dark(desk), phone}, 2) {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.expectTrouble("404")
			addresses := []string{"/", "/docs", "/search?q=vm-", "/search?q=nobody-at-all", "/vms/demo/nobody", "/?cluster=k-blocked-slot", "/limits", "/limits?cluster=k-blocked-slot",
				"/backtest", "/backtest?cluster=g-churn-cooldown&since=2026-11-20&step=15s",
				"/backtest?cluster=g-churn-cooldown&since=2026-11-20&step=15s&rule=EvictrailVMPingPong",
				"/weekly", "/advice?cluster=g-churn-cooldown&weeks=1&learn=1", "/weekly?cluster=c-node-drain", "/downtimes",
				"/whatif", "/whatif?cluster=b-dual-retry-loop-v1.8&policy=try-once&policy=keep-mark&sweep=base%3D5m..60m"}
			for _, incident := range []string{"b-dual-retry-loop-v1.8", "c-node-drain"} {
				for _, address := range findPagesByKind(b, incident) {
					addresses = append(addresses, address)
				}
			}
			for _, address := range addresses {
				b.openPage(address)
				b.checkAccessibility(string(axe))
			}
			b = newTab(t, nothing.URL, l)
			b.openPage("/")
			require.Contains(t, b.elementText("h1"), "Nothing is recorded yet")
			b.checkAccessibility(string(axe))
		})
	}
}

// checkAccessibility fails where a violation is serious, and logs what is not.
func (b *tab) checkAccessibility(axe string) {
	b.Helper()
	evaluateJS[bool](b, "%s", axe+";true")
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]violation](audit, chromedp.EvalAwaitPromise))
	require.NoError(b, err)
	for _, v := range found {
		say := b.Logf
		if v.Impact == "serious" || v.Impact == "critical" {
			say = b.Errorf
		}
		say("%s: %s: %s: %s\n\t%s", strings.TrimPrefix(b.currentURL().String(), b.site), v.Impact, v.ID, v.Help, v.Where)
	}
}
