package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestClustersAreComparedByCommand compares what was played, by way of the database and of a server, and says what is asked for where there is nothing.
func TestClustersAreComparedByCommand(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	for _, way := range []string{"--database-url=" + url, "--server=" + serveAPI(t, url)} {
		code, out, stderr := runCommand(t, "compare", "--since", "2026-11-20", way)
		require.Equal(t, exitFound, code, stderr)
		lines := strings.Split(out, "\n")
		require.Regexp(t, `^CLUSTER +KUBEVIRT +MIGRATIONS +FAILED +MOST OFTEN +NOT NEEDED +MISSED +LOOPS +DUAL RETRY$`, strings.TrimSpace(lines[0]))
		require.Regexp(t, `^(b-dual-retry-loop-v1.8|k-blocked-slot) +v\d\S+ +\d+ +\d+ % +\S.* \(\d+\) .* [1-9]\d* +[1-9]\d*$`, strings.TrimSpace(lines[1]), "those with dual retry loops come first")
		require.Contains(t, out, "Days from 2026-11-21 to 2026-11-21, UTC.")

		code, out, stderr = runCommand(t, "compare", "--since", "2026-11-20", "--cluster", "c-node-drain", "-o", "json", way)
		require.Equal(t, exitFound, code, stderr)
		var drained []trail.ClusterComparison
		require.NoError(t, json.Unmarshal([]byte(out), &drained))
		require.Len(t, drained, 1)
		migrations := queryRows[struct{ Outcome string }](t, url, `SELECT outcome AS "Outcome" FROM evictrail_v1.migrations WHERE cluster = 'c-node-drain' AND outcome IS NOT NULL`)
		require.Equal(t, len(migrations), drained[0].Ended())

		code, _, stderr = runCommand(t, "compare", "--since", "2026-11-20", "--kubevirt", "v0.9", way)
		require.Equal(t, exitNotFound, code)
		require.Contains(t, stderr, "no day was counted from 2026-11-20 up to today of a cluster with KubeVirt v0.9")
		code, _, stderr = runCommand(t, "compare", "--since", "2026-11-20", "--cluster", "nope", way)
		require.Equal(t, exitNotFound, code)
		require.Contains(t, stderr, `no cluster named "nope"`)
		code, _, _ = runCommand(t, "compare", "--since", "soon", way)
		require.Equal(t, exitUsage, code)
	}
}
