package deploy_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite chart/files")

// TestChartFiles compares the chart's copies with what they are copies of; "make generate" writes them.
func TestChartFiles(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for pattern, folder := range map[string]string{"alerts/rules.yaml": "", "dashboards/*.json": "dashboards", "manifests/*.yaml": "manifests"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			want[filepath.Join("chart/files", folder, filepath.Base(path))] = readFile(t, path)
		}
	}
	if *update {
		require.NoError(t, os.RemoveAll("chart/files"))
		for path, text := range want {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	got := map[string]string{}
	for _, pattern := range []string{"chart/files/*.*", "chart/files/*/*"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			got[path] = readFile(t, path)
		}
	}
	require.Equal(t, want, got, "run make generate")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
