package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestOnCall does what a person on call does: comes from an alert to the command that ends its cause in three clicks at most, finds a VM by half its name, shares the
// address of a filtered list, acknowledges the problem, looks at a moment of the past and comes back.
func TestOnCall(t *testing.T) {
	t.Parallel()
	d, err := startDemo("--listen", "127.0.0.1:0", "--database-url", storetest.NewURL(t), "--auth", "none")
	require.NoError(t, err)
	t.Cleanup(d.stop)
	const cluster, from = "k-blocked-slot", "2026-11-21T00%3A47%3A00Z"
	command := `[...document.querySelectorAll(".paste")].filter(x => x.checkVisibility() && x.innerText.includes("/virtualmachineinstances/nbr-2/evacuate/cancel")).length`

	// The alerts link to a VM, a node and a cluster.
	b := newTab(t, d.url, desk)
	b.openPage("/vms/demo/nbr-2?cluster=" + cluster + "&from=" + from)
	require.Positive(t, evaluateJS[int](b, `%s`, command))
	b.openPage("/?cluster=" + cluster + "&from=" + from)
	require.Positive(t, evaluateJS[int](b, `%s`, command), "the advice of the first incident is unfolded")
	b.openPage("/nodes/worker-1?cluster=" + cluster + "&from=" + from)
	require.Positive(t, evaluateJS[int](b, `%s`, command))
	b.followLink(`section[aria-labelledby="loops"] a`)
	require.Positive(t, evaluateJS[int](b, `%s`, command), "the page of the loop has it")

	b.pressKeys("/")
	b.pressKeys("br-2")
	b.awaitCondition(`document.querySelectorAll(".suggestions a").length > 0`)
	b.followLink(`.suggestions a`)
	require.Equal(t, "/vms/demo/nbr-2", b.currentURL().Path)

	b.followLink(`.menu a[href^="/migrations"]`)
	evaluateJS[string](b, `document.querySelector("select[name=outcome]").value = "failed"`)
	b.followLink(`.filters button`)
	shared, rows := b.currentURL().RequestURI(), evaluateJS[int](b, `document.querySelectorAll(".list tbody tr").length`)
	require.Equal(t, "/migrations?cluster="+cluster+"&outcome=failed", shared)
	other := newTab(t, d.url, phone)
	other.openPage(shared)
	require.Equal(t, rows, evaluateJS[int](other, `document.querySelectorAll(".list tbody tr").length`))
	require.Positive(t, rows)

	b.openPage("/vms/demo/nbr-2?cluster=" + cluster)
	b.click(`.ack summary`)
	b.click(`.ack input[name="author"]`)
	b.pressKeys("anna")
	b.click(`.ack input[name="note"]`)
	b.pressKeys("disk array is being fixed")
	b.followLink(`.ack details button`)
	require.Contains(t, b.elementText(".ack"), "Acknowledged by anna until")
	other.openPage("/?cluster=" + cluster)
	require.Contains(t, other.elementText(".headline"), "Acknowledged by anna.", "others on call know")
	require.Contains(t, other.elementText(".incident .acknowledged"), "disk array is being fixed")

	other.openPage("/?cluster=" + cluster)
	evaluateJS[bool](other, `document.querySelector("#at").focus() ?? true`)
	other.awaitPageChange(func() { other.pressKeys("2026-11-21T00:55Z\r") })
	require.Contains(t, other.elementText(".moment.past"), "You are looking at 2026-11-21 00:55:00 UTC")
	require.NotContains(t, other.elementText("main"), "Acknowledged", "that was not known then")
	other.followLink(`.incident a[href^="/vms/demo/nbr-2"]`)
	require.Contains(t, other.elementText(".moment.past"), "You are looking at 2026-11-21 00:55:00 UTC", "the next page is of the same moment")
	require.Contains(t, other.elementText("main"), "Then and now")
	other.followLink(".moment.past a")
	require.False(t, other.hasElement(".moment.past"))
}
