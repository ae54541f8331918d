package plugins_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/evictrail/evictrail/test/build"
)

// TestConsoleIsInstalledByKustomize renders what is applied to a cluster: the files of the plugin, a server for them that names them
// as the manifest does, and a ConsolePlugin that names that server and evictrail's service.
func TestConsoleIsInstalledByKustomize(t *testing.T) {
	t.Parallel()
	kubectl, err := build.Kubectl().Build()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Join(built, "console")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	objects := parseObjects(t, string(out))
	require.Len(t, objects, 5)

	var deployment appsv1.Deployment
	readObject(t, objects, "Deployment/evictrail-console", &deployment)
	var server corev1.Service
	readObject(t, objects, "Service/evictrail-console", &server)
	pod := deployment.Spec.Template
	require.Equal(t, server.Spec.Selector, pod.Labels)
	require.Equal(t, "nginxinc/nginx-unprivileged:1.29-alpine", pod.Spec.Containers[0].Image)
	maps := map[string]corev1.ConfigMap{}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil {
			var files corev1.ConfigMap
			readObject(t, objects, "ConfigMap/"+v.ConfigMap.Name, &files)
			maps[v.Name] = files
		}
	}

	// All that the build made is in the ConfigMap, as it was made, and the manifest names its script.
	entries, err := os.ReadDir(filepath.Join(built, "console/dist"))
	require.NoError(t, err)
	require.Len(t, maps["files"].Data, len(entries)+1)
	for _, entry := range entries {
		require.Equal(t, readFile(t, "console/dist/"+entry.Name()), maps["files"].Data[entry.Name()])
	}
	require.JSONEq(t, `{"cluster": "", "publicURL": ""}`, maps["files"].Data["settings.json"])
	var manifest struct {
		Name, Version string
		LoadScripts   []string
		BaseURL       string
	}
	require.NoError(t, json.Unmarshal([]byte(maps["files"].Data["plugin-manifest.json"]), &manifest))
	require.Equal(t, version, manifest.Version)
	for _, script := range manifest.LoadScripts {
		require.Contains(t, maps["files"].Data, script)
	}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		if mount.Name != "server" && mount.Name != "temporary" {
			require.Contains(t, maps["server"].Data["nginx.conf"], mount.MountPath)
		}
	}

	plugin := findObject(t, objects, "ConsolePlugin/evictrail").Object
	require.Equal(t, manifest.Name, readText(t, plugin, "metadata", "name"))
	require.Equal(t, "/api/plugins/"+manifest.Name+"/", manifest.BaseURL)
	requireService(t, plugin, server, "spec", "backend", "service")
	proxies, _, err := unstructured.NestedSlice(plugin, "spec", "proxy")
	require.NoError(t, err)
	require.Len(t, proxies, 1)
	proxy := proxies[0].(map[string]any)
	require.Equal(t, []any{"evictrail", "UserToken"}, []any{proxy["alias"], proxy["authorization"]})
	base, err := os.ReadFile(filepath.Join(root, "deploy/kustomize/base/evictrail.yaml"))
	require.NoError(t, err)
	var evictrail corev1.Service
	readObject(t, parseObjects(t, string(base)), "Service/evictrail", &evictrail)
	requireService(t, proxy, evictrail, "endpoint", "service")
}

// requireService checks that a reference names a service and one of its ports.
func requireService(t *testing.T, in map[string]any, service corev1.Service, path ...string) {
	t.Helper()
	require.Equal(t, service.Name, readText(t, in, append(path, "name")...))
	require.Equal(t, service.Namespace, readText(t, in, append(path, "namespace")...))
	port, _, err := unstructured.NestedFieldNoCopy(in, append(path, "port")...)
	require.NoError(t, err)
	require.EqualValues(t, service.Spec.Ports[0].Port, port)
}

func readText(t *testing.T, in map[string]any, path ...string) string {
	t.Helper()
	text, _, err := unstructured.NestedString(in, path...)
	require.NoError(t, err)
	return text
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(built, name))
	require.NoError(t, err)
	return string(text)
}

// parseObjects reads the documents of a text.
func parseObjects(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := d.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, text)
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

// findObject finds KIND/NAME.
func findObject(t *testing.T, objects []*unstructured.Unstructured, key string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind()+"/"+o.GetName() == key {
			return o
		}
	}
	t.Fatalf("there is no %s", key)
	return nil
}

// readObject reads KIND/NAME into a typed object, which must know every field.
func readObject(t *testing.T, objects []*unstructured.Unstructured, key string, into any) {
	t.Helper()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(findObject(t, objects, key).Object, into, true))
}

// TestHeadlampFolder looks at what is put into Headlamp's folder of plugins.
func TestHeadlampFolder(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join(built, "headlamp/evictrail"))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	var info struct {
		Name, Version   string
		DevDependencies map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "headlamp/evictrail/package.json")), &info))
	require.Equal(t, []string{"evictrail", version}, []string{info.Name, info.Version})
	require.Regexp(t, `^\d+\.\d+\.\d+$`, info.DevDependencies["@kinvolk/headlamp-plugin"], "without it Headlamp loads no plugin")
	// What Headlamp shares is not bundled a second time.
	require.Less(t, len(readFile(t, "headlamp/evictrail/main.js")), 40_000)
}

// TestPackagesArePinned reads the lock file: exact versions with checksums, and no host from which they come.
func TestPackagesArePinned(t *testing.T) {
	t.Parallel()
	var lock struct {
		Packages map[string]struct {
			DevDependencies map[string]string
			Resolved        string
			Integrity       string
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/plugins/package-lock.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &lock))
	require.Greater(t, len(lock.Packages), 50)
	for name, p := range lock.Packages {
		require.Empty(t, p.Resolved, name)
		if name == "" {
			for dependency, version := range p.DevDependencies {
				require.Regexp(t, `^\d+\.\d+\.\d+$`, version, dependency)
			}
			continue
		}
		require.NotEmpty(t, p.Integrity, name)
	}
}
