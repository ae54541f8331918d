package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestLoopThresholds plays a recording by thresholds of its own, and again by the usual ones: the rows of the first are derived
// again, though no new fact comes.
func TestLoopThresholds(t *testing.T) {
	t.Parallel()
	const query = "SELECT kind || ' ' || to_char(opened_at, 'HH24:MI:SS') AS loop FROM evictrail_v1.loops WHERE closed_by IS DISTINCT FROM 'refuted' ORDER BY opened_at"
	loops := func(url string) []string {
		var out []string
		for _, r := range queryRows[map[string]string](t, url, query) {
			out = append(out, r["loop"])
		}
		return out
	}
	url := storetest.NewURL(t)
	playBuiltin(t, url, "k-blocked-slot", "--loop-threshold", "failing_for=2m", "--loop-threshold", "failures=2")
	require.Equal(t, []string{"endless_retry 00:49:41", "dual_retry 01:07:41"}, loops(url))
	playBuiltin(t, url, "k-blocked-slot")
	require.Equal(t, []string{"endless_retry 00:57:41", "dual_retry 01:07:41"}, loops(url))

	code, _, stderr := runCommand(t, "play", "x", "--loop-threshold", "patience=1h", "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "expected one of failure_recent, quiet, failures")
	code, _, stderr = runCommand(t, "run", "--loop-threshold", "moves=none", "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "threshold moves=none: expected a positive number")
}

// TestEvacuationObjectives plays a recording by objectives, by none, and by those of others: the rows say what holds.
func TestEvacuationObjectives(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const query = "SELECT coalesce(objective::text, 'none') || ' ' || coalesce(objective_met::text, 'unknown') AS verdict, count(*)::text AS n FROM evictrail_v1.evacuations GROUP BY 1"
	verdicts := func(url string) map[string]string {
		out := map[string]string{}
		for _, r := range queryRows[map[string]string](t, url, query) {
			out[r["verdict"]] = r["n"]
		}
		return out
	}
	url := storetest.NewURL(t)
	playBuiltin(t, url, "c-node-drain", "--evacuation-objective", "any=2m")
	all := verdicts(url)
	require.NotEmpty(t, all["00:02:00 true"], all)
	playBuiltin(t, url, "c-node-drain")
	require.NotContains(t, verdicts(url), "00:02:00 true", "maintenance alone has an objective")
	playBuiltin(t, url, "c-node-drain", "--evacuation-objective", "any=2m")
	require.Equal(t, all, verdicts(url))
	playBuiltin(t, url, "c-node-drain", "--evacuation-objective", "none")
	for verdict := range verdicts(url) {
		require.Equal(t, "none unknown", verdict)
	}

	code, _, stderr := runCommand(t, "run", "--evacuation-objective", "maintenance=15m", "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "evacuation-objective: maintenance=15m: expected CLASS=DURATION with one of descheduler, kubectl,")
}

// TestRequesters plays a recording by accounts that are stated, and again by the known ones: who asked is classed again, though no new fact comes.
func TestRequesters(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const query = "SELECT DISTINCT requester_class AS class FROM evictrail_v1.eviction_requests WHERE requester LIKE '%:openshift-descheduler-operand'"
	file := filepath.Join(t.TempDir(), "requesters")
	state := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	url := storetest.NewURL(t)
	for _, stated := range []string{"service_account", "argo_cd"} {
		state("# whose they are\nopenshift-kube-descheduler-operator:* = " + stated + "\n")
		playBuiltin(t, url, "a-descheduler-eviction-success", "--requesters", file)
		require.Equal(t, []map[string]string{{"class": stated}}, queryRows[map[string]string](t, url, query))
	}
	playBuiltin(t, url, "a-descheduler-eviction-success")
	require.Equal(t, []map[string]string{{"class": "descheduler"}}, queryRows[map[string]string](t, url, query))

	state("infra:ds = descheduler\n*:ds = kured\ninfra:x = deschedular\n")
	code, _, stderr := runCommand(t, "run", "--requesters", file, "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `line 2: pattern "*:ds": expected a namespace before the colon`)
	require.Contains(t, stderr, `line 3: class "deschedular": expected one of descheduler, kubectl,`)
	code, _, stderr = runCommand(t, "play", "x", "--requesters", file+"-missing", "--database-url", url)
	require.NotZero(t, code)
	require.Contains(t, stderr, "read requesters: open "+file+"-missing")
}
