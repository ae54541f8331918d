package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/test/build"
)

const (
	root  = "../.."
	rules = root + "/deploy/alerts/rules.yaml"
)

// listCaseFiles returns the files with cases for every promtool, and those that only the newest reads.
func listCaseFiles(t *testing.T) (every, newer []string) {
	t.Helper()
	every, err := filepath.Glob(root + "/alerts/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, every)
	newer, err = filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, newer)
	return every, newer
}

func buildPromtool(t *testing.T) string {
	t.Helper()
	path, err := build.Promtool().Build()
	require.NoError(t, err, "build promtool")
	return path
}

// findDebianPromtool finds the promtool that distributions ship.
func findDebianPromtool(t *testing.T) string {
	t.Helper()
	path := os.Getenv("EVICTRAIL_PROMTOOL")
	if path == "" {
		var err error
		path, err = filepath.Abs(root + "/bin/debian/promtool")
		require.NoError(t, err)
	}
	require.FileExists(t, path, "run hack/ensure-promtool.sh, or set EVICTRAIL_PROMTOOL to a promtool, 2.42 or newer")
	return path
}

func TestPromtoolTakesTheRulesAndTheirCases(t *testing.T) {
	t.Parallel()
	every, newer := listCaseFiles(t)
	tests := []struct {
		name  string
		find  func(*testing.T) string
		files []string
	}{
		{"newest", buildPromtool, slices.Concat(every, newer)},
		{"debian", findDebianPromtool, every},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			promtool := tt.find(t)
			out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=all", "--lint-fatal", rules).CombinedOutput()
			require.NoError(t, err, "%s", out)
			out, err = exec.CommandContext(t.Context(), promtool, append([]string{"test", "rules"}, tt.files...)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

func TestPromtoolIsOfTheVersionOfTheEngine(t *testing.T) {
	t.Parallel()
	version := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(`github\.com/prometheus/prometheus (v\S+)`).FindSubmatch(text)
		require.NotNil(t, found, file)
		return string(found[1])
	}
	require.Equal(t, version("../go.mod"), version("../promtool/go.mod"))
}

// TestFormatsHoldTheSameRules lets the cases speak for the PrometheusRule, too.
func TestFormatsHoldTheSameRules(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		text, err := os.ReadFile(root + "/deploy/alerts/" + name)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	var plain struct{ Groups []alerts.Group }
	var object struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             struct{ Groups []alerts.Group }
	}
	read("rules.yaml", &plain)
	read("prometheusrule.yaml", &object)
	require.Equal(t, alerts.Groups(alerts.DefaultOptions()), plain.Groups)
	require.Equal(t, plain.Groups, object.Spec.Groups)
}
