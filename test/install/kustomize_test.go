package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	base     = root + "/deploy/kustomize/base"
	overlays = root + "/deploy/kustomize/overlays"
)

const renderedBy = "# Rendered from deploy/chart by `make kustomize`; DO NOT EDIT.\n"

// renderForKubectl renders the chart for kubectl: without the hooks of helm.
func renderForKubectl(t *testing.T, values ...string) string {
	t.Helper()
	return renderChart(t, chart, append(values, "--no-hooks")...)
}

// renderKustomization is what `kubectl apply -k` would apply.
func renderKustomization(t *testing.T, dir string) map[string]*unstructured.Unstructured {
	t.Helper()
	out, err := runProgram(t, buildKubectl, "kustomize", dir)
	require.NoError(t, err, out)
	return byKey(t, out)
}

// checkRenderedFile holds a rendered file, or writes it.
func checkRenderedFile(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(got), "run make kustomize")
}

// removeDocuments leaves out the documents of a rendering that another has, too.
func removeDocuments(t *testing.T, text string, others map[string]*unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	for document := range strings.SplitSeq(text, "---\n# Source: ") {
		objects := parseObjects(t, "# "+document)
		if len(objects) == 1 && others[formatKey(objects[0])] == nil {
			out.WriteString("---\n# Source: " + strings.TrimRight(document, "\n") + "\n")
		}
	}
	return out.String()
}

// TestKustomize: the base is the chart, and each overlay the chart with its values. What an overlay adds is rendered, what it
// changes is written by hand: this shows when that is not what the chart does.
func TestKustomize(t *testing.T) {
	t.Parallel()
	small := filepath.Join(base, "values.yaml")
	plain := renderForKubectl(t, small)
	checkRenderedFile(t, filepath.Join(base, "evictrail.yaml"), renderedBy+removeDocuments(t, plain, nil))
	require.Equal(t, byKey(t, plain), renderKustomization(t, base))

	all, err := os.ReadDir(overlays)
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, overlay := range all {
		dir := filepath.Join(overlays, overlay.Name())
		t.Run(overlay.Name(), func(t *testing.T) {
			t.Parallel()
			text := renderForKubectl(t, small, filepath.Join(dir, "values.yaml"))
			if more := removeDocuments(t, text, byKey(t, plain)); more != "" {
				checkRenderedFile(t, filepath.Join(dir, "evictrail.yaml"), renderedBy+more)
			}
			require.Equal(t, byKey(t, text), renderKustomization(t, dir))
		})
	}
}
