package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/dashboards"
)

// generateDashboards runs "generate dashboards" with these arguments.
func generateDashboards(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runGenerate(t, append([]string{"dashboards"}, args...)...)
}

func TestGenerateDashboardsPrintsJSON(t *testing.T) {
	t.Parallel()
	out, err := generateDashboards(t, "evictrail-vm", "evictrail-loop", "evictrail-vm")
	require.NoError(t, err)
	var uids []string
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var d struct {
			UID string `json:"uid"`
		}
		require.NoError(t, decoder.Decode(&d))
		uids = append(uids, d.UID)
	}
	require.Equal(t, []string{dashboards.UIDLoop, dashboards.UIDVM}, uids, "once each, in the order of reading")
}

// object is what Kubernetes reads of either format.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Data map[string]string
	Spec struct {
		Folder, JSON     string
		InstanceSelector struct{ MatchLabels map[string]string }
	}
}

func decodeObjects(t *testing.T, text string) []object {
	t.Helper()
	var out []object
	for part := range strings.SplitSeq(text, "---\n") {
		var o object
		require.NoError(t, yaml.Unmarshal([]byte(part), &o))
		out = append(out, o)
	}
	return out
}

func TestGenerateDashboardsMakesConfigMaps(t *testing.T) {
	t.Parallel()
	out, err := generateDashboards(t, "--format", "configmap", "--namespace", "monitoring", "--folder", "VMs")
	require.NoError(t, err)
	all := decodeObjects(t, out)
	require.Len(t, all, len(dashboards.All()))
	for i, d := range dashboards.All() {
		require.Equal(t, "ConfigMap", all[i].Kind)
		require.Equal(t, d.UID, all[i].Metadata.Name)
		require.Equal(t, "monitoring", all[i].Metadata.Namespace)
		require.Equal(t, "1", all[i].Metadata.Labels["grafana_dashboard"])
		require.Equal(t, "VMs", all[i].Metadata.Annotations["grafana_folder"])
		want, err := d.JSON()
		require.NoError(t, err)
		require.Equal(t, string(want), all[i].Data[d.UID+".json"])
		require.Less(t, len(want), 1<<20-4096, "a ConfigMap holds no more")
	}
}

func TestGenerateDashboardsMakesGrafanaDashboards(t *testing.T) {
	t.Parallel()
	out, err := generateDashboards(t, "evictrail-drain", "--format", "grafanadashboard", "--instance", "app=grafana,team=vms")
	require.NoError(t, err)
	o := decodeObjects(t, out)[0]
	require.Equal(t, "GrafanaDashboard", o.Kind)
	require.Empty(t, o.Metadata.Namespace)
	require.Equal(t, "evictrail", o.Spec.Folder)
	require.Equal(t, map[string]string{"app": "grafana", "team": "vms"}, o.Spec.InstanceSelector.MatchLabels)
	require.True(t, json.Valid([]byte(o.Spec.JSON)))
}

func TestGenerateDashboardsForPerses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, stderr := runCommand(t, "generate", "dashboards", "--format", "perses", "--dir", dir)
	require.Equal(t, exitFound, code, stderr)
	require.Equal(t, "evictrail-fleet is left out: none of its panels asks Prometheus, and Perses asks nothing else\n", stderr)
	require.Equal(t, len(dashboards.All())-1, strings.Count(out, "\n"))
	text, err := os.ReadFile(filepath.Join(dir, "evictrail-drain.json"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"kind": "Dashboard"`)

	made, err := generateDashboards(t, "evictrail-drain", "--format", "persesdashboard", "--namespace", "monitoring", "--public-url", "https://evictrail.example")
	require.NoError(t, err)
	o := decodeObjects(t, made)[0]
	require.Equal(t, "PersesDashboard", o.Kind)
	require.Equal(t, "evictrail-drain", o.Metadata.Name)
	require.Equal(t, "monitoring", o.Metadata.Namespace)
	require.Contains(t, made, "[evictrail's pages](https://evictrail.example)")
}

func TestGenerateDashboardsLinksToPages(t *testing.T) {
	t.Parallel()
	for args, linked := range map[string]bool{"evictrail-vm": false, "evictrail-vm --public-url https://evictrail.example/": true} {
		out, err := generateDashboards(t, strings.Fields(args)...)
		require.NoError(t, err)
		require.Equal(t, linked, strings.Contains(out, `"https://evictrail.example/nodes/${__data.fields.node}?cluster=`), args)
	}
}

func TestGenerateDashboardsRefuses(t *testing.T) {
	t.Parallel()
	requireRefusals(t, "dashboards", []refusal{
		{"an unknown name", []string{"loop"}, `dashboard "loop": expected one of evictrail-overview, evictrail-loop`, true},
		{"an unknown format", []string{"--format", "yaml"}, `format "yaml": expected one of json, configmap, grafanadashboard, perses, persesdashboard, markdown`, true},
		{"a namespace for JSON", []string{"--namespace", "x"}, "namespace has no meaning for format json", true},
		{"a folder for Perses", []string{"--format", "perses", "--folder", "x"}, "folder has no meaning for format perses", true},
		{"a dashboard without anything for Perses", []string{"--format", "perses", "evictrail-fleet"}, "dashboard evictrail-fleet: none of its panels asks Prometheus", true},
		{"an instance for ConfigMaps", []string{"--format", "configmap", "--instance", "a=b"}, "instance has no meaning for format configmap", true},
		{"names for the text", []string{"--format", "markdown", "evictrail-vm"}, "give no names", true},
		{"pages without a host", []string{"--public-url", "/evictrail"}, `public-url "/evictrail": expected http`, true},
		{"pages of the text", []string{"--format", "markdown", "--public-url", "https://evictrail.example"}, "public-url has no meaning for format markdown", true},
		{"a directory that is a file", []string{"--dir", writeFile(t, nil)}, "make output directory: ", false},
	})
}

func TestGenerateDashboardsWritesFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	for range 2 { // the second time over what is there
		out, err := generateDashboards(t, "--dir", dir)
		require.NoError(t, err)
		var paths []string
		for _, d := range dashboards.All() {
			paths = append(paths, filepath.Join(dir, d.UID+".json"))
			text, err := os.ReadFile(paths[len(paths)-1])
			require.NoError(t, err)
			printed, err := generateDashboards(t, d.UID)
			require.NoError(t, err)
			require.Equal(t, printed, string(text))
		}
		require.Equal(t, strings.Join(paths, "\n")+"\n", out)
	}
}

func TestGenerateDashboardsCompletes(t *testing.T) {
	t.Parallel()
	names, _ := completeDashboards(nil, []string{dashboards.UIDLoop}, "")
	require.Len(t, names, len(dashboards.All())-1)
	require.NotContains(t, strings.Join(names, "\n"), dashboards.UIDLoop+"\t")
}

func TestGenerateDashboardsExplainsItself(t *testing.T) {
	t.Parallel()
	out, err := generateDashboards(t, "--help")
	require.NoError(t, err)
	for _, d := range dashboards.All() {
		require.Contains(t, out, d.UID)
		require.Contains(t, out, d.Title)
	}
}
