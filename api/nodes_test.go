package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// TestNodesInBothFormats lists nodes as JSON and as CSV, and refuses what it does not know.
func TestNodesInBothFormats(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	r := &fakeReader{nodes: []trail.NodeSummary{{Cluster: "c1", Node: "=n1", VMs: 3, Leaving: 2, Stuck: 1, DrainingSince: since}}}
	h := api.Server{Readers: api.ForAll(r)}.Handler()
	require.JSONEq(t, `[{"cluster": "c1", "node": "=n1", "vms": 3, "leaving": 2, "stuck": 1, "loops": 0, "draining_since": "2026-11-21T01:00:00Z"}]`,
		sendGet(t, h, "/api/v1/nodes?order=vms&limit=7&name=n").Body.String())
	require.Equal(t, "cluster,node,vms,leaving,stuck,loops,draining_since,not_ready_since\nc1,'=n1,3,2,1,0,2026-11-21 01:00:00+00,\n",
		sendGet(t, h, "/api/v1/nodes?format=csv").Body.String())
	for _, query := range []string{"order=size", "limit=0", "limit=5001", "vm=x", "format=xml"} {
		w := sendGet(t, h, "/api/v1/nodes?"+query)
		require.Equal(t, http.StatusBadRequest, w.Code, query)
		problemIn(t, w)
	}
}
