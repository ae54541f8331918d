package cluster_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// outages is how often each kind of outage comes.
var outages = flag.Int("cluster.outages", 1, "how often a watch is cut, the API server killed, etcd compacted, and evictrail killed")

// gapRow is a time that evictrail says it could not see.
type gapRow struct {
	Source   string     `json:"source"`
	Cause    string     `json:"cause"`
	OpenedAt time.Time  `json:"opened_at"`
	ClosedAt *time.Time `json:"closed_at"`
}

// TestOutages moves VMs all the time while watches are cut, the API server is killed and started again, etcd forgets its history,
// and evictrail is killed: every transition is recorded, once, or there is a gap that covers its time. While evictrail cannot see,
// more migrations come and go than KubeVirt keeps, so some can't be known.
func TestOutages(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	s.Namespace(shop, nil)
	s.makeNodes("worker-1", "worker-2")
	url := storetest.NewURL(t)
	g, through := newGate(t, s.ServiceAccount(namespace, account))
	s.kubeconfig = s.Kubeconfig(through, namespace)
	p := s.startEvictrail(url)
	s.awaitReady()
	c := s.startCrowd(4, 100*time.Millisecond)
	pause := func(least, most time.Duration) { time.Sleep(least + rand.N(most-least)) }

	kinds := []struct {
		name string
		do   func()
	}{
		{"the watches are cut", g.cutConns},
		{"the way is blocked, longer than KubeVirt keeps migrations", func() {
			g.blockTraffic()
			pause(6*time.Second, 8*time.Second)
			g.allowTraffic()
		}},
		{"the API server is killed", func() {
			g.blockTraffic()
			s.KillServer()
			pause(0, time.Second)
			s.StartServer()
			g.allowTraffic()
		}},
		{"the API server is killed and etcd forgets its history", func() {
			g.blockTraffic()
			pause(time.Second, 3*time.Second)
			s.KillServer()
			s.Compact()
			s.StartServer()
			pause(time.Second, 2*time.Second)
			g.allowTraffic()
		}},
		{"evictrail is killed", func() {
			p.Kill()
			pause(time.Second, 3*time.Second)
			p = s.startEvictrail(url)
		}},
	}
	for range *outages {
		for _, k := range kinds {
			pause(time.Second, 3*time.Second)
			before := c.countTransitions()
			k.do()
			s.awaitReady()
			t.Logf("%s: %d transitions until all was well again", k.name, c.countTransitions()-before)
		}
	}
	pause(time.Second, 2*time.Second)
	truth := c.stopMovers()
	awaitNoNewEvents(t, url)
	requireRecorded(t, url, truth)
	causes := map[string]int{}
	for _, r := range loadRows[gapRow](t, url, gapsQuery) {
		causes[r.Cause]++
	}
	require.NotZero(t, causes["expired"], "the API server forgot where a watch was: %v", causes)
	require.NotZero(t, causes["not_running"], "evictrail was killed: %v", causes)
}

const gapsQuery = "SELECT source, cause, opened_at, closed_at FROM evictrail_v1.gaps"

// requireRecorded wants each transition recorded, once, or covered by a gap.
func requireRecorded(t *testing.T, url string, truth []transition) (missing int) {
	t.Helper()
	key := func(x transition) string {
		return fmt.Sprintf("%s %s %s", x.UID, x.Phase, x.At.UTC().Format(time.RFC3339))
	}
	got := map[string]int{}
	for _, r := range loadRows[transition](t, url, "SELECT migration_uid, phase, at FROM evictrail_v1.migration_phases WHERE phase <> ''") {
		got[key(r)]++
	}
	facts := loadRows[transition](t, url, "SELECT migration_uid, value AS phase, at FROM evictrail_v1.events WHERE kind = 'migration_phase'")
	gaps := loadRows[gapRow](t, url, gapsQuery)
	for _, x := range truth {
		n := got[key(x)]
		delete(got, key(x))
		require.LessOrEqual(t, n, 1, "%s of %s is doubled", x.Phase, x.UID)
		if n == 0 {
			missing++
			require.True(t, isCovered(gaps, x.At), "%s of %s at %s is neither recorded nor in a gap of %v", x.Phase, x.UID, x.At, gaps)
		}
	}
	require.Empty(t, got, "transitions that never were")
	t.Logf("%d transitions: %d recorded, %d in one of %d gaps; %d facts", len(truth), len(truth)-missing, missing, len(gaps), len(facts))
	return missing
}

// isCovered reports whether a gap in what was seen of migrations, or of everything, covers a time. Times of transitions are cut to
// seconds.
func isCovered(gaps []gapRow, at time.Time) bool {
	for _, g := range gaps {
		whose := g.Source == migrations.Resource || g.Source == namespace
		if whose && !at.Before(g.OpenedAt.Add(-time.Second)) && (g.ClosedAt == nil || !at.After(*g.ClosedAt)) {
			return true
		}
	}
	return false
}
