package dashboards

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/perses"
	"github.com/evictrail/evictrail/test/build"
)

// checkForPerses runs Perses' own code and the schemas of its plugins over files, and returns what it says of them.
func checkForPerses(t *testing.T, files ...string) (said string, err error) {
	t.Helper()
	program, err := build.PersesChecker().Build()
	require.NoError(t, err)
	modules, err := build.PersesModules()
	require.NoError(t, err)
	var dirs []string
	for name, dir := range modules {
		dirs = append(dirs, name+"="+dir)
	}
	out, err := exec.CommandContext(t.Context(), program, append([]string{"-modules", strings.Join(dirs, ",")}, files...)...).CombinedOutput()
	return string(out), err
}

// TestPersesTakesTheDashboards has Perses' own code read each dashboard, and each plugin's schema check its settings; what is wrong is found.
func TestPersesTakesTheDashboards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	var drains string
	for _, d := range dashboards.All() {
		made, draws, err := perses.Convert(d, "https://evictrail.example")
		require.NoError(t, err)
		if !draws {
			continue
		}
		text, err := made.JSON()
		require.NoError(t, err)
		name := filepath.Join(dir, d.UID+".json")
		require.NoError(t, os.WriteFile(name, text, 0o600))
		if files = append(files, name); d.UID == dashboards.UIDDrain {
			drains = string(text)
		}
	}
	require.Len(t, files, 7)
	said, err := checkForPerses(t, files...)
	require.NoError(t, err, said)
	require.Equal(t, len(files), strings.Count(said, " plugins are as their schemas want them"), said)

	for what, c := range map[string][3]string{
		"a unit that there is not":        {`"unit": "seconds"`, `"unit": "secs"`, "spec.format.unit"},
		"a setting that there is not":     {`"seriesNameFormat"`, `"seriesNameFormt"`, "field not allowed"},
		"a field that Perses reads not":   {`"refreshInterval"`, `"refreshIntrval"`, ".spec.refreshIntrval is not read"},
		"a place without a panel":         {`"panel-101A": {`, `"panel-101Z": {`, `"panel-101A"`},
		"a calculation that there is not": {`"last-number"`, `"newest"`, "spec.calculation"},
		"a plugin that there is not":      {`"kind": "StatChart"`, `"kind": "StatsChart"`, `there is no schema of "StatsChart"`},
	} {
		require.Contains(t, drains, c[0], what)
		name := filepath.Join(dir, "wrong.json")
		require.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(drains, c[0], c[1])), 0o600))
		said, err := checkForPerses(t, name)
		require.Error(t, err, what)
		require.Contains(t, said, c[2], what)
	}
}
