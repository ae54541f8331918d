package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestVerdicts plays recordings with what the descheduler itself saw of the nodes, and says what the moves in them were for.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		moves []string // all that succeeded
		needs string   // of one attempt, what need and benefit rest on
	}{
		"a-descheduler-eviction-success": {moves: []string{"vm-a to worker-2: needed, helped", "vm-b to worker-3: needed, helped"}},
		"b-dual-retry-loop": {
			moves: []string{
				"vm-c to worker-3: needed, helped", "vm-b to worker-2: needed, helped", "vm-d to worker-4: needed, helped", "vm-a to worker-2: not_needed, harmed",
				"vm-a to worker-1: needed, helped",
			},
			needs: "worker-1 was at 40 % at 2026-11-21 00:37:00Z, under its threshold of 50 %; it was last over it at 2026-11-21 00:33:30Z; " +
				"worker-2 was at 40 % at 2026-11-21 00:37:00Z, under its threshold of 50 %; after the guest had come it was at 55 % at 2026-11-21 00:38:00Z, over its threshold of 50 %",
		},
		"b-dual-retry-loop-v1.8": {
			moves: []string{
				"vm-e to worker-2: needed, helped", "vm-a to worker-4: needed, helped", "vm-c to worker-3: needed, no_effect", "vm-d to worker-2: not_needed, harmed",
				"vm-e to worker-1: needed, harmed", "vm-f to worker-1: needed, harmed", "vm-b to worker-2: needed, unknown", "vm-f to worker-2: needed, unknown",
			},
			needs: "worker-1 was at 40 % at 2026-11-21 00:43:53Z, under its threshold of 50 %; it was last over it at 2026-11-21 00:34:23Z; " +
				"worker-2 was at 40 % at 2026-11-21 00:43:53Z, under its threshold of 50 %; after the guest had come it was at 55 % at 2026-11-21 00:44:53Z, over its threshold of 50 %",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := playedURL(t, name)
			moves := queryRows[struct{ Move, Because, Need string }](t, url, `
SELECT format('%s to %s: %s, %s', vmi, target_node, need, benefit) AS move, need_because || '; ' || benefit_because AS because, need
FROM evictrail_v1.migrations
WHERE outcome = 'succeeded'
ORDER BY created_at, migration`)
			var moved []string
			for _, m := range moves {
				if moved = append(moved, m.Move); m.Need == "not_needed" {
					require.Equal(t, want.needs, m.Because)
				}
			}
			require.ElementsMatch(t, want.moves, moved)
			require.Equal(t, []struct{ Origin string }{{"descheduler"}}, queryRows[struct{ Origin string }](t, url, "SELECT DISTINCT origin FROM evictrail_v1.node_context"))
		})
	}
}

// TestPlayWithoutPrometheus asks one that is away, and one that says nonsense: nothing else suffers.
func TestPlayWithoutPrometheus(t *testing.T) {
	t.Parallel()
	nonsense := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(nonsense.Close)
	for name, prometheus := range map[string]string{"away": "http://127.0.0.1:1", "nonsense": nonsense.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.NewURL(t)
			code, _, errOut := runCommand(t, "play", recordingDir("a-descheduler-eviction-success"), "--database-url", url, "--prometheus-url", prometheus)
			require.Zero(t, code, errOut)
			require.Equal(t, 1, strings.Count(errOut, "node load not read"), errOut)
			require.Equal(t, []struct{ Source string }{{"descheduler -"}, {"prometheus unanswered"}}, queryRows[struct{ Source string }](t, url,
				"SELECT DISTINCT origin || ' ' || CASE origin WHEN 'prometheus' THEN reason ELSE '-' END AS source FROM evictrail_v1.node_context ORDER BY 1"))
			require.Equal(t, []struct{ Benefit string }{{"helped"}, {"helped"}}, queryRows[struct{ Benefit string }](t, url, "SELECT benefit FROM evictrail_v1.migrations"))
		})
	}
}

// TestPrometheusFlags says what is wrong with them.
func TestPrometheusFlags(t *testing.T) {
	t.Parallel()
	const at = "--prometheus-url=http://127.0.0.1:9090"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prometheus-query=cpu=x"}, "prometheus-query: say where it is with --prometheus-url"},
		{[]string{"--prometheus-url=localhost:9090"}, `prometheus-url "localhost:9090": expected such as`},
		{[]string{"--prometheus-url=http://me:secret@127.0.0.1:9090"}, "no user or password in it"},
		{[]string{at, "--prometheus-insecure", "--prometheus-ca-file=x"}, "exclude each other"},
		{[]string{at, "--prometheus-query=rate(x)"}, `prometheus-query "rate(x)": expected METRIC=PROMQL`},
		{[]string{at, "--prometheus-threshold=disk=0.8"}, "prometheus-threshold disk: there is no such metric: expected one of descheduler, cpu, memory, cpu_pressure, memory_pressure"},
	} {
		code, _, errOut := runCommand(t, append([]string{"play", recordingDir("a-descheduler-eviction-success"), "--database-url", "postgres:///none"}, c.args...)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errOut, c.want)
	}
	f := prometheusFlags{at: remoteFlags{server: remote.Server{URL: "http://127.0.0.1:9090"}}, queries: []string{"disk=max by (node, x) (y{a=\"b\"})", "cpu=", "memory=m"}, thresholds: []string{"disk=0.8"}}
	var named []string
	for _, q := range f.newTarget().Queries {
		named = append(named, fmt.Sprintf("%s %v above %s", q.Name, q.Values, q.Threshold))
	}
	require.Len(t, named, 5)
	require.Contains(t, named, "memory [m] above ")
	require.Equal(t, `disk [max by (node, x) (y{a="b"})] above 0.8`, named[4])
}

// TestConsequences ties the evictions that followed a needless move to it.
func TestConsequences(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"a-descheduler-eviction-success": nil,
		"b-dual-retry-loop":              {"vm-a from worker-2 of vm-a, likely: 1 likely from vm-a"},
		"b-dual-retry-loop-v1.8": {
			"vm-e from worker-2 of vm-d, likely: 1 likely from vm-d", "vm-f from worker-2 of vm-d, likely: 1 likely from vm-d",
			"vm-b from worker-1 of vm-e, likely: 2 likely from vm-d", "vm-b from worker-1 of vm-f, likely: 2 likely from vm-d",
			"vm-f from worker-1 of vm-e, likely: 2 likely from vm-d", "vm-f from worker-1 of vm-f, likely: 2 likely from vm-d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := playedURL(t, name)
			var got []string
			for _, r := range queryRows[struct{ Chain string }](t, url, `
SELECT format('%s from %s of %s, %s: %s %s from %s', c.vmi, c.node, m.vmi, c.likelihood, c.steps, c.needless_likelihood, n.vmi) AS chain
FROM evictrail_v1.consequences AS c
JOIN evictrail_v1.migrations AS m ON m.migration_uid = c.cause_uid
LEFT JOIN evictrail_v1.migrations AS n ON n.migration_uid = c.needless_uid`) {
				got = append(got, r.Chain)
			}
			require.ElementsMatch(t, want, got)
			loops := queryRows[struct{ Summary string }](t, url, "SELECT summary FROM evictrail_v1.loops WHERE kind = 'dual_retry'")
			if want == nil {
				require.Empty(t, loops)
				return
			}
			require.Len(t, loops, 1)
			require.Regexp(t, `Attempt [56] then moved it without need, [39]m\d+s after worker-1 was last over its threshold; worker-2 went over its own\.$`, loops[0].Summary)
		})
	}
}
