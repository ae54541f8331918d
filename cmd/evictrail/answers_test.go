package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestAPhaseBecomesARow walks the one-minute path: a VMIM's phase on the wire, observation, fact, derived row, reader.
func TestAPhaseBecomesARow(t *testing.T) {
	t.Parallel()
	const wire = `{"metadata":{"namespace":"shop","name":"kubevirt-evacuation-x","uid":"m1","resourceVersion":"12","creationTimestamp":"2026-11-21T00:00:01Z",
		"annotations":{"kubevirt.io/evacuationMigration":"n1"}},"spec":{"vmiName":"db"},
		"status":{"phase":"Running","phaseTransitionTimestamps":[{"phase":"Running","phaseTransitionTimestamp":"2026-11-21T00:00:07Z"}]}}`

	observation, err := collector.Decode("virtualmachineinstancemigrations", []byte(wire)) // collector/migration.go
	require.NoError(t, err)
	at := time.Date(2026, 11, 21, 0, 0, 7, 400_000_000, time.UTC)
	facts := tracker.New("c1").Observe(observation(tracker.Seen{At: at})) // trail/tracker/migration.go
	require.Len(t, facts, 2)
	require.Equal(t, trail.KindMigrationPhase, facts[1].Kind)
	require.Equal(t, "Running", facts[1].Value)

	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	news, err := s.Append(t.Context(), "c1", facts) // store/tables/facts.go, trail/attempt.go, store/derived.go
	require.NoError(t, err)
	require.Len(t, news.Facts, 2)

	code, out, stderr := runCommand(t, "migrations", "--vm", "shop/db", "-o", "json", "--database-url", url) // store/read/view.go
	require.Equal(t, exitFound, code, stderr)
	var got []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got, 1)
	require.Equal(t, "2026-11-21T00:00:07+00:00", got[0]["running_at"])
	require.Equal(t, "Running", got[0]["phase"])
}

func TestReaders(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy")
	ask := func(args ...string) string {
		code, out, stderr := runCommand(t, append(args, "--database-url", url)...)
		require.Equal(t, exitFound, code, "%v: %s", args, stderr)
		return out
	}
	all := ask("evacuations")
	require.Len(t, strings.Split(strings.TrimSpace(all), "\n"), 1+8+3+4)
	require.Contains(t, all, "CLUSTER", "several clusters are distinguished")
	drain := ask("evacuations", "--cluster", "c-node-drain")
	require.NotContains(t, drain, "CLUSTER")
	require.Contains(t, drain, "web-3")
	require.NotContains(t, drain, "vm-d")
	require.Len(t, strings.Split(strings.TrimSpace(ask("evacuations", "--node", "worker-2", "--cluster", "c-node-drain", "--limit", "2")), "\n"), 3)
	require.NotContains(t, ask("migrations", "--since", "2026-11-21T00:44:00Z", "--cluster", "b-dual-retry-loop-v1.8"), "xr9vm")
	records, err := csv.NewReader(strings.NewReader(ask("migrations", "-n", "demo", "--vm", "vm-d", "-o", "csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 7)
	require.Contains(t, ask("timeline", "--vm", "demo/vm-d"), "Attempt 6 (kubevirt-evacuation-pchh5) succeeded from worker-1 to worker-2.")
	for _, view := range []string{"evacuations", "migrations", "timeline"} {
		require.True(t, json.Valid([]byte(ask(view, "-o", "json", "--limit", "0"))))
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	names := []string{"b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy", "e-user-migrations", "k-blocked-slot"}
	url, blind := playedURL(t, names...), storetest.NewURL(t)
	for _, name := range names {
		if !testing.Short() {
			playBuiltin(t, blind, name, "--no-audit")
		}
	}
	const unnamed = "Requester unknown: no audit and no observer here. To know the next: send audit events"
	for _, c := range []struct {
		name, url, vm, at string
		says              []string
	}{
		{"asked, with which words, acted, done", url, "demo/vm-d", "2026-11-21T00:45:07Z", []string{
			`At 2026-11-21 00:32:56Z the descheduler asked to evict it from worker-1, saying "triggered by KubeVirtRelieveAndMigrate/LowNodeUtilization:"`,
			"KubeVirt accepted at 2026-11-21 00:32:56Z (observed: audit 2c84c83b", "Attempt 6 (kubevirt-evacuation-pchh5) to worker-2 succeeded at 2026-11-21 00:44:10Z",
		}},
		{"kubectl polls", url, "demo/web-3", "2026-11-21T00:36:00Z", []string{
			"kubernetes-admin (kubectl) asked to evict it from worker-2;", "asked again, 7 times until 2026-11-21 00:34:34Z; that changed nothing",
		}},
		{"somebody asks too, and somebody cancels", url, "demo/ext-2", "2026-11-21T00:45:10Z", []string{
			"bob (kubectl) asked too at 2026-11-21 00:42:54Z", "cancelled at 2026-11-21 00:45:09Z by alice",
		}},
		{"evicted, not moved", url, "demo/ifposs-1", "2026-11-21T00:36:00Z", []string{
			"At 2026-11-21 00:33:58Z kubernetes-admin (kubectl) asked to evict it from worker-2 (observed: audit f398f073",
			"The VM was shut down, not moved: its pod virt-launcher-ifposs-1-mplnv was evicted by kubernetes-admin (kubectl); KubeVirt let that pass, " +
				"as its strategy is LiveMigrateIfPossible and it could not be live-migrated.", "runs on worker-1",
		}},
		{"evicted by nobody knows whom", blind, "demo/batch-1", "2026-11-21T00:36:00Z", []string{"shut down, not moved: its pod virt-launcher-batch-1-72lq7 was evicted;"}},
		{"refused", url, "demo/db-local", "2026-11-21T00:36:20Z", []string{
			"asked to evict it from worker-2, and again, 27 times until 2026-11-21 00:36:15Z: refused, as it cannot be live-migrated",
		}},
		{"a user's own move, by whom", url, "demo/app-2", "2026-11-21T00:41:00Z", []string{"bob-rebalance-jcnkw was created by bob (for: named node)"}},
		{"the migrate subresource, by whom", url, "demo/app-3", "2026-11-21T00:41:00Z", []string{"kubevirt-migrate-vm-bjjhf was created by alice (for: user, observed)"}},
		{"a chain of failures that ended well", blind, "demo/vm-d", "2026-11-21T00:45:07Z", []string{
			"asked by the descheduler (asserted", unnamed, "KubeVirt made 6 attempts; 5 failed (2 × data transfer, libvirt error", "Attempt 6 (kubevirt-evacuation-pchh5) to worker-2 succeeded at 2026-11-21 00:44:10Z, 11 min after the request", "runs on worker-2",
		}},
		{"the same in the middle of it", blind, "demo/vm-d", "2026-11-21T00:36:30Z", []string{"4 failed", "Still not moved, 3 min 33 s after", "Attempt 5 (kubevirt-evacuation-d64t9) is in phase Pending", "evacuate/cancel"}},
		{"a drain", blind, "demo/web-3", "2026-11-21T00:36:00Z", []string{"asked by the user who drains the node (inferred: node worker-2 was cordoned", "Attempt 2"}},
		{"strategy External", blind, "demo/ext-2", "2026-11-21T00:45:48Z", []string{"makes no migration: the controller that owns the VM must act", `{"evacuationNodeName":"worker-1"}`}},
		{"a user's own move", blind, "demo/app-2", "2026-11-21T00:41:00Z", []string{"migration bob-rebalance-jcnkw was created (for: named node)", "from worker-3 to worker-1"}},
		{"an eviction that never ends", blind, "demo/nbr-2", "2026-11-21T01:10:40Z", []string{"9 attempts; 8 failed (8 × data transfer, libvirt error)", "is in phase Pending since 2026-11-21 01:10:29Z"}},
		{"nothing happened", url, "demo/app-4", "2026-11-21T00:41:00Z", []string{"no eviction and no migration", "runs on worker-1"}},
	} {
		if testing.Short() && c.url == blind {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runCommand(t, "why", c.vm, "--verbose", "--evidence", "0", "--at", c.at, "--database-url", c.url)
			require.Equal(t, exitFound, code, stderr)
			said := strings.Join(strings.Fields(out), " ")
			for _, s := range c.says {
				require.Contains(t, said, s)
			}
			require.Contains(t, out, "Evidence:\n  2026-11-21")
		})
	}
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"VM that nobody knows", []string{"why", "shop/nope"}, exitNotFound, "`evictrail timeline` lists the VMs that are known"},
		{"nothing to list", []string{"evacuations"}, exitNotFound, "nothing found"},
		{"nothing to list as JSON", []string{"gaps", "-o", "json"}, exitNotFound, "nothing found"},
		{"not a VM", []string{"why", "nope"}, exitUsage, "expected NAMESPACE/VM"},
		{"no VM", []string{"why"}, exitUsage, "accepts between 1 and 2 arg(s)"},
		{"node that nobody knows", []string{"why", "node", "nope"}, exitNotFound, "`evictrail timeline` lists the nodes that are known"},
		{"unknown flag", []string{"evacuations", "--colour"}, exitUsage, "unknown flag"},
		{"unknown format", []string{"evacuations", "-o", "xml"}, exitUsage, "expected table, wide, json, yaml or csv"},
		{"unknown time", []string{"evacuations", "--since", "yesterday"}, exitUsage, "or an age such as 90m or 7d"},
		{"two namespaces", []string{"evacuations", "-n", "a", "--vm", "b/c"}, exitUsage, "is not in namespace a"},
		{"no such recording", []string{"play", "/nowhere"}, exitError, "expected a folder with trace.jsonl.gz"},
		{"negative", []string{"play", recordingDir("c-node-drain"), "--cut-every=-1"}, exitUsage, "must not be negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runCommand(t, append(c.args, "--database-url", url)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
		})
	}
	code, _, stderr := runCommand(t, "evictions")
	require.Equal(t, exitUsage, code, stderr)
	code, _, stderr = runCommand(t, "evacuations", "--database-url", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "give --database-url or set EVICTRAIL_DATABASE_URL")
	code, _, stderr = runCommand(t, "evacuations", "--database-url", "postgres://u@127.0.0.1:1/x")
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "database unavailable")
	code, _, stderr = runCommand(t, "run", "--listen", "0.0.0.0:0")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--auth=none")
}

// TestNothingFound asks for what is not there: a cluster that is not recorded is named with those that are, and that nothing went wrong is no error.
func TestNothingFound(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := storetest.NewURL(t)
	code, _, stderr := runCommand(t, "loops", "--cluster", "nope", "--database-url", url)
	require.Equal(t, exitNotFound, code)
	require.Equal(t, "evictrail: no cluster named \"nope\"; nothing is recorded yet\n", stderr)
	playBuiltin(t, url, "c-node-drain")
	playBuiltin(t, url, "a-descheduler-eviction-success")
	server := serveAPI(t, url)
	const unknown = "evictrail: no cluster named \"%s\"; known clusters: a-descheduler-eviction-success, c-node-drain\n"
	for _, c := range []struct {
		args        []string
		code        int
		out, stderr string
	}{
		{[]string{"loops", "--cluster", "nope"}, exitNotFound, "", fmt.Sprintf(unknown, "nope")},
		{[]string{"gaps", "--cluster", "c-node"}, exitNotFound, "", fmt.Sprintf(unknown, "c-node")},
		{[]string{"why", "demo/web-3", "--cluster", "nope"}, exitNotFound, "", fmt.Sprintf(unknown, "nope")},
		{[]string{"why-not", "node", "worker-2", "--cluster", "nope"}, exitNotFound, "", fmt.Sprintf(unknown, "nope")},
		{[]string{"gaps"}, exitFound, "No gaps recorded.\n", ""},
		{[]string{"gaps", "-o", "json"}, exitFound, "[]\n", ""},
		{[]string{"loops", "--cluster", "c-node-drain"}, exitFound, "No loops recorded.\n", ""},
		{[]string{"evacuations", "--vm", "demo/nope"}, exitNotFound, "", "evictrail: evacuations: nothing found: try without filters, or `evictrail timeline` to see what is there\n"},
	} {
		for _, way := range []string{"--database-url=" + url, "--server=" + server} {
			code, out, stderr := runCommand(t, append(c.args, way)...)
			require.Equal(t, c.code, code, "%s %s", c.args, stderr)
			require.Equal(t, c.out, out, c.args)
			require.Equal(t, c.stderr, stderr, c.args)
		}
	}
}

func TestSchemaCommands(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	code, _, stderr := runCommand(t, "schema", "status", "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "run `evictrail schema up`")
	code, _, stderr = runCommand(t, "evacuations", "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "run `evictrail schema up`")
	code, out, stderr := runCommand(t, "schema", "up", "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "applied schema ")
	code, out, _ = runCommand(t, "schema", "up", "--database-url", url)
	require.Equal(t, exitFound, code)
	require.Contains(t, out, "up to date")
	code, out, _ = runCommand(t, "schema", "roles")
	require.Equal(t, exitFound, code)
	require.Contains(t, out, "evictrail_reader")
	code, out, _ = runCommand(t, "version")
	require.Equal(t, exitFound, code)
	require.Regexp(t, `^evictrail, version \S+ \(branch: \S+, revision: \S+\)\n  build user:       \S+\n  build date:       \S+\n`, out)
	code, out, _ = runCommand(t, "completion", "bash")
	require.Equal(t, exitFound, code)
	require.Contains(t, out, "__start_evictrail")
}

// TestPlayRefusesABrokenRecording takes a recording whole or not at all, and says where it is broken.
func TestPlayRefusesABrokenRecording(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	dir := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.Mkdir(dir, 0o755))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	line := `{"t":"2026-11-21T00:00:00Z","resource":"virtualmachineinstances","kind":"SYNC","listResourceVersion":"5","object":{"metadata":{"name":"db","namespace":"shop","uid":"u","resourceVersion":"3"}}}` + "\n"
	_, err := z.Write([]byte(line + strings.Replace(line, `"uid":"u"`, `"uid":"u","annotations":{"big":"`+strings.Repeat("x", 1<<20)+`"}`, 1)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.jsonl.gz"), b.Bytes(), 0o644))
	code, _, stderr := runCommand(t, "play", dir, "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "broken/trace.jsonl.gz:2: read shop/db: annotations of")
	require.Empty(t, readPublicViews(t, url)["events"])
}
