package prometheus_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/metrics"
)

var update = flag.Bool("update", false, "rewrite testdata/texts.txt")

// exampleLabels and exampleValues are what the texts are written with. A value that is not here is 3.
var (
	exampleLabels = map[string]string{
		"cluster": "prod", "node": "worker-12", "namespace": "shop", "vmi": "db-1", "requester": "node_maintenance", "answer": "already_marked",
		"scope": "node", "reason": "DisksNotLiveMigratable", "blocker": "cluster_limit", "resource": "virtualmachineinstances", "peer": "apiserver",
		"metric": "evictrail_vmi_cooldown_seconds", "pod": "evictrail-0", "instance": "10.0.0.7:8080", "kind": "migration_phase", "cause": "gc_before_seen",
		"measure": "migrations_failed", "activity": "evictions", "receiver": "cloudevents",
	}
	exampleCauses = map[string]string{"EvictrailHistoryBroken": "cluster_restored", "EvictrailGuestLost": "node_pressure"} // by alert, where it is another set
	exampleValues = map[string]float64{
		"EvictrailExternalEvictionUnanswered": 2160, "EvictrailEvictionBlockStorm": 48.123, "EvictrailNodeRebalanceExhausted": 0.9,
		"EvictrailMigrationQueueSaturated": 2700, "EvictrailMigrationFailuresControlPlane": 0.25, "EvictrailMigrationFailuresDataPlane": 0.3333,
		"EvictrailAbsent": 0, "EvictrailWatchStale": 372, "EvictrailAuditStreamSilent": 1860, "EvictrailClockSkew": 2.5, "EvictrailSpoolGrowing": 0.25,
		"EvictrailSpoolNearlyFull": 0.61, "EvictrailFreshnessBudgetBurn": 0.018, "EvictrailPartitionRunway": 561600, "EvictrailStoreDown": 0,
		"EvictrailEvacuationObjectiveBurn": 0.2, "EvictrailEvacuationOrphaned": 0, "EvictrailNonMigratableBlocksDrain": 1, "EvictrailPostCopyIrrecoverable": 1.034, "EvictrailEventLoss": 2.07,
		"EvictrailUselessMoves": 0.625, "EvictrailClusterStandsOut": 0.31, "EvictrailLoopsInClusters": 4, "EvictrailActivityStorm": 312.4, "EvictrailNodesOscillate": 1,
		"EvictrailVMMovedOften": 9, "EvictrailVMMigrationsFail": 6, "EvictrailNoticesFailing": 180,
	}
)

// TestTextsReadWell writes every text as Prometheus would and compares it with testdata/texts.txt, which is there to be read.
func TestTextsReadWell(t *testing.T) {
	t.Parallel()
	known := knownShapes()
	var out strings.Builder
	o := alerts.DefaultOptions()
	o.DashboardURL, o.PublicURL = "https://grafana.example", "https://evictrail.example"
	for _, group := range alerts.Groups(o) {
		for _, rule := range group.Rules {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			require.NoError(t, err)
			left, err := known.exprLabels(expr)
			require.NoError(t, err)
			if rule.Record != "" {
				known[rule.Record] = metrics.Metric{Type: metrics.Gauge, Labels: left}
				continue
			}
			texts := renderAnnotations(t, rule, left)
			require.Less(t, len(texts["summary"]), 90, texts["summary"])
			dashboard, err := url.Parse(texts["dashboard_url"])
			require.NoError(t, err)
			for _, label := range []string{"cluster", "node", "namespace", "vmi"} {
				if slices.Contains(left, label) {
					require.Equal(t, exampleLabels[label], dashboard.Query().Get("var-"+label), "%s: %s", rule.Alert, dashboard)
				}
			}
			require.Equal(t, "now-6h", dashboard.Query().Get("from"))
			page, err := url.Parse(texts["page_url"])
			require.NoError(t, err)
			require.Equal(t, slices.Contains(left, "cluster"), page.Query().Get("cluster") == exampleLabels["cluster"], page)
			_, _ = fmt.Fprintf(&out, "%s (%s)\n  %s\n  %s\n  %s\n  %s\n\n", rule.Alert, rule.Labels["severity"], texts["summary"], texts["description"], texts["dashboard_url"], texts["page_url"])
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/texts.txt", []byte(out.String()), 0o644))
		return
	}
	want, err := os.ReadFile("testdata/texts.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run with -update and read the difference")
}

// renderAnnotations returns the annotations of an alert whose series has these labels.
func renderAnnotations(t *testing.T, rule alerts.Rule, left []string) map[string]string {
	t.Helper()
	has := map[string]string{}
	for _, label := range left {
		has[label] = exampleLabels[label]
		if cause := exampleCauses[rule.Alert]; label == metrics.LabelCause && cause != "" {
			has[label] = cause
		}
	}
	return expandAnnotations(t, rule, has)
}

// expandAnnotations returns the annotations of an alert of a series.
func expandAnnotations(t *testing.T, rule alerts.Rule, series map[string]string) map[string]string {
	t.Helper()
	value, known := exampleValues[rule.Alert]
	if !known {
		value = 3
	}
	out := map[string]string{}
	for name, text := range rule.Annotations {
		const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$value := .Value}}"
		data := template.AlertTemplateData(series, nil, "", promql.Sample{F: value})
		query := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
		expanded, err := template.NewTemplateExpander(t.Context(), names+text, rule.Alert, data, 0, query, nil, nil).Expand()
		require.NoError(t, err, rule.Alert)
		require.NotContains(t, expanded, "<no value>")
		out[name] = expanded
	}
	return out
}
