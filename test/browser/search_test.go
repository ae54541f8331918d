package browser_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// searchFor types into the field above every page.
func (b *tab) searchFor(text string) {
	b.Helper()
	b.click("#q")
	evaluateJS[string](b, `document.querySelector("#q").value = ""`)
	b.awaitPageChange(func() { b.pressKeys(text + "\r") })
	require.Equal(b, "/search", b.currentURL().Path)
	require.Equal(b, text, evaluateJS[string](b, `document.querySelector("#q").value`))
}

// TestSearch finds a VM, a node and a migration by their names or a part of them, and follows each; of nobody it says so.
func TestSearch(t *testing.T) {
	t.Parallel()
	const cluster = "b-dual-retry-loop-v1.8"
	answer, err := http.Get(site + "/api/v1/migrations?limit=1&cluster=" + cluster)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	var list []struct {
		Namespace, VMI, Migration string
		UID                       string `json:"migration_uid"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
	require.Len(t, list, 1)
	m := list[0]
	for with, l := range scripts {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, site, l)
			b.openPage("/?cluster=" + cluster)
			for _, c := range []struct{ asked, page string }{
				{"vm-d", "/vms/demo/vm-d"},
				{"m-d", "/vms/demo/vm-d"},
				{"worker-1", "/nodes/worker-1"},
				{m.Migration, "/vms/" + m.Namespace + "/" + m.VMI},
				{m.UID, "/vms/" + m.Namespace + "/" + m.VMI},
			} {
				b.searchFor(c.asked)
				b.followLink(`.hits a`)
				require.Equal(t, c.page, b.currentURL().Path, c.asked)
				require.Equal(t, cluster, b.currentURL().Query().Get("cluster"), c.asked)
			}
			b.searchFor("nobody-at-all")
			require.Contains(t, b.elementText("main"), "No record of that name.")
			b.searchFor(`"><b>x`)
			require.Equal(t, `Search: "><b>x`, b.elementText("h1"))
		})
	}
}
