package install_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/evictrail/evictrail/test/build"
)

const (
	root      = "../.."
	chart     = root + "/deploy/chart"
	namespace = "evictrail"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden.yaml and what is rendered in deploy/kustomize")

func buildHelm() (string, error)    { return build.Helm().Build() }
func buildKubectl() (string, error) { return build.Kubectl().Build() }

// runProgram runs a program and returns what it says, errors last. It knows no cluster but that which its arguments name.
func runProgram(t *testing.T, program func() (string, error), args ...string) (string, error) {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull, "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(), "EVICTRAIL_DATABASE_URL=")
	err = cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// renderChart renders a chart in the namespace evictrail. Arguments that are no flags are files of values.
func renderChart(t *testing.T, chart string, args ...string) string {
	t.Helper()
	all := []string{"template", "evictrail", chart, "--namespace", namespace}
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			all = append(all, "--values")
		}
		all = append(all, arg)
	}
	out, err := runProgram(t, buildHelm, all...)
	require.NoError(t, err, out)
	return out
}

// parseObjects reads the documents of a text, in its order.
func parseObjects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
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

// formatKey distinguishes the objects of a rendering.
func formatKey(o *unstructured.Unstructured) string {
	return strings.TrimSuffix(o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName(), "/")
}

// byKey is a rendering, each object once.
func byKey(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, o := range parseObjects(t, text) {
		require.NotContains(t, out, formatKey(o), "rendered twice")
		out[formatKey(o)] = o
	}
	return out
}

// findObject finds the object of that kind and name in a rendering, and reads it into a typed one.
func findObject[T any](t *testing.T, text, kind, name string) T {
	t.Helper()
	all := parseObjects(t, text)
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "no %s %s", kind, name)
	var out T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(all[i].Object, &out, true))
	return out
}
