package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestComparePage compares clusters on a page: as the command does, over other days, by version, and for who asks for what cannot be read.
func TestComparePage(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	_, server := serveSite(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	page := fetchPage(t, server, "/compare?since=2026-11-20")
	require.Equal(t, http.StatusOK, page.status)
	require.Equal(t, 4, page.rows)
	require.Equal(t, "c-node-drain", page.names["/?cluster=c-node-drain"])
	require.Contains(t, page.text, "Whole days from 2026-11-21 to 2026-11-21, UTC.")
	require.Equal(t, "Compare", fetchPage(t, server, "/").names["/compare"])
	page = fetchPage(t, server, "/compare?since=2026-11-20&kubevirt=v0.9")
	require.Contains(t, page.text, "No day was counted in this time of a cluster with KubeVirt v0.9.")
	require.Contains(t, page.links, "/compare?kubevirt=v0.9&since=365d")
	page = fetchPage(t, server, "/compare?since=soon")
	require.Equal(t, http.StatusBadRequest, page.status)
}
