package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/deploy"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// parseObject reads the one document of a text.
func parseObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

// TestPrometheusRule: the rules are those that are generated, for the namespace that evictrail is in.
func TestPrometheusRule(t *testing.T) {
	t.Parallel()
	rule := byKey(t, renderChart(t, chart, "testdata/small.yaml", "--set=prometheusRule.enabled=true"))["PrometheusRule/evictrail/evictrail"]
	require.NotNil(t, rule)
	require.Equal(t, parseObject(t, readFile(t, "deploy/alerts/prometheusrule.yaml"))["spec"], rule.Object["spec"])

	o := alerts.DefaultOptions()
	o.Namespace, o.DashboardURL, o.PublicURL = "observability", "https://grafana.example", "https://evictrail.example"
	want, err := alerts.PrometheusRule(alerts.Groups(o), "evictrail", o.Namespace, nil)
	require.NoError(t, err)
	for _, grafana := range []string{"grafanaURL", "prometheusRule.dashboardURL"} {
		rule = byKey(t, renderChart(t, chart, "testdata/small.yaml", "--namespace=observability",
			"--set=prometheusRule.enabled=true,publicURL=https://evictrail.example,"+grafana+"=https://grafana.example/"))["PrometheusRule/observability/evictrail"]
		require.Equal(t, parseObject(t, want)["spec"], rule.Object["spec"])
	}
}

// TestRulesKnowTheJob: Prometheus calls the scrape what the rules call it, however the release is called.
func TestRulesKnowTheJob(t *testing.T) {
	t.Parallel()
	all := byKey(t, renderChart(t, chart, "testdata/small.yaml", "--set=serviceMonitor.enabled=true,fullnameOverride=recorder,nameOverride=recorder"))
	monitor := all["ServiceMonitor/evictrail/recorder"]
	label := monitor.Object["spec"].(map[string]any)["jobLabel"].(string)
	service := all["Service/evictrail/recorder-pods"]
	require.Equal(t, alerts.DefaultOptions().Job, service.GetLabels()[label])
	selector := monitor.Object["spec"].(map[string]any)["selector"].(map[string]any)["matchLabels"].(map[string]any)
	for name, value := range selector {
		require.Equal(t, value, service.GetLabels()[name])
	}
	require.NotEqual(t, selector["app.kubernetes.io/component"], all["Service/evictrail/recorder"].GetLabels()["app.kubernetes.io/component"], "each pod is scraped once")
}

// TestAlertmanagerTemplates: they are those that are tested with Alertmanager, where it mounts them.
func TestAlertmanagerTemplates(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/small.yaml", "--set=alertmanagerTemplates.enabled=true,alertmanagerTemplates.namespace=monitoring")
	c := findObject[corev1.ConfigMap](t, text, "ConfigMap", "evictrail-alertmanager")
	require.Equal(t, "monitoring", c.Namespace)
	require.Equal(t, strings.TrimSpace(readFile(t, "deploy/alertmanager/evictrail.tmpl")), strings.TrimSpace(c.Data["evictrail.tmpl"]))
}

// TestLinksOfPages: the recorder knows where Grafana and the console are.
func TestLinksOfPages(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/small.yaml", "--set=grafanaURL=https://grafana.example", `--set-json=consoleURLs=["https://console.example/{node}"]`)
	args := findObject[appsv1.StatefulSet](t, text, "StatefulSet", "evictrail").Spec.Template.Spec.Containers[0].Args
	require.Contains(t, args, "--grafana-url=https://grafana.example")
	require.Contains(t, args, "--console-url=https://console.example/{node}")
}

// TestDashboards: each is there as it is generated, for the sidecar of Grafana's chart.
func TestDashboards(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/small.yaml", "--set=dashboards.enabled=true,dashboards.namespace=monitoring")
	files, err := filepath.Glob(filepath.Join(root, "deploy/dashboards/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		name := filepath.Base(path)
		c := findObject[corev1.ConfigMap](t, text, "ConfigMap", strings.TrimSuffix(name, ".json"))
		require.Equal(t, "monitoring", c.Namespace)
		require.Equal(t, "1", c.Labels["grafana_dashboard"])
		require.JSONEq(t, readFile(t, "deploy/dashboards/"+name), c.Data[name])
		require.True(t, json.Valid([]byte(c.Data[name])))
	}

	text = renderChart(t, chart, "testdata/small.yaml", "--set=dashboards.enabled=true,publicURL=https://evictrail.example/")
	for _, d := range dashboards.All() {
		want, err := d.LinkPages("https://evictrail.example").JSON()
		require.NoError(t, err)
		require.JSONEq(t, string(want), findObject[corev1.ConfigMap](t, text, "ConfigMap", d.UID).Data[d.UID+".json"])
	}
}

// TestManifests: what the chart makes of the manifests is what "evictrail generate manifests" does.
func TestManifests(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/full.yaml")
	o := deploy.DefaultOptions()
	o.Secret = "put-here-the-secret-admission-path" // which nobody is asked for here
	generate := func(name string) string {
		text, err := deploy.YAML(name, o)
		require.NoError(t, err)
		return text
	}
	var observer admissionv1.ValidatingWebhookConfiguration
	require.NoError(t, yaml.UnmarshalStrict([]byte(generate(deploy.Observer)), &observer))
	require.Equal(t, observer.Webhooks, findObject[admissionv1.ValidatingWebhookConfiguration](t, text, "ValidatingWebhookConfiguration", observer.Name).Webhooks)

	reason := byKey(t, generate(deploy.EvictionReason))
	for name, object := range byKey(t, text) {
		if strings.HasPrefix(name, "ValidatingAdmissionPolicy") {
			require.Equal(t, reason[name].Object["spec"], object.Object["spec"])
			delete(reason, name)
		}
	}
	require.Empty(t, reason)

	audit := findObject[corev1.ConfigMap](t, text, "ConfigMap", "evictrail-audit").Data
	for _, name := range []string{deploy.AuditPolicy, deploy.AuditWebhook} {
		require.Equal(t, strings.TrimSpace(generate(name)), strings.TrimSpace(audit[name+".yaml"]))
	}
}
