package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRecordedScenarios plays what the lab recorded of scenarios, and compares evictrail's rows with what the components said then.
func TestRecordedScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/" + truthFile)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	evictrail, err := build.Evictrail()
	require.NoError(t, err)
	for _, file := range files {
		dir := filepath.Dir(file)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r recorded
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &r))
			url := storetest.NewURL(t)
			out, err := exec.CommandContext(t.Context(), evictrail, "play", dir, "--database-url", url).CombinedOutput()
			require.NoError(t, err, string(out))
			report, err := compareRecorded(t.Context(), r, url, name)
			require.NoError(t, err)
			t.Logf("%s on KubeVirt %s: compared %d facts", r.Scenario, r.KubeVirt, report.Compared)
			require.Empty(t, report.Differences)
			require.Positive(t, report.Compared)
		})
	}
}
