package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestLimitsPage reads whether limits fit on a page, in the words of the command: of all clusters and of one.
func TestLimitsPage(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url, server := serveSite(t, "b-dual-retry-loop-v1.8", "k-blocked-slot")
	for _, cluster := range []string{"b-dual-retry-loop-v1.8", "k-blocked-slot"} {
		code, out, stderr := runCommand(t, "limits", "--cluster", cluster, "--database-url", url)
		require.Equal(t, exitFound, code, stderr)
		page := fetchPage(t, server, "/limits?cluster="+cluster)
		require.Equal(t, http.StatusOK, page.status)
		require.Equal(t, 4, page.rows, "the limits in force, and three others")
		_, said, _ := strings.Cut(out, ":\n") // behind "As of"
		said, _, _ = strings.Cut(said, "\n\n")
		require.NotEmpty(t, said)
		for _, sentence := range strings.SplitAfter(strings.Join(strings.Fields(said), " "), ". ") {
			require.Contains(t, page.text, strings.TrimSpace(sentence))
		}
		require.Contains(t, page.text, "Not part of it: ")
		require.Contains(t, page.links, "/api/v1/clusters/limits?cluster="+cluster)
		require.Equal(
			t,
			"Do the limits on parallel migrations fit?",
			fetchPage(t, server, "/queue?cluster="+cluster).names["/limits?cluster="+cluster],
		)
		require.Contains(t, fetchPage(t, server, "/?cluster="+cluster).links, "/limits?cluster="+cluster)
	}
	all := fetchPage(t, server, "/limits")
	require.Equal(t, 8, all.rows)
	require.Equal(t, "k-blocked-slot", all.names["/limits?cluster=k-blocked-slot"])
	none := fetchPage(t, server, "/limits?cluster=nope")
	require.Equal(t, http.StatusNotFound, none.status)
	require.Contains(t, none.text, "No record of cluster nope.")
}
