package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// generateAlerts runs "generate alerts" with these arguments.
func generateAlerts(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runGenerate(t, append([]string{"alerts"}, args...)...)
}

func TestGenerateAlertsPrints(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		has  []string
		not  []string
	}{
		{"a PrometheusRule by default", nil, []string{
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: evictrail\n  namespace: evictrail\nspec:\n  groups:\n", "alert: EvictrailAbsent",
		}, []string{"  labels:\n    release"}},
		{"its labels, in order", []string{"--labels", "release=kps", "--labels", "a=b", "--name", "vm", "--namespace", "ops"}, []string{
			"metadata:\n  labels:\n    a: b\n    release: kps\n  name: vm\n  namespace: ops\n", "namespace: ops\n        severity:",
		}, []string{"namespace: evictrail"}},
		{"a rules file", []string{"--format", "rules", "--job", "recorder"}, []string{"\ngroups:\n- name: evictrail.recording\n", `up{job="recorder"}`},
			[]string{"PrometheusRule", `"evictrail"}`}},
		{"inhibition rules", []string{"--format", "inhibit-rules"}, []string{"\ninhibit_rules:\n- equal:\n  - alertname\n"}, []string{"groups:"}},
		{"where runbooks, dashboards and pages are", []string{"--runbook-url", "https://wiki.example/e", "--dashboard-url", "https://grafana.example", "--public-url", "https://evictrail.example/"}, []string{
			"runbook_url: https://wiki.example/e/EvictrailAbsent.md", "https://grafana.example/d/evictrail-loop?", "page_url: https://evictrail.example/vms/{{",
		}, []string{"github.com", "example//"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := generateAlerts(t, tt.args...)
			require.NoError(t, err)
			for _, part := range tt.has {
				require.Contains(t, out, part)
			}
			for _, part := range tt.not {
				require.NotContains(t, out, part)
			}
		})
	}
}

// TestGenerateAlertsNotesLinksThatAreLeftOut once, on stderr, so that what is printed stays YAML.
func TestGenerateAlertsNotesLinksThatAreLeftOut(t *testing.T) {
	t.Parallel()
	for args, note := range map[string]string{
		"alerts": "evictrail: alerts have no dashboard_url: say where Grafana is with --dashboard-url\n",
		"alerts --dashboard-url https://grafana.example": "",
		"alerts --format inhibit-rules":                  "",
	} {
		var out, notes bytes.Buffer
		cmd := newGenerate()
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		require.NoError(t, cmd.ExecuteContext(t.Context()), args)
		require.Equal(t, note, notes.String(), args)
		require.Equal(t, strings.Contains(args, "grafana"), strings.Contains(out.String(), "dashboard_url: "), args)
		require.NotContains(t, out.String(), "page_url: ", args)
	}
}

func TestGenerateAlertsRefuses(t *testing.T) {
	t.Parallel()
	requireRefusals(t, "alerts", []refusal{
		{"an unknown format", []string{"--format", "json"}, `format "json": expected one of prometheusrule, rules, inhibit-rules`, true},
		{"a bad name", []string{"--name", "No"}, `name "No"`, true},
		{"a bad namespace", []string{"--namespace", "a.b"}, `namespace "a.b"`, true},
		{"a bad label", []string{"--labels", "a/b/c=d"}, `label "a/b/c"`, true},
		{"a bad value of a label", []string{"--labels", "a=b c"}, `label a "b c"`, true},
		{"no job", []string{"--job", ""}, "job: must not be empty", true},
		{"a target that leaves nothing", []string{"--evacuation-target", "100"}, "evacuation-target 100: expected 95 to 99.99 percent", true},
		{"a target that says nothing", []string{"--evacuation-target", "90"}, "give evacuations more time instead", true},
		{"a target that is no number", []string{"--evacuation-target", "NaN"}, "evacuation-target NaN: expected 95", true},
		{"a target without rules", []string{"--format", "inhibit-rules", "--evacuation-target", "99"}, "evacuation-target has no place in format inhibit-rules", true},
		{"a path of runbooks", []string{"--runbook-url", "docs/runbooks"}, `runbook-url "docs/runbooks"`, true},
		{"a dashboard with a query", []string{"--dashboard-url", "https://grafana.example/?orgId=1"}, "dashboard-url", true},
		{"a page without a host", []string{"--public-url", "/evictrail"}, `public-url "/evictrail"`, true},
		{"labels without an object", []string{"--format", "rules", "--labels", "a=b"}, "labels has no place in format rules", true},
		{"a job without rules", []string{"--format", "inhibit-rules", "--job", "a"}, "job has no place in format inhibit-rules", true},
		{"one format and all", []string{"--format", "rules", "--dir", "x"}, "give one of them", true},
		{"an argument", []string{"rules"}, "unknown command", true},
		{"a directory that is a file", []string{"--dir", writeFile(t, nil)}, "make output directory: ", false},
	})
}

// TestGenerateAlertsWritesWhatIsCommitted also holds the files under deploy/alerts.
func TestGenerateAlertsWritesWhatIsCommitted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	out, err := generateAlerts(t, "--dir", dir)
	require.NoError(t, err)
	var paths []string
	for _, format := range []string{formatPrometheusRule, formatRules, formatInhibit} {
		paths = append(paths, filepath.Join(dir, format+".yaml"))
		text, err := os.ReadFile(paths[len(paths)-1])
		require.NoError(t, err)
		printed, err := generateAlerts(t, "--format", format)
		require.NoError(t, err)
		require.Equal(t, printed, string(text))
		golden, err := os.ReadFile(filepath.Join("../../deploy/alerts", format+".yaml"))
		require.NoError(t, err)
		require.Equal(t, string(golden), printed, "run make generate")
	}
	require.Equal(t, strings.Join(paths, "\n")+"\n", out)
}

func TestGenerateAlertsExplainsItself(t *testing.T) {
	t.Parallel()
	out, err := generateAlerts(t, "--help")
	require.NoError(t, err)
	for _, format := range alertFormats() {
		name, short, _ := strings.Cut(format, "\t")
		require.Contains(t, out, name)
		require.Contains(t, out, short)
	}
	complete, ok := newGenerateAlerts().GetFlagCompletionFunc("format")
	require.True(t, ok)
	formats, _ := complete(nil, nil, "")
	require.Equal(t, alertFormats(), formats)
}
