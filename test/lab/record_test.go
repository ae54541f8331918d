package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/lab/scenario"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// recordings are the folders of testdata: none may be lost, and none may be there that is not compared.
var recordings = []string{
	"dead-node-v1.8.4", "default-thresholds-v1.8.4", "gate-off-v1.8.4", "post-copy-loss-v1.8.4", "priority-inversion-v1.8.4", "upgrade-wave-v1.8.4",
}

// TestRecordedScenarios plays what the lab recorded, and compares evictrail's rows with what the components said then.
func TestRecordedScenarios(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, e.Name())
	}
	require.ElementsMatch(t, recordings, dirs)
	evictrail, err := build.Evictrail()
	require.NoError(t, err)
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join("testdata", name)
			want, err := loadTruth(dir)
			require.NoError(t, err)
			require.Equal(t, name, want.Scenario+"-"+want.KubeVirt)
			url := storetest.NewURL(t)
			out, err := exec.CommandContext(t.Context(), evictrail, "play", dir, "--database-url", url).CombinedOutput()
			require.NoError(t, err, string(out))
			report, err := compareRecording(t.Context(), want, url, name)
			require.NoError(t, err)
			t.Logf("compared %d facts", report.Compared)
			require.Empty(t, report.Differences)
			require.Positive(t, report.Compared)
		})
	}
}

// TestCompareLoops wants every expected loop once, and no other.
func TestCompareLoops(t *testing.T) {
	t.Parallel()
	found := []loop{{Kind: "budget_pinned", Node: "n1", Open: true}, {Kind: "dual_retry", VMI: namespace + "/db-1", Node: "n1"}}
	dual, pinned := scenario.Loop{Kind: "dual_retry", VM: "db-1"}, scenario.Loop{Kind: "budget_pinned", Node: "n1", Open: true}
	for _, c := range []struct {
		name string
		want []scenario.Loop
		says []string
	}{
		{"all are there", []scenario.Loop{dual, pinned}, nil},
		{"one too many", []scenario.Loop{dual}, []string{`loop budget_pinned of "" on "n1", open true: found, and not expected`}},
		{"one is missing", []scenario.Loop{dual, dual, pinned}, []string{`loop dual_retry of "db-1" on "", open false: not found`}},
		{"one is closed", []scenario.Loop{{Kind: "dual_retry", Open: true}, pinned}, []string{
			`loop dual_retry of "" on "", open true: not found`, `loop dual_retry of "demo/db-1" on "n1", open false: found, and not expected`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.says, compareLoops(c.want, append([]loop{}, found...)))
		})
	}
}
