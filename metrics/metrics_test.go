package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
# HELP evictrail_watch_restarts_total How often a watch started again, by cause.
# TYPE evictrail_watch_restarts_total counter
evictrail_watch_restarts_total{reason="closed",resource="pods"} 0
evictrail_watch_restarts_total{reason="error",resource="pods"} 0
evictrail_watch_restarts_total{reason="expired",resource="pods"} 0
`), metrics.WatchRestartsTotal))
	n, err := testutil.GatherAndCount(reg, metrics.FactsTotal)
	require.NoError(t, err)
	require.Equal(t, 28*3, n, "each kind of fact starts at zero in each stage")
}
