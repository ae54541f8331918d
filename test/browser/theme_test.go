package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func (b *tab) backgroundColor() string {
	b.Helper()
	return evaluateJS[string](b, `getComputedStyle(document.body).backgroundColor`)
}

// TestTheme chooses dark and light, which stay on the next page, whatever the browser prefers.
func TestTheme(t *testing.T) {
	t.Parallel()
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			for _, l.dark = range []bool{false, true} {
				b := newTab(t, site, l)
				b.openPage("/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8")
				preferred := b.backgroundColor()
				here := b.currentURL()
				seen := map[string]string{}
				for _, theme := range []string{"dark", "light"} {
					b.followLink(`.theme button[value=` + theme + `]`)
					require.Equal(t, here, b.currentURL(), "choosing a theme leads back")
					seen[theme] = b.backgroundColor()
					b.followLink(`h1 a`)
					require.Equal(t, seen[theme], b.backgroundColor(), "the theme stays on the next page")
					b.openPage(here.RequestURI())
				}
				require.NotEqual(t, seen["dark"], seen["light"])
				if l.dark {
					require.Equal(t, seen["dark"], preferred)
				} else {
					require.Equal(t, seen["light"], preferred)
				}
			}
		})
	}
}

// TestChooseCluster chooses a cluster above a page, with the keyboard.
func TestChooseCluster(t *testing.T) {
	t.Parallel()
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/")
			require.Equal(t, len(listIncidents(t)), evaluateJS[int](b, `document.querySelectorAll(".fleet tbody tr").length`))
			evaluateJS[bool](b, `document.querySelector("#cluster").focus() ?? true`)
			b.pressKeys("c")
			b.followLink(`.clusters button`)
			require.Equal(t, "c-node-drain", b.elementText("h1"))
			b.followLink(`.brand`)
			require.Equal(t, "c-node-drain", b.elementText("h1"), "the brand leads to the front page of the same cluster")
		})
	}
}
