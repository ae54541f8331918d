package metrics_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
)

const stableFile = "testdata/stable.txt"

// TestStableMetricsStay compares the metrics that are STABLE with those that were before: none goes, and none changes its type or
// labels. With -update those that are new are added; what was promised is never taken back by it.
func TestStableMetricsStay(t *testing.T) {
	t.Parallel()
	var now []string
	for _, m := range metrics.Catalogue() {
		if m.Stability() == metrics.Stable {
			now = append(now, fmt.Sprintf("%s %s{%s}", m.Type, m.Name, strings.Join(slices.Sorted(slices.Values(m.Labels)), ",")))
		}
	}
	slices.Sort(now)
	raw, err := os.ReadFile(stableFile)
	require.NoError(t, err)
	promised := strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' })
	for _, line := range promised {
		require.Contains(t, now, line, "it was STABLE: keep it, or let both stand for a minor version and take it out of "+stableFile+" by hand")
	}
	if *update {
		require.NoError(t, os.WriteFile(stableFile, []byte(strings.Join(now, "\n")+"\n"), 0o644))
		return
	}
	require.Equal(t, now, promised, "go test ./metrics -update adds what is new")
}
