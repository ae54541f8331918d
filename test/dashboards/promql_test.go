package dashboards

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	promql "github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/dashboardstest"
	"github.com/evictrail/evictrail/metrics"
)

// Names that are not evictrail's own: of other exporters, of rules, and the labels that they and Prometheus add.
var (
	foreignMetrics = []string{
		"ALERTS",
		"descheduler:nodepressure:cpu:avg1m", "descheduler:nodeutilization:cpu:avg1m", "node_pressure_cpu_waiting_seconds_total",
		"kubevirt_vmi_migration_dirty_memory_rate_bytes", "kubevirt_vmi_migration_memory_transfer_rate_bytes",
		"kubevirt_vmi_migration_disk_transfer_rate_bytes", "kubevirt_vmi_migration_data_remaining_bytes",
		"evictrail:evacuations_migrated:increase30m", "evictrail:node_vmis_in_cooldown:ratio", "evictrail:migration_failures:increase1h",
		"evictrail:migrations_finished:increase1h", "evictrail:eviction_blocks:rate10m", "evictrail:commit_late:ratio_rate5m",
		"evictrail:commit_late:ratio_rate30m", "evictrail:commit_late:ratio_rate1h", "evictrail:commit_late:ratio_rate6h", "evictrail:evacuation_objective:target",
	}
	foreignLabels = []string{"cluster", "alertname", "alertstate", "severity", "instance", "le", "name"}
)

// listExportedMetrics returns the names of the metrics that there are, and their labels.
func listExportedMetrics() (names, labels []string) {
	names = []string{metrics.DeschedulerBlocksTotal, metrics.DeschedulerCooldownSeconds, metrics.DeschedulerPodsEvictedTotal}
	for _, m := range metrics.Catalogue() {
		names, labels = append(names, m.Name), append(labels, m.Labels...)
	}
	return append(names, foreignMetrics...), append(labels, foreignLabels...)
}

// TestExpressionsParseAndNameWhatExists takes every expression with one value for each variable, and with several.
func TestExpressionsParseAndNameWhatExists(t *testing.T) {
	t.Parallel()
	queries, err := dashboards.Queries()
	require.NoError(t, err)
	names, known := listExportedMetrics()
	seen := map[string]bool{}
	for _, q := range queries {
		if q.Language != dashboards.PromQL {
			continue
		}
		for _, vars := range []dashboardstest.Values{
			{"cluster": {"prod"}, "node": {"n1.example.com"}, "namespace": {"demo"}, "vmi": {"db-1"}},
			{"cluster": {"prod"}, "node": {"n1.example.com", "n2"}, "namespace": {"demo", "shop"}, "vmi": {"db-1"}},
		} {
			text, err := dashboardstest.PromQL(q.Text, time.Minute, 6*time.Hour, vars)
			require.NoError(t, err, q.Name())
			expr, err := promql.NewParser(promql.Options{}).ParseExpr(text)
			require.NoError(t, err, "%s: %s", q.Name(), text)
			require.Contains(t, []promql.ValueType{promql.ValueTypeVector, promql.ValueTypeScalar}, expr.Type(), q.Name())
			for _, name := range metricsOf(expr) {
				require.True(t, slices.Contains(names, name) || slices.Contains(names, histogramOf(name)), "%s: there is no metric %s", q.Name(), name)
				seen[name] = true
			}
			requireReplicasAreMet(t, q, expr)
			requireOneCluster(t, q, expr)
			for _, label := range labelsOf(expr) {
				require.Contains(t, known, label, "%s: there is no such label", q.Name())
			}
		}
	}
	for _, name := range foreignMetrics {
		require.True(t, seen[name], "%s is used nowhere", name)
	}
}

// ofReplica are the gauges that are about one replica, so that adding them up is right.
var ofReplica = []string{"evictrail_store_pool_connections"}

// requireReplicasAreMet wants each series of ours within an aggregation, as every replica exports it: counters, which each
// event moves once, in a sum; gauges, which all read from one database, in a max or min.
func requireReplicasAreMet(t *testing.T, q dashboards.Query, expr promql.Expr) {
	t.Helper()
	promql.Inspect(expr, func(n promql.Node, above []promql.Node) error {
		v, ok := n.(*promql.VectorSelector)
		if !ok || !strings.HasPrefix(v.Name, "evictrail_") {
			return nil
		}
		counted, how := false, promql.ItemType(0)
		for _, parent := range slices.Backward(above) {
			if call, ok := parent.(*promql.Call); ok && (call.Func.Name == "rate" || call.Func.Name == "increase") {
				counted = true
			}
			if a, ok := parent.(*promql.AggregateExpr); ok {
				how = a.Op
				break
			}
		}
		switch {
		case counted:
			require.Equal(t, promql.ItemType(promql.SUM), how, "%s: %s of all replicas", q.Name(), v.Name)
		case slices.Contains(ofReplica, v.Name):
		default:
			require.Contains(t, []promql.ItemType{promql.MAX, promql.MIN}, how, "%s: %s is the same at every replica", q.Name(), v.Name)
		}
		return nil
	})
}

// requireOneCluster wants each selector to take the series of the cluster, and those that name none.
func requireOneCluster(t *testing.T, q dashboards.Query, expr promql.Expr) {
	t.Helper()
	promql.Inspect(expr, func(n promql.Node, _ []promql.Node) error {
		if v, ok := n.(*promql.VectorSelector); ok {
			i := slices.IndexFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "cluster" })
			require.GreaterOrEqual(t, i, 0, "%s: %s of any cluster", q.Name(), v.Name)
			for cluster, wanted := range map[string]bool{"prod": true, "": true, "prod-2": false} {
				require.Equal(t, wanted, v.LabelMatchers[i].Matches(cluster), "%s: %s of cluster %q", q.Name(), v.Name, cluster)
			}
		}
		return nil
	})
}

// histogramOf is the histogram that a series of buckets, counts or sums belongs to.
func histogramOf(name string) string {
	for _, ending := range []string{"_bucket", "_count", "_sum"} {
		if cut, ok := strings.CutSuffix(name, ending); ok {
			return cut
		}
	}
	return name
}

func metricsOf(expr promql.Expr) []string {
	var out []string
	promql.Inspect(expr, func(n promql.Node, _ []promql.Node) error {
		if v, ok := n.(*promql.VectorSelector); ok {
			out = append(out, v.Name)
		}
		return nil
	})
	return out
}

// labelsOf returns the labels that are matched, grouped by, or joined on.
func labelsOf(expr promql.Expr) []string {
	var out []string
	promql.Inspect(expr, func(n promql.Node, _ []promql.Node) error {
		switch n := n.(type) {
		case *promql.VectorSelector:
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					out = append(out, m.Name)
				}
			}
		case *promql.AggregateExpr:
			out = append(out, n.Grouping...)
		case *promql.BinaryExpr:
			if n.VectorMatching != nil {
				out = append(out, n.VectorMatching.MatchingLabels...)
				out = append(out, n.VectorMatching.Include...)
			}
		}
		return nil
	})
	return out
}
