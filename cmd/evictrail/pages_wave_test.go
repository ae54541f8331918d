package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestWaveOnTheFrontPage shows an upgrade wave on the page of its cluster while it goes on, and not when it is over.
func TestWaveOnTheFrontPage(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	run := sim.NewUpgraded(1)
	tr := tracker.New("c1")
	var facts []trail.Fact
	for _, o := range run.Observations {
		facts = append(facts, tr.Observe(o)...)
	}
	s := storetest.New(t)
	server := httptest.NewServer(newReadServer(t.Context(), onlyPrimary(t, s), slog.New(slog.DiscardHandler)).Handler())
	t.Cleanup(server.Close)
	middle := slices.IndexFunc(
		facts,
		func(f trail.Fact) bool { return f.ObservedAt.After(run.Upgrades[0].Add(4 * time.Minute)) },
	)
	storetest.Record(t, s, facts[:middle])
	o, err := s.Overview(t.Context(), "c1", time.Time{}, time.Hour, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, o.Wave)
	page := fetchPage(t, server, "/?cluster=c1")
	require.Contains(t, page.text, "Upgrade wave in progress")
	require.Contains(t, page.names["/upgrade-waves?cluster=c1&state=open"], "KubeVirt ")
	require.Contains(t, page.text, trail.UpperFirst(o.Wave.Summary)+".")
	require.Contains(t, page.text, fmt.Sprintf("%d of %d left", o.Wave.Left, o.Wave.VMs), "%s", page.text)
	require.Equal(t, 1, fetchPage(t, server, "/upgrade-waves?cluster=c1&state=open").rows)

	storetest.Record(t, s, facts[middle:])
	require.NotContains(t, fetchPage(t, server, "/?cluster=c1").text, "Upgrade wave in progress")
}
