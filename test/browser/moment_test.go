package browser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/stretchr/testify/require"
)

// TestMomentOfThePast looks at a VM as of a moment, which says so and has nothing to copy, and comes back.
func TestMomentOfThePast(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	const now = "/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8"
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage(now)
			require.False(t, b.hasElement(".moment.past"))
			evaluateJS[bool](b, `document.querySelector("#at").focus() ?? true`)
			b.awaitPageChange(func() { b.pressKeys("2026-11-21T00:36Z\r") })
			require.Equal(t, "2026-11-21T00:36Z", b.currentURL().Query().Get("at"))
			require.Contains(t, b.elementText(".moment.past"), "You are looking at 2026-11-21 00:36:00 UTC")
			require.Contains(t, b.elementText("main"), "What was to do then")
			require.Equal(t, 0, evaluateJS[int](b, `[...document.querySelectorAll(".copyable button")].filter(x => x.checkVisibility()).length`))
			require.Contains(t, b.elementText("main"), "to leave it for 3 min 3 s", "as it was")
			if !l.noScript {
				b.checkAccessibility(string(axe))
			}
			b.followLink(".moment.past a")
			require.Equal(t, now, b.currentURL().RequestURI())
			require.False(t, b.hasElement(".moment.past"))

			b.expectTrouble("400")
			b.openPage(now + "&at=yesterday")
			require.Contains(t, b.elementText("main"), `Invalid link: at="yesterday": expected a time`)
		})
	}
}

// TestTimeZone shows times in the zone of the browser and in a named one; the next pages keep it in their addresses.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	b := newTab(t, site, desk)
	b.runActions(newCommandAction(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"}))
	b.openPage("/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8")
	utc := b.elementText("footer time")
	require.Regexp(t, `^2026-11-21 00:\d\d:\d\d UTC$`, utc)
	require.Regexp(t, `^2026-11-21 00:\d\d:\d\d UTC\n2026-11-20 19:\d\d:\d\d America/New_York\n\d+ d`, evaluateJS[string](b, `document.querySelector("footer time").title`))
	b.followLink(".zone button[value=local]")
	require.Equal(t, "local", b.currentURL().Query().Get("tz"))
	require.Regexp(t, `^2026-11-20 19:\d\d:\d\d America/New_York$`, b.elementText("footer time"))
	require.Equal(t, "Times are local (America/New_York); sentences and pictures are in UTC.", b.elementText("#zone"))
	b.followLink("h1 a")
	require.Equal(t, "local", b.currentURL().Query().Get("tz"), "a link keeps it")
	require.Regexp(t, `^2026-11-20 19:`, b.elementText("footer time"))
	evaluateJS[bool](b, `document.querySelector("#q").focus() ?? true`)
	b.awaitPageChange(func() { b.pressKeys("vm-d\r") })
	require.Equal(t, "local", b.currentURL().Query().Get("tz"), "a form keeps it")
	b.followLink(".zone button[value=UTC]")
	require.Equal(t, "All times are UTC.", b.elementText("#zone"))

	plain := newTab(t, site, scripts["without JavaScript"])
	plain.openPage("/nodes/worker-1?cluster=b-dual-retry-loop-v1.8&tz=Europe/Berlin")
	require.Regexp(t, `^2026-11-21 01:\d\d:\d\d CET$`, plain.elementText("footer time"))
	require.Equal(t, "Times are in Europe/Berlin; sentences and pictures are in UTC.", plain.elementText("#zone"))
	plain.followLink(".brand")
	require.Equal(t, "Europe/Berlin", plain.currentURL().Query().Get("tz"))
}

// TestWhatIfByFields asks for another cooldown by fields, and reads what it saves and how it is set.
func TestWhatIfByFields(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/whatif")
			require.Equal(t, "What if g-churn-cooldown", b.elementText("h1"), "the cluster with most to save, not the first one")
			b.openPage("/whatif?cluster=g-churn-cooldown")
			evaluateJS[bool](b, `document.querySelector("input[name=base]").focus() ?? true`)
			b.awaitPageChange(func() { b.pressKeys("6m\r") })
			require.Equal(t, "6m", b.currentURL().Query().Get("base"))
			require.Contains(t, b.elementText("main"), "base=6m saves up to 4 of 9 migrations; it costs a mean wait of")
			require.Contains(t, b.elementText(".advice"), `kubectl patch kubedescheduler cluster -n openshift-kube-descheduler-operator --type=merge -p '{"spec":{"profileCustomizations":{"devMaxMigrationCooldown":"6m0s","devMigrationCooldown":"6m0s"}}}'`)
			require.Contains(t, b.elementText(".advice"), "migrationCooldown: 6m0s")

			evaluateJS[bool](b, `(document.querySelector("#sweep-of").value = "base", document.querySelector("input[name=base]").value = "", true)`)
			b.followLink(".ask button")
			require.Equal(t, 2, evaluateJS[int](b, `document.querySelectorAll(".curve polyline").length`))
			require.Equal(t, []string{"now: 30s", "now: 30s"}, evaluateJS[[]string](b, `[...document.querySelectorAll(".curve text.now")].map(x => x.textContent)`))
			require.Contains(t, b.elementText("main"), "base=10m to 1h: the same")
			if !l.noScript {
				b.checkAccessibility(string(axe))
			}

			b.openPage("/whatif?cluster=k-blocked-slot&give-up-after=3")
			require.Contains(t, b.elementText("main"), "No release of KubeVirt gives up an evacuation")
			require.False(t, b.hasElement(".advice pre"))
		})
	}
}
