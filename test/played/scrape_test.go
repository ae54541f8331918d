package played_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/ports"
)

// TestScrape runs the service on a cluster that stands still at the end of a recording, and has a Prometheus scrape it and
// evaluate the generated rules.
func TestScrape(t *testing.T) {
	t.Parallel()
	rec, err := recording.Open(evictrail.Recordings(), "k-blocked-slot", nil)
	require.NoError(t, err)
	api := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		api.Release(i)
	}
	cluster := httptest.NewServer(api)
	t.Cleanup(cluster.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, cluster.URL), 0o600))
	address := ports.Free(t)
	startProgram(t, "evictrail", "run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", address, "--database-url", storetest.NewURL(t), "--spool-dir", t.TempDir())
	rules, err := filepath.Abs(root + "/deploy/alerts/rules.yaml")
	require.NoError(t, err)
	s := startPrometheus(t, t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- job_name: evictrail
  honor_labels: true
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
  static_configs: [{targets: [%q]}]
`, rules, address))

	eventually := func(expr string) {
		t.Helper()
		var r result
		require.Eventually(t, func() bool {
			r, err = s.queryNow(t, expr)
			require.NoError(t, err, expr)
			return len(r.Result) > 0
		}, time.Minute, 200*time.Millisecond, expr)
	}
	eventually(`up{job="evictrail"} == 1`)
	eventually(metrics.WatchSynced + ` == 1`)
	eventually(metrics.VMIMarkedTimestamp + `{namespace="demo"} > 0`)
	eventually(metrics.NodeVMIs + ` > 0`)
	eventually(metrics.Leader + ` == 1`)
	eventually(metrics.StoreUp + ` == 1`)
	eventually(metrics.PartitionAheadSeconds + ` > 7 * 86400`)
	eventually(metrics.SchemaVersion + ` == ` + metrics.SchemaVersionExpected)
	eventually(`abs(` + metrics.ClockSkewSeconds + `{peer="postgres"}) < 2`)
	eventually(`abs(` + metrics.ClockSkewSeconds + `{peer="apiserver"}) < 2`)
	eventually(`sum(` + metrics.FactsTotal + `{stage="committed"}) > 100`)
	eventually(`histogram_count(sum(` + metrics.CommitLagSeconds + `)) > 100`) // a native histogram
	eventually(`sum(` + metrics.CommitLagSeconds + `_bucket{le="5.0"}) > 100`) // with classic buckets
	eventually(metrics.HTTPRequestDurationSeconds + `_count{route="/metrics"} > 1`)
	eventually(`evictrail_build_info`)
	eventually(`process_start_time_seconds{job="evictrail"}`)
	moved, err := s.queryNow(t, `sum(`+metrics.MigrationsTotal+`)`)
	require.NoError(t, err)
	require.Equal(t, "0", moved.Result[0].Value[1], "what the first list shows is history")

	eventually(`ALERTS{alertname="EvictrailEvacuationStuck", alertstate="firing"}`) // the recorded mark is weeks old, and stands

	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, Type, State string }
		}
	}
	require.Eventually(t, func() bool {
		require.NoError(t, s.callAPI(t, "rules", nil, &loaded))
		for _, g := range loaded.Groups {
			for _, r := range g.Rules {
				if r.Health == "unknown" {
					return false
				}
			}
		}
		return true
	}, time.Minute, 200*time.Millisecond)
	require.NotEmpty(t, loaded.Groups)
	for _, g := range loaded.Groups {
		for _, r := range g.Rules {
			require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			if r.Name != "EvictrailEvacuationStuck" {
				require.NotEqual(t, "firing", r.State, r.Name)
			}
		}
	}

	answer, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NotContains(t, string(text), "_created", "created timestamps are for protobuf: as text they would be series")
}
