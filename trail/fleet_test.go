package trail_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestMissingSourcesAreNamed names each source whose part is missing, with why.
func TestMissingSourcesAreNamed(t *testing.T) {
	t.Parallel()
	down, closed := trail.MissingSource{Source: "east", Why: "connection refused"}, trail.MissingSource{Source: "west", Refused: true, Why: "anna may see nothing"}
	require.Empty(t, trail.DescribeMissing(nil))
	require.Equal(t, "Source east does not answer: connection refused.", trail.DescribeMissing([]trail.MissingSource{down}))
	require.Equal(t, "Missing sources: east does not answer: connection refused; west shows you nothing: anna may see nothing.", trail.DescribeMissing([]trail.MissingSource{down, closed}))
}

// TestFleetLinesAreReadAsTheyAreWritten writes a line as programs read it, and reads it.
func TestFleetLinesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for i := range trail.Severities() {
		line := trail.FleetLine{ClusterSummary: trail.ClusterSummary{Name: "prod", Loops: 2, Closed: 1, Marred: true}, Severity: trail.Severity(i), Text: "x"}
		text, err := json.Marshal(line)
		require.NoError(t, err)
		var got trail.FleetLine
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, line, got)
	}
	var none trail.Severity
	require.ErrorContains(t, none.UnmarshalText([]byte("dire")), "expected one of [ok info warning critical]")
}
