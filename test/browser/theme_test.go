package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func (b *tab) background() string {
	b.Helper()
	return ask[string](b, `getComputedStyle(document.body).backgroundColor`)
}

// TestTheme chooses dark and light, which stay on the next page, whatever the browser prefers.
func TestTheme(t *testing.T) {
	t.Parallel()
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			for _, l.dark = range []bool{false, true} {
				b := newTab(t, site, l)
				b.open("/vms/demo/vm-d?cluster=b-dual-retry-loop-v1.8")
				preferred := b.background()
				here := b.address()
				seen := map[string]string{}
				for _, theme := range []string{"dark", "light"} {
					b.follow(`.theme button[value=` + theme + `]`)
					require.Equal(t, here, b.address(), "choosing a theme leads back")
					seen[theme] = b.background()
					b.follow(`h1 a`)
					require.Equal(t, seen[theme], b.background(), "the theme stays on the next page")
					b.open(here.RequestURI())
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
			b.open("/")
			require.Equal(t, len(incidents(t)), ask[int](b, `document.querySelectorAll(".card").length`))
			ask[bool](b, `document.querySelector("#cluster").focus() ?? true`)
			b.press("c")
			b.follow(`.clusters button`)
			require.Equal(t, "c-node-drain", b.text("h1"))
			b.follow(`.brand`)
			require.Equal(t, "c-node-drain", b.text("h1"), "the brand leads to the front page of the same cluster")
		})
	}
}
