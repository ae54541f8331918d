package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIf ticks a policy and names a setting to sweep, with the keyboard, and reads what would have been different, with and without
// JavaScript.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/?cluster=b-dual-retry-loop-v1.8")
			b.followLink(`nav[aria-label=More] a[href^="/whatif"]`)
			require.Equal(t, "What if b-dual-retry-loop-v1.8", b.elementText("h1"))
			require.Contains(t, b.elementText("main"), "Fill a setting, choose one to sweep, or tick a policy")
			evaluateJS[bool](b, `document.querySelector(".ask input[value=try-once]").focus() ?? true`)
			b.pressKeys(" ")
			evaluateJS[bool](b, `document.querySelector(".ask details").open = true`)
			evaluateJS[bool](b, `document.querySelector("#sweep").focus() ?? true`)
			b.awaitPageChange(func() { b.pressKeys("give-up-after=1..5\r") })
			require.True(t, evaluateJS[bool](b, `document.querySelector(".ask input[value=try-once]").checked`), "the form keeps what was asked")
			require.Contains(t, b.elementText("main"), "KubeVirt would have given up moving demo/vm-d away from worker-1")
			require.Contains(t, b.elementText("main"), "Loops avoided: 1 dual retry loop.")
			require.Contains(t, b.elementText("main"), "Assumptions")
			require.Equal(t, 10, evaluateJS[int](b, `document.querySelectorAll(".curve circle").length`))
			require.Equal(t, 6, evaluateJS[int](b, `document.querySelectorAll("main tbody tr").length`))

			b.openPage("/whatif?cluster=e-user-migrations&policy=try-once")
			require.Contains(t, b.elementText("main"), "No evacuation began in that time")
			b.expectTrouble("400")
			b.openPage("/whatif?cluster=k-blocked-slot&other=faster")
			require.Contains(t, b.elementText("[role=alert]"), "expected one of recorded")
		})
	}
}
