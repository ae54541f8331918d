package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// rowsOfAPI returns how many rows the API has at an address.
func rowsOfAPI(t *testing.T, server *httptest.Server, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+address, nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode, address)
	var rows []json.RawMessage
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&rows))
	return len(rows)
}

// TestListPagesShowWhatTheAPIHas reads each list page by page: together they have the rows that the API has at the address that the page links to, with filters
// and without.
func TestListPagesShowWhatTheAPIHas(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	_, server := serveSite(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	for _, c := range []struct {
		list  string
		query url.Values
		least int // rows
	}{
		{"vms", nil, 10},
		{"vms", url.Values{"node": {"worker-1"}, "cluster": {"b-dual-retry-loop-v1.8"}}, 1},
		{"nodes", url.Values{"name": {"worker"}, "order": {"vms"}}, 5},
		{"loops", url.Values{"kind": {"dual_retry"}, "state": {"closed"}}, 1},
		{"evacuations", url.Values{"namespace": {"demo"}, "limit": {"3"}}, 5},
		{"migrations", url.Values{"phase": {"Failed"}, "order": {"oldest"}, "limit": {"2"}}, 5},
		{"requests", url.Values{"requester_class": {"descheduler"}}, 1},
		{"drains", nil, 1},
		{"downtimes", nil, 1},
		{"cooldowns", url.Values{"layer": {"kubevirt_backoff"}, "vm": {"demo/vm-d"}}, 1},
		{"gaps", nil, 0},
	} {
		address, rows, api := "/"+c.list+"?"+c.query.Encode(), 0, ""
		for address != "" {
			page := fetchPage(t, server, address)
			require.Equal(t, http.StatusOK, page.status, address)
			rows += page.rows
			address = ""
			for _, link := range page.links {
				u, err := url.Parse(link)
				require.NoError(t, err)
				if u.Path == "/"+c.list && u.Query().Has("page") {
					address = link
				}
				if strings.HasPrefix(u.Path, "/api/v1/") && u.Query().Get("format") == "json" {
					api = link
				}
			}
		}
		require.GreaterOrEqual(t, rows, c.least, "%s %v", c.list, c.query)
		require.Equal(t, rowsOfAPI(t, server, api), rows, "%s %v: %s", c.list, c.query, api)
	}
	front := fetchPage(t, server, "/?cluster=c-node-drain")
	for _, list := range []string{"vms", "nodes", "loops", "evacuations", "migrations", "requests", "drains", "cooldowns", "gaps"} {
		require.True(t, slices.Contains(front.links, "/"+list+"?cluster=c-node-drain"), list)
	}
	require.Contains(t, fetchPage(t, server, "/vms?cluster=k-blocked-slot").text, "failed attempts")
	require.Equal(t, http.StatusBadRequest, fetchPage(t, server, "/loops?knd=dual_retry").status, "a filter that does not filter")
}
