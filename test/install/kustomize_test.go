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

// rendered renders the chart for kubectl: without the hooks of helm.
func rendered(t *testing.T, values ...string) string {
	t.Helper()
	return template(t, chart, append(values, "--no-hooks")...)
}

// kustomized is what `kubectl apply -k` would apply.
func kustomized(t *testing.T, dir string) map[string]*unstructured.Unstructured {
	t.Helper()
	out, err := run(t, kubectl, "kustomize", dir)
	require.NoError(t, err, out)
	return byKey(t, out)
}

// written holds a rendered file, or writes it.
func written(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(got), "run make kustomize")
}

// without leaves out the documents of a rendering that another has, too.
func without(t *testing.T, text string, others map[string]*unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	for document := range strings.SplitSeq(text, "---\n# Source: ") {
		objects := objects(t, "# "+document)
		if len(objects) == 1 && others[key(objects[0])] == nil {
			out.WriteString("---\n# Source: " + strings.TrimRight(document, "\n") + "\n")
		}
	}
	return out.String()
}

// TestKustomize: the base is the chart, and each overlay the chart with its values. What an overlay adds is rendered, what it
// changes is written by hand: this tells when that is not what the chart does.
func TestKustomize(t *testing.T) {
	t.Parallel()
	small := filepath.Join(base, "values.yaml")
	plain := rendered(t, small)
	written(t, filepath.Join(base, "evictrail.yaml"), renderedBy+without(t, plain, nil))
	require.Equal(t, byKey(t, plain), kustomized(t, base))

	all, err := os.ReadDir(overlays)
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, overlay := range all {
		dir := filepath.Join(overlays, overlay.Name())
		t.Run(overlay.Name(), func(t *testing.T) {
			t.Parallel()
			text := rendered(t, small, filepath.Join(dir, "values.yaml"))
			if more := without(t, text, byKey(t, plain)); more != "" {
				written(t, filepath.Join(dir, "evictrail.yaml"), renderedBy+more)
			}
			require.Equal(t, byKey(t, text), kustomized(t, dir))
		})
	}
}
