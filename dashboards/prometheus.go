package dashboards

import (
	"strconv"
	"strings"

	prom "github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"github.com/evictrail/evictrail/metrics"
)

// prometheusType is the type of Grafana's data source plugin.
const prometheusType = "prometheus"

// The recorded series of our own rules (deploy/alerts/rules.yaml).
const (
	recordMigrated        = "evictrail:evacuations_migrated:increase30m"
	recordCoolingRatio    = "evictrail:node_vmis_in_cooldown:ratio"
	recordFailures1h      = "evictrail:migration_failures:increase1h"
	recordFinished1h      = "evictrail:migrations_finished:increase1h"
	recordBlocksRate      = "evictrail:eviction_blocks:rate10m"
	recordTarget          = "evictrail:evacuation_objective:target"
	recordLateRatioPrefix = "evictrail:commit_late:ratio_rate" // and 5m, 30m, 1h or 6h
)

// What others export: the only names here that are no constants of package metrics.
//
// Sources: Prometheus' own series of alerts; kubevirt/kubevirt docs/observability/metrics.md; cluster-kube-descheduler-operator
// bindata/assets/kube-descheduler/prometheusrule.yaml; prometheus/node_exporter collector/pressure_linux.go.
const (
	foreignAlerts          = "ALERTS"
	foreignDirtyRate       = "kubevirt_vmi_migration_dirty_memory_rate_bytes"
	foreignTransferRate    = "kubevirt_vmi_migration_memory_transfer_rate_bytes"
	foreignTransferRateOld = "kubevirt_vmi_migration_disk_transfer_rate_bytes" // the same, up to KubeVirt v1.6
	foreignDataRemaining   = "kubevirt_vmi_migration_data_remaining_bytes"
	foreignPressureCPU     = "descheduler:nodepressure:cpu:avg1m"
	foreignUtilisationCPU  = "descheduler:nodeutilization:cpu:avg1m"
	foreignNodeExporterCPU = "node_pressure_cpu_waiting_seconds_total"
)

// Labels that others add: Prometheus to what it scrapes, alerts to their series.
const (
	labelAlertName  = "alertname"
	labelAlertState = "alertstate"
	labelSeverity   = "severity"
	labelInstance   = "instance"
	labelLe         = "le"
	labelName       = "name" // KubeVirt's for the name of a VMI
	labelStep       = "step" // of the pipeline, in its table
)

// The nodes and namespaces of the variables, as matchers.
var (
	onNodes      = matchRegexp(metrics.LabelNode, "$node")
	inNamespaces = matchRegexp(metrics.LabelNamespace, "$namespace")
)

// selectSeries selects the series of a metric.
func selectSeries(name string, matchers ...string) string {
	if len(matchers) == 0 {
		return name
	}
	return name + "{" + strings.Join(matchers, ", ") + "}"
}

func matchLabel(label, value string) string  { return label + "=" + strconv.Quote(value) }
func matchRegexp(label, value string) string { return label + "=~" + strconv.Quote(value) }

// maxBy takes the largest over replicas, which all report the same about the database.
func maxBy(expr string, labels ...string) string { return aggregateExpr("max", expr, labels) }

// sumBy adds up what each replica counted.
func sumBy(expr string, labels ...string) string { return aggregateExpr("sum", expr, labels) }

func aggregateExpr(how, expr string, labels []string) string {
	if len(labels) == 0 {
		return how + "(" + expr + ")"
	}
	return how + " by (" + strings.Join(labels, ", ") + ") (" + expr + ")"
}

// rateOf and increase are of what a panel draws: over an interval that always holds enough scrapes.
func rateOf(selector string) string     { return "rate(" + selector + "[$__rate_interval])" }
func increaseOf(selector string) string { return "increase(" + selector + "[$__rate_interval])" }

// overRange is the increase over the whole time range.
func overRange(selector string) string { return "increase(" + selector + "[$__range])" }

// computeP99 is the 99th percentile of a histogram with classic buckets.
func computeP99(histogram string, labels ...string) string {
	return "histogram_quantile(0.99, " + sumBy(rateOf(histogram+"_bucket"), append([]string{labelLe}, labels...)...) + ")"
}

// ofClusterSeries matches the series of the cluster of the variable, and those without a label cluster: who has one cluster in a Prometheus needs none.
const ofClusterSeries = VarCluster + `=~"$` + VarCluster + `|"`

// filterCluster adds the cluster to every selector of an expression.
func filterCluster(expr string) string {
	var out strings.Builder
	end := 0
	for _, at := range metricsIn.FindAllStringIndex(expr, -1) {
		out.WriteString(expr[end:at[1]])
		if end = at[1]; strings.HasPrefix(expr[end:], "{") {
			end++
			out.WriteString("{" + ofClusterSeries + ", ")
		} else {
			out.WriteString("{" + ofClusterSeries + "}")
		}
	}
	return out.String() + expr[end:]
}

// queryRange asks for a series over the time range.
func queryRange(refID, expr, legend string) *prom.DataqueryBuilder {
	return prom.NewDataqueryBuilder().Datasource(prometheusSource()).RefId(refID).Expr(filterCluster(expr)).LegendFormat(legend).Range().EditorMode(prom.QueryEditorModeCode)
}

// queryInstant asks for the value at the end of the time range.
func queryInstant(refID, expr, legend string) *prom.DataqueryBuilder {
	return prom.NewDataqueryBuilder().Datasource(prometheusSource()).RefId(refID).Expr(filterCluster(expr)).LegendFormat(legend).Instant().EditorMode(prom.QueryEditorModeCode)
}

// rowsOf asks for the values at the end of the time range, as rows of a table.
func rowsOf(refID, expr string) *prom.DataqueryBuilder {
	return queryInstant(refID, expr, "").Format(prom.PromQueryFormatTable)
}

// bucketsOf asks for the buckets of a histogram as a heatmap takes them.
func bucketsOf(refID, expr string) *prom.DataqueryBuilder {
	return queryRange(refID, expr, "{{"+labelLe+"}}").Format(prom.PromQueryFormatHeatmap)
}

// orZero makes an expression 0 where it has no series, but only while evictrail is scraped: a dead collector shows nothing
// instead of a calm zero.
func orZero(expr string) string {
	return "(" + expr + ") or on () (0 * max(" + metrics.StateTimestamp + "))"
}
