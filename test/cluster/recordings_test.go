package cluster_test

import (
	"flag"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// chosen are the recordings that are written: by default an eviction that goes well, a dual retry loop and a drain.
var chosen = flag.String("cluster.recordings", "a-descheduler-eviction-success,b-dual-retry-loop,c-node-drain",
	"recordings to write into the API server, separated by commas; all: each of them")

// TestRecordings writes recordings into an API server as those did who made them, users with their certificates, and compares
// what evictrail recorded with what really happened.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, name := range listRecordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := recording.Open(evictrail.Recordings(), name, nil)
			require.NoError(t, err)
			s := newSite(t, siteOptions{version: versionOf(t, rec)})
			p := newPlayer(t, s, rec)
			url := storetest.NewURL(t)
			s.startEvictrail(url, "--descheduler-configmap", policyNamespace+"/"+policyName)
			s.awaitReady()
			p.play()
			awaitNoNewEvents(t, url)
			require.Empty(t, loadRows[any](t, url, "SELECT * FROM evictrail_v1.gaps"))
			compareRecording(t, url, name, p.clock)
		})
	}
}

func listRecordings(t *testing.T) []string {
	t.Helper()
	if *chosen != "all" {
		return strings.Split(*chosen, ",")
	}
	folders, err := fs.ReadDir(evictrail.Recordings(), ".")
	require.NoError(t, err)
	var out []string
	for _, f := range folders {
		out = append(out, f.Name())
	}
	require.NotEmpty(t, out)
	return out
}

// versionOf returns which KubeVirt was recorded.
func versionOf(t *testing.T, rec *recording.Recording) string {
	t.Helper()
	i := slices.IndexFunc(rec.Lines, func(l recording.Line) bool { return l.Resource == kubevirts.Resource && l.Object != nil })
	require.GreaterOrEqual(t, i, 0)
	_, rest, found := strings.Cut(strings.ReplaceAll(string(rec.Lines[i].Object), " ", ""), `"observedKubeVirtVersion":"`)
	require.True(t, found)
	version, _, _ := strings.Cut(rest, `"`)
	return version
}

// awaitNoNewEvents waits until nothing new was stored for some seconds.
func awaitNoNewEvents(t *testing.T, url string) {
	t.Helper()
	before, since := -1, time.Now()
	require.Eventually(t, func() bool {
		count := loadRows[struct{ Count int }](t, url, "SELECT count(*) FROM evictrail_v1.events")[0].Count
		if count != before {
			before, since = count, time.Now()
		}
		return time.Since(since) > 4*time.Second
	}, time.Minute, 500*time.Millisecond)
}
