package trail

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThresholdsAreStatedByName(t *testing.T) {
	t.Parallel()
	want := DefaultThresholds()
	var read Thresholds
	for _, pair := range strings.Split(want.String(), ", ") {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, read.Set(name, value))
	}
	read.Objectives = want.Objectives // they are stated otherwise
	require.Equal(t, want, read, "what String writes, Set reads, and nothing is left out")
	require.True(t, read.Equal(want))
	read.Objectives = Objectives{}
	require.False(t, read.Equal(want))
	read.Objectives = want.Objectives
	raw, err := json.Marshal(want)
	require.NoError(t, err)
	for _, x := range want.listThresholds() {
		require.Contains(t, string(raw), `"`+x.name+`":`)
	}
	require.Contains(t, want.String(), "moves_within=24h, ")
	for pair, says := range map[string]string{
		"moves=0": "expected a positive number", "moves=many": "expected a positive number", "quiet=-1m": "expected a positive duration",
		"quiet=5": "expected a positive duration", "loud=1": "expected one of failure_recent, quiet,",
	} {
		name, value, _ := strings.Cut(pair, "=")
		require.ErrorContains(t, read.Set(name, value), says)
	}
	require.Equal(t, want, read)
}
