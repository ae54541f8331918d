package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
)

func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.Watch("pods", "Pod")
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP evictrail_watch_restarts_total [ALPHA] Restarts of a watch, by cause.
# TYPE evictrail_watch_restarts_total counter
evictrail_watch_restarts_total{reason="closed",resource="pods"} 0
evictrail_watch_restarts_total{reason="error",resource="pods"} 0
evictrail_watch_restarts_total{reason="expired",resource="pods"} 0
`), metrics.WatchRestartsTotal))
	n, err := testutil.GatherAndCount(reg, metrics.FactsTotal)
	require.NoError(t, err)
	require.Zero(t, n, "a kind of fact has no series before the first")
}

// TestEveryMetricIsExportedAsTheCatalogueSays compares what a busy cluster exports with the catalogue.
func TestEveryMetricIsExportedAsTheCatalogueSays(t *testing.T) {
	t.Parallel()
	reg := bigCluster(bigState(3))
	hub := metrics.NewHub(reg)
	hub.Up("east", true)
	hub.Asked("east", "2xx", time.Millisecond)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := reg.Gather()
	require.NoError(t, err)
	exported := map[string]*dto.MetricFamily{}
	for _, f := range families {
		exported[f.GetName()] = f
	}
	for _, m := range metrics.Catalogue() {
		f := exported[m.Name]
		require.NotNil(t, f, m.Name)
		require.Equal(t, string(m.Type), strings.ToLower(f.GetType().String()), m.Name)
		require.Equal(t, m.ExportedHelp(), f.GetHelp())
		for _, s := range f.Metric {
			var labels []string
			for _, l := range s.Label {
				labels = append(labels, l.GetName())
			}
			require.ElementsMatch(t, m.Labels, labels, m.Name)
		}
		delete(exported, m.Name)
	}
	require.Empty(t, exported, "every metric that is exported is in the catalogue")
}
