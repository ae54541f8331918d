package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestAlertsBacktest asks about the loop of a recording: test/played compares the firings of all recordings with those
// of Prometheus.
func TestAlertsBacktest(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop", "c-node-drain")
	run := func(code int, args ...string) (out, stderr string) {
		t.Helper()
		got, out, stderr := runCommand(t, append([]string{"alerts", "backtest", "--since", "2026-11-20", "--step",
			"15s", "--database-url", url}, args...)...)
		require.Equal(t, code, got, "%s %s", args, stderr)
		return out, stderr
	}
	out, _ := run(exitFound, "--cluster", "b-dual-retry-loop", "--rule", "EvictrailDualRetryLoop")
	require.Contains(t, out, "EvictrailDualRetryLoop  warning   present")
	require.Contains(t, out, "for 2m30s")
	require.Regexp(t,
		`EvictrailDualRetryLoop \(warning\) as it is:\n  2026-11-21 00:3.*: node=worker-1; loop: dual retry loop`, out)
	require.NotContains(t, out, "Not in history")

	out, _ = run(exitFound, "--cluster", "c-node-drain", "--rule", "EvictrailNonMigratableBlocksDrain", "--for",
		"0s,2m", "-o", "json")
	var report struct {
		Cluster string
		backtest.Report
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, "c-node-drain", report.Cluster)
	require.Len(t, report.Rules, 1)
	var counts []int
	for _, v := range report.Rules[0].Variants {
		counts = append(counts, v.Count)
	}
	require.Equal(t, []int{0, 2, 1}, counts, "present, 0s, 2m")

	out, _ = run(exitFound, "--cluster", "c-node-drain")
	require.Contains(t, out, "EvictrailGuestLost")
	require.Regexp(t, `Never fired, with none of the numbers tried: [^.]*EvictrailEvacuationStuck`, out)
	require.Regexp(t, `(?s)Not in history, so nothing is said of them:.*EvictrailStoreDown`, out)

	for _, tt := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "several clusters: choose one with --cluster: b-dual-retry-loop, c-node-drain", nil},
		{exitUsage, `no alert is named "Nope"; there are: EvictrailDualRetryLoop, `, []string{"--rule", "Nope"}},
		{exitUsage, "say of which alert, with one rule", []string{"--threshold", "3"}},
		{exitUsage, `threshold "=3": expected a number, or PRESENT=OTHER`,
			[]string{"--threshold", "=3", "--rule", "EvictrailVMPingPong"}},
		{exitUsage, `threshold "NaN": expected a number`, []string{"--threshold", "NaN", "--rule", "EvictrailVMPingPong"}},
		{exitUsage, "36 combinations, with those of today; at most 32 can be tried at once", []string{
			"--threshold", "1,3,4,5,6", "--for", "1m,2m,3m,4m,5m", "--rule", "EvictrailVMPingPong",
		}},
		{exitUsage, "has several thresholds (3, 2100): say which, as in 3=5", []string{
			"--threshold", "5", "--rule", "EvictrailEvacuationStuck", "--cluster", "c-node-drain",
		}},
		{exitUsage, `for "soon": expected a duration such as 30s`, []string{"--for", "soon"}},
		{exitUsage, "step 1h: expected 10s to 5m", []string{"--step", "1h"}},
		{exitUsage, "expected table or json", []string{"-o", "csv"}},
		{exitUsage, "expected 95 to 99.99", []string{"--evacuation-target", "50"}},
		{exitUsage, "expected a time before", []string{"--until", "2026-11-19", "--cluster", "c-node-drain"}},
		{exitNotFound, `no cluster named "nope"`, []string{"--cluster", "nope"}},
		{exitNotFound, "nothing was recorded of c-node-drain", []string{
			"--cluster", "c-node-drain", "--since", "2026-11-25", "--until", "2026-11-26", "--rule",
			"EvictrailVMPingPong",
		}},
	} {
		_, stderr := run(tt.code, tt.args...)
		require.Contains(t, stderr, tt.says)
	}
}
