package browser_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail/tracker"
)

var listPaths = []string{"/vms", "/nodes", "/loops", "/evacuations", "/migrations", "/requests", "/drains", "/downtimes", "/cooldowns", "/gaps"}

// TestListIsFiltered filters a list by its form, and opens its address in another browser, which shows the same.
func TestListIsFiltered(t *testing.T) {
	t.Parallel()
	const cluster = "b-dual-retry-loop-v1.8"
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/?cluster=" + cluster)
			b.followLink(`.menu a[href^="/migrations"]`)
			require.Equal(t, "Migrations", b.elementText(`.menu a[aria-current="page"]`))
			const rows = `document.querySelectorAll(".list tbody tr").length`
			all := evaluateJS[int](b, rows)
			evaluateJS[string](b, `document.querySelector("select[name=phase]").value = "Failed"`)
			b.click(`.filters input[name="vm"]`)
			b.pressKeys("demo/vm-d")
			b.followLink(`.filters button`)
			u := b.currentURL()
			require.Equal(t, "cluster="+cluster+"&phase=Failed&vm=demo%2Fvm-d", u.RawQuery, "what is empty is left out")
			filtered := evaluateJS[int](b, rows)
			require.Less(t, filtered, all)
			require.Positive(t, filtered)
			b.followLink(`th[aria-sort="descending"] a`)
			require.True(t, b.hasElement(`th[aria-sort="ascending"]`))
			b.followLink(`.filters span a`)
			require.Equal(t, all, evaluateJS[int](b, rows))

			other := newTab(t, site, l)
			other.openPage(u.RequestURI())
			require.Equal(t, filtered, evaluateJS[int](other, rows))
			require.Equal(t, "Failed", evaluateJS[string](other, `document.querySelector("select[name=phase]").value`))
			require.Equal(t, "demo/vm-d", evaluateJS[string](other, `document.querySelector(".filters input[name=vm]").value`))
			other.followLink(`.list tbody a[href^="/vms/"]`)
			require.Equal(t, "/vms/demo/vm-d", other.currentURL().Path)
		})
	}
}

// TestSearchAsOneTypes goes to the field by its key, types half a name, and follows the first hit by the keyboard alone.
func TestSearchAsOneTypes(t *testing.T) {
	t.Parallel()
	const cluster = "b-dual-retry-loop-v1.8"
	b := newTab(t, site, desk)
	b.openPage("/loops?cluster=" + cluster)
	b.pressKeys("/")
	b.pressKeys("m-d")
	b.awaitCondition(`document.querySelectorAll(".suggestions a").length > 0`)
	require.Contains(t, b.elementText(".suggestions li"), "demo/vm-d")
	require.Contains(t, b.elementText(".suggestions li"), " on worker-", "the node of a VM that runs")
	b.pressKeys(kb.Escape)
	require.False(t, b.hasElement(".suggestions a"))
	require.Equal(t, "m-d", evaluateJS[string](b, `document.activeElement.value`))
	b.pressKeys(kb.Backspace)
	b.pressKeys("d")
	b.awaitCondition(`document.querySelectorAll(".suggestions a").length > 0`)
	b.pressKeys(kb.ArrowDown)
	b.awaitPageChange(func() { b.pressKeys(kb.Enter) })
	require.Equal(t, "/vms/demo/vm-d", b.currentURL().Path)
	require.Equal(t, cluster, b.currentURL().Query().Get("cluster"))
}

// TestListsAreUsable has axe-core look at each list, and measures it, with rows, without, and with the longest names that Kubernetes allows: on a desk
// each column is on the screen.
func TestListsAreUsable(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	s := storetest.New(t)
	tr := tracker.New("c1")
	long := tracker.Meta{UID: "uid-long", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("v", 63), ResourceVersion: "1", CreatedAt: storetest.Start}
	node := strings.Repeat("w", 63)
	facts := tr.Observe(tracker.VMIObservation{Meta: long, Seen: tracker.Seen{At: storetest.Start}, Node: node, Phase: "Running"})
	long.ResourceVersion = "2"
	facts = append(facts, tr.Observe(tracker.VMIObservation{Meta: long, Seen: tracker.Seen{At: storetest.Start}, Node: node, Phase: "Running", Mark: node, Strategy: "LiveMigrate"})...)
	_, err = s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	reader := answers.Reader{Reader: s.Reader}
	lengthy := httptest.NewServer(api.Server{
		Readers: api.ForAll(reader), Site: &web.Site{Readers: web.ForAll(reader)}, Stream: api.StreamForAll(s, nil),
	}.Handler())
	t.Cleanup(lengthy.Close)
	dark := phone
	dark.dark = true
	for _, l := range []look{desk, dark} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			for _, at := range []string{site, lengthy.URL} {
				b := newTab(t, at, l)
				for _, path := range listPaths {
					b.openPage(path)
					b.checkAccessibility(string(axe))
					require.Empty(t, evaluateJS[[]string](b, misplaced+`(%d)`, l.width), path)
					if !l.phone {
						beyond := evaluateJS[int](b, `[...document.querySelectorAll(".list th")].filter(th => th.getBoundingClientRect().right > innerWidth).length`)
						require.Zero(t, beyond, "columns of %s off the screen", path)
					}
				}
			}
		})
	}
}
