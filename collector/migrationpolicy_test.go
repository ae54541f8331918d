package collector

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

const policyJSON = `{"metadata":{"name":"slow-guests","uid":"mp1","resourceVersion":"7","creationTimestamp":"2026-11-20T00:00:00Z"},"spec":{
	"selectors":{"namespaceSelector":{"team":"shop"},"virtualMachineInstanceSelector":{"speed":"slow"}},
	"allowAutoConverge":true,"bandwidthPerMigration":"0.5Gi","completionTimeoutPerGiB":800,"allowPostCopy":false,"allowWorkloadDisruption":true}}`

// TestMigrationPolicyIsRead decodes every field of a MigrationPolicy, and hides its labels where it is recorded with pseudonyms.
func TestMigrationPolicyIsRead(t *testing.T) {
	t.Parallel()
	observed, err := Decode("migrationpolicies", []byte(policyJSON))
	require.NoError(t, err)
	yes, no, seconds := true, false, int64(800)
	created := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	require.Equal(t, tracker.MigrationPolicyObservation{
		Meta: tracker.Meta{UID: "mp1", Name: "slow-guests", ResourceVersion: "7", CreatedAt: created},
		Settings: trail.MigrationPolicySettings{
			Namespaces: map[string]string{"team": "shop"}, VMIs: map[string]string{"speed": "slow"}, AllowAutoConverge: &yes, AllowPostCopy: &no,
			AllowWorkloadDisruption: &yes, Bandwidth: "512Mi", CompletionTimeoutPerGiB: &seconds,
		},
	}, observed(tracker.Seen{}))

	r, _ := findResource("migrationpolicies")
	kept, err := shapeOfObject(r.slim()).pruneJSON([]byte(policyJSON))
	require.NoError(t, err)
	hidden := NewRedactor().Value(kept).(map[string]any)["spec"].(map[string]any)
	require.NotContains(t, hidden["selectors"].(map[string]any)["virtualMachineInstanceSelector"], "speed")
	require.NotContains(t, hidden["selectors"].(map[string]any)["namespaceSelector"], "team")
	require.Equal(t, "0.5Gi", hidden["bandwidthPerMigration"])
}

// TestAbsentMigrationPolicies watches a cluster whose KubeVirt has no MigrationPolicies, and that then gets them: that is no gap, nothing is unseen
// during that time, it is logged once, and it is asked for again only now and then.
func TestAbsentMigrationPolicies(t *testing.T) {
	t.Parallel()
	a, sink, log := newAPI(), &sink{}, &lockedBuffer{}
	a.setAnswer("migrationpolicies", http.StatusNotFound)
	a.setAnswer("virtualmachineinstances", 0, vmiJSON("db", "7", ""))
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/migrationpolicies") {
			asked.Add(1)
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{
		REST: &rest.Config{Host: server.URL}, Tracker: tracker.New("test"), Sink: sink, Log: slog.New(slog.NewTextHandler(log, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()), Clock: func() time.Time { return time.Now().UTC() },
		Backoff: &wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1, Steps: 1}, UnseenAfter: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	optional := &c.feeds[slices.IndexFunc(c.feeds, func(f *feed) bool { return f.name == "migrationpolicies" })].optional
	require.Equal(t, 5*time.Minute, *optional)
	*optional = time.Second
	r := &running{Collector: c, log: log}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- c.Run(ctx) }()

	all := func() bool { return len(c.Unready()) == 0 }
	r.requireEventually(t, "it is absent", func() bool { return len(c.Watches()) == len(resources)-1 })
	r.requireEventually(t, "all else is seen", all)
	require.Equal(t, -1, slices.IndexFunc(c.Watches(), func(w trail.WatchSign) bool { return w.Source == "migrationpolicies" }))
	time.Sleep(300 * time.Millisecond)
	require.LessOrEqual(t, asked.Load(), int32(4), "it is asked for now and then: by a watch that lists, and a list")
	a.setAnswer("migrationpolicies", 0, policyJSON)
	r.requireEventually(t, "it is there", func() bool { return len(c.Watches()) == len(resources) && all() })
	require.NoError(t, c.Flush(t.Context()))
	require.Equal(t, 1, sink.countKinds()[trail.KindConfigSeen])
	require.Zero(t, sink.countKinds()[trail.KindGapOpened], log)
	require.Equal(t, 1, strings.Count(log.String(), "not installed"))
	require.NotContains(t, log.String(), "watch refused")
	stop()
	require.NoError(t, <-done)
}
