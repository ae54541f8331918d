package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// newShopCluster is the cluster of the tests: two nodes, two guests on n1 of which one is marked, and a third that will not be in any backup.
func newShopCluster(t *testing.T) (e *etcd, restore func()) {
	t.Helper()
	e = newEtcd(t, "cluster-a", 2000)
	e.putObject("kubevirts", "kubevirt", "kubevirt", "kv", map[string]any{"status": map[string]any{"observedKubeVirtVersion": "v1.5.0"}})
	e.putObject("nodes", "", "n1", "n1", nil)
	e.putObject("nodes", "", "n2", "n2", nil)
	e.putVMI("db-1", "u1", "n1", "")
	e.putVMI("db-2", "u2", "n1", "")
	restore = e.saveSnapshot()
	e.mu.Lock()
	e.version = 102_656
	e.mu.Unlock()
	e.putVMI("db-2", "u2", "n1", "n1")
	e.putVMI("db-3", "u3", "n2", "")
	return e, restore
}

// queryPlacements returns on which node each guest is, by its name and UID.
func queryPlacements(t *testing.T, url string) string {
	t.Helper()
	type guest struct{ VMI, UID, Node string }
	var out []string
	for _, g := range queryRows[guest](t, url, `SELECT vmi AS "VMI", vmi_uid AS "UID", node AS "Node" FROM evictrail_v1.placements WHERE to_at IS NULL ORDER BY vmi, vmi_uid`) {
		out = append(out, fmt.Sprintf("%s/%s on %s", g.VMI, g.UID, g.Node))
	}
	return strings.Join(out, ", ")
}

// queryBreakCauses returns the causes of the gaps that say that something does not continue what was recorded.
func queryBreakCauses(t *testing.T, url string) []string {
	t.Helper()
	return queryColumn(t, url, `SELECT cause AS value FROM evictrail_v1.gaps WHERE cause IN ('cluster_restored', 'cluster_rebuilt', 'database_rewound') AND closed_at IS NOT NULL ORDER BY opened_at`)
}

// queryColumn returns the values of a query with one column of that name.
func queryColumn(t *testing.T, url, query string) (out []string) {
	t.Helper()
	for _, r := range queryRows[struct{ Value string }](t, url, query) {
		out = append(out, r.Value)
	}
	return out
}

func requireEventually(t *testing.T, want any, got func() any, log fmt.Stringer) {
	t.Helper()
	last := any(nil)
	if !pollUntil(20*time.Second, func() bool { last = got(); return fmt.Sprint(last) == fmt.Sprint(want) }) {
		require.Equal(t, want, last, log)
	}
}

func pollUntil(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// TestRestoredCluster puts etcd back under a running evictrail, and again while it is stopped: the record follows the cluster, and says where it broke.
func TestRestoredCluster(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	e, restore := newShopCluster(t)
	url, dir := storetest.NewURL(t), t.TempDir()
	args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", dir}
	log, stop := startUnready(t, args)
	s := serviceOf(log, stop)
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)

	restore()
	e.putVMI("db-1", "u1", "n2", "")
	e.putVMI("db-2", "u2", "n2", "n2")
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n2", func() any { return queryPlacements(t, url) }, log)
	requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, log)
	require.Contains(t, s.getBody(t, "/metrics"), `evictrail_epochs_total{cause="cluster_restored"} 1`)
	require.Equal(t, 1, strings.Count(log.String(), "a new epoch begins"), log)
	require.Equal(t, []string{"not_restored"}, queryColumn(t, url, `SELECT reason AS value FROM evictrail.events WHERE kind = 'vmi_ended' AND vmi = 'db-3' AND seen_late`))
	marked := func() any {
		return queryColumn(t, url, `SELECT vmi || ' off ' || node AS value FROM evictrail_v1.evacuations WHERE ended_at IS NULL ORDER BY vmi`)
	}
	requireEventually(t, []string{"db-2 off n2"}, marked, log)
	e.putVMI("db-2", "u2", "n1", "")
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, log)

	require.Equal(t, exitFound, stop())
	restore() // and it comes to a higher version than was recorded
	for range 20 {
		e.putVMI("db-1", "u1", "n2", "")
	}
	log, stop = startUnready(t, args)
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, log)
	requireEventually(t, []string{"cluster_restored", "cluster_restored"}, func() any { return queryBreakCauses(t, url) }, log)
	require.Equal(t, exitFound, stop())
}

// TestRestoredClusterThatCameFurther puts etcd back and writes more than there was before evictrail sees the cluster again: its watches could go on where they were.
// What changed last is older than it was recorded, or gone.
func TestRestoredClusterThatCameFurther(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"what changed last is older": "db-2", "what changed last is gone": "db-3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, restore := newShopCluster(t)
			e.removeObject("virtualmachineinstances", "shop", "db-1") // it is there again, at a higher version than its end was recorded at
			e.putVMI(last, "u"+last[3:], "n1", "n1")
			url := storetest.NewURL(t)
			args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url}
			log, stop := startUnready(t, args)
			requireEventually(t, 2, func() any { return strings.Count(queryPlacements(t, url), " on ") }, log)
			e.setRefusing(true)
			restore()
			e.putVMI("db-1", "u1", "n2", "")
			e.mu.Lock()
			e.version = 200_000
			e.mu.Unlock()
			e.setRefusing(false)
			requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, log)
			requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, log)
			require.Equal(t, exitFound, stop())
		})
	}
}

// TestRestoredClusterShownByAnotherResource puts etcd back, and writes more than there was before, while only the watch of migrations ends. The one that changed last is
// gone, which alone could be a deletion; a guest that is older than it was recorded shows that it is none.
func TestRestoredClusterShownByAnotherResource(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, _ := newShopCluster(t)
	e.putVMI("db-2", "u2", "n2", "")
	e.putObject("virtualmachineinstancemigrations", "shop", "m1", "mu1", map[string]any{"spec": map[string]any{"vmiName": "db-1"}, "status": map[string]any{"phase": "Running"}})
	url := storetest.NewURL(t)
	log, stop := startUnready(t, []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url})
	requireEventually(t, []string{"m1"}, func() any { return queryColumn(t, url, `SELECT migration AS value FROM evictrail_v1.migrations`) }, log)
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n2, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)
	e.goBack()
	e.mu.Lock()
	e.version = 200_000
	e.mu.Unlock()
	e.endWatch("virtualmachineinstancemigrations")
	requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, log)
	requireEventually(t, []string{"not_restored"}, func() any {
		return queryColumn(t, url, `SELECT reason AS value FROM evictrail.events WHERE kind = 'migration_gone'`)
	}, log)
	require.Equal(t, exitFound, stop())
}

// TestRestoredClusterAsAWatchBegins puts etcd back after evictrail has checked that the cluster continues, and before its watch is open.
func TestRestoredClusterAsAWatchBegins(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, _ := newShopCluster(t)
	url := storetest.NewURL(t)
	var once sync.Once
	e.meets = func(resource string) {
		if resource != "virtualmachineinstances" {
			return
		}
		once.Do(func() {
			pollUntil(20*time.Second, func() bool { return strings.Count(queryPlacements(t, url), " on ") == 3 })
			e.goBack()
			e.putVMI("db-1", "u1", "n2", "")
			e.mu.Lock()
			e.version = 200_000
			e.mu.Unlock()
		})
	}
	args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url}
	log, stop := startUnready(t, args)
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, log)
	requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, log)
	require.Equal(t, exitFound, stop())
}

// serviceOf is a service of whose readiness nothing is known.
func serviceOf(log *lockedBuilder, stop func() int) runningService {
	return runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
}

// TestRebuiltCluster rebuilds a cluster under the same name, while evictrail runs and while it does not: what was there is closed, what is there is recorded.
func TestRebuiltCluster(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"running": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := newShopCluster(t)
			url, dir := storetest.NewURL(t), t.TempDir()
			args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", dir}
			log, stop := startUnready(t, args)
			requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)
			version := 10
			if !running { // then only its UID shows it
				require.Equal(t, exitFound, stop())
				version = 500_000
			}
			e.rebuildCluster("cluster-b", version)
			e.putVMI("db-1", "v1", "n3", "")
			if !running {
				log, stop = startUnready(t, args)
			}
			requireEventually(t, "db-1/v1 on n3", func() any { return queryPlacements(t, url) }, log)
			requireEventually(t, []string{"cluster_rebuilt"}, func() any { return queryBreakCauses(t, url) }, log)
			require.Empty(t, queryColumn(t, url, `SELECT vmi AS value FROM evictrail_v1.evacuations WHERE ended_at IS NULL`))
			require.Contains(t, serviceOf(log, stop).getBody(t, "/metrics"), `evictrail_epochs_total{cause="cluster_rebuilt"} 1`)
			require.Equal(t, exitFound, stop())
			code, out, _ := runCommand(t, "why", "shop/db-2", "--cluster", "prod", "--database-url", url)
			require.Equal(t, exitFound, code)
			require.Contains(t, out, "was not there any more when the cluster had been restored from a backup or rebuilt")

			log, stop = startUnready(t, args)
			require.Eventually(t, func() bool { return serviceOf(log, stop).getBody(t, "/readyz") == "ok\n" }, 2*time.Minute, 20*time.Millisecond, log)
			require.Equal(t, exitFound, stop())
			require.Equal(t, []string{"cluster_rebuilt"}, queryBreakCauses(t, url), "nothing else broke")
		})
	}
}

// TestRestoredClusterWithoutItsDatabase restores a cluster while the database takes nothing, and kills evictrail as soon as it has noticed: the next one knows of the break,
// and records it once.
func TestRestoredClusterWithoutItsDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, restore := newShopCluster(t)
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}
	_, process, log := startProcess(t, args)
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)
	allow := forbidConnections(t, url)
	restore()
	e.putVMI("db-1", "u1", "n2", "")
	require.True(t, pollUntil(20*time.Second, func() bool { return strings.Contains(log.String(), "a new epoch begins") }), log)
	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
	allow()

	again, stop := startUnready(t, args)
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, again)
	requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, again)
	require.Equal(t, []string{"1 cluster-a"}, queryColumn(t, url, `SELECT epoch || ' ' || uid AS value FROM evictrail.clusters`))
	require.Equal(t, exitFound, stop())
}

// startPatient starts a replica that is less patient with others, into the background. It returns its log and how to stop it.
func startPatient(t *testing.T, p patience, args []string) (*lockedBuilder, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := &lockedBuilder{}, make(chan error, 1)
	cmd := newRunWith(p)
	cmd.SetArgs(args[1:])
	cmd.SetOut(io.Discard)
	cmd.SetErr(log)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	require.Eventually(t, func() bool { return address.MatchString(log.String()) }, 2*time.Minute, 5*time.Millisecond, log)
	return log, stop
}

// TestTwoReplicasAgreeOnAnEpoch restores a cluster, and then rebuilds it, under two replicas: both go on, in the same epoch, and each break is recorded once.
func TestTwoReplicasAgreeOnAnEpoch(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, restore := newShopCluster(t)
	url := storetest.NewURL(t)
	var logs []fmt.Stringer
	var stops []func() error
	for _, replica := range []string{"first", "second"} {
		log, stop := startPatient(t, patience{watching: 12 * time.Second, silence: 40 * time.Second}, []string{"run", "--kubeconfig", e.config, "--cluster", "prod",
			"--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir(), "--replica", replica, "--leader-elect", "--leader-lease", "evictrail/evictrail"})
		logs, stops = append(logs, log), append(stops, stop)
	}
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, logs[0])
	both := func() any {
		return queryColumn(t, url, `SELECT DISTINCT replica AS value FROM evictrail.watching WHERE upto > now() - interval '15 s' ORDER BY 1`)
	}
	requireEventually(t, []string{"first", "second"}, both, logs[1])
	epoch := func() any { return queryColumn(t, url, `SELECT epoch || ' ' || uid AS value FROM evictrail.clusters`) }

	restore()
	e.putVMI("db-1", "u1", "n2", "")
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1", func() any { return queryPlacements(t, url) }, logs[0])
	requireEventually(t, []string{"cluster_restored"}, func() any { return queryBreakCauses(t, url) }, logs[0])
	require.Equal(t, []string{"1 cluster-a"}, epoch())

	e.rebuildCluster("cluster-b", 10)
	e.putVMI("db-1", "v1", "n3", "")
	pollUntil(time.Minute, func() bool { return queryPlacements(t, url) == "db-1/v1 on n3" }) // it takes until each has fallen silent
	requireEventually(t, "db-1/v1 on n3", func() any { return queryPlacements(t, url) }, saidBy(logs))
	requireEventually(t, []string{"cluster_restored", "cluster_rebuilt"}, func() any { return queryBreakCauses(t, url) }, saidBy(logs))
	require.Equal(t, []string{"2 cluster-b"}, epoch())
	requireEventually(t, []string{"first", "second"}, both, saidBy(logs))
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	require.Equal(t, []string{"cluster_restored", "cluster_rebuilt"}, queryBreakCauses(t, url))
}

// saidBy is what several replicas said.
func saidBy(logs []fmt.Stringer) fmt.Stringer {
	b := &lockedBuilder{}
	for _, log := range logs {
		_, _ = io.WriteString(b, log.String()+"\n----\n")
	}
	return b
}

// TestTwoClustersUnderOneName starts to record another cluster under a name under which one is being recorded: that is refused, and nothing of it is stored.
func TestTwoClustersUnderOneName(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, _ := newShopCluster(t)
	other := newEtcd(t, "cluster-b", 700)
	other.putVMI("foreign", "f1", "n9", "")
	url := storetest.NewURL(t)
	of := func(e *etcd, replica string) []string {
		return []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir(), "--replica", replica}
	}
	log, stop := startUnready(t, of(e, "first"))
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)
	watching := func() any { return len(queryColumn(t, url, `SELECT replica AS value FROM evictrail.watching LIMIT 1`)) }
	requireEventually(t, 1, watching, log)

	second := newRunWith(patience{watching: 30 * time.Second, silence: time.Second})
	second.SetArgs(of(other, "second")[1:])
	second.SetOut(io.Discard)
	second.SetErr(io.Discard)
	require.ErrorContains(t, second.ExecuteContext(t.Context()), `cluster "prod" is being recorded by first from a cluster whose namespace kube-system has the UID cluster-a; this one has cluster-b: record this one under another name with --cluster`)
	require.Equal(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", queryPlacements(t, url))
	require.Empty(t, queryBreakCauses(t, url))
	require.Equal(t, exitFound, stop())
}

// TestRewoundDatabase puts an older state of the database in its place while evictrail runs: what the cluster still says is recorded again, the rest is a gap.
func TestRewoundDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	e, _ := newShopCluster(t)
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", e.config, "--cluster", "prod", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}
	log, stop := startUnready(t, args)
	requireEventually(t, "db-1/u1 on n1, db-2/u2 on n1, db-3/u3 on n2", func() any { return queryPlacements(t, url) }, log)

	name := nameOfDatabase(t, url)
	admin := strings.Replace(url, name, "postgres", 1)
	closed := func(sql ...string) { // nobody may use a database that is copied or renamed
		execSQL(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
		execSQL(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
		for _, s := range sql {
			execSQL(t, admin, s)
		}
		execSQL(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	}
	closed("CREATE DATABASE " + name + "_before TEMPLATE " + name)
	e.putVMI("db-1", "u1", "n2", "")
	e.putVMI("db-4", "u4", "n2", "")
	e.removeObject("virtualmachineinstances", "shop", "db-3")
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1, db-4/u4 on n2", func() any { return queryPlacements(t, url) }, log)

	closed("ALTER DATABASE "+name+" RENAME TO "+name+"_lost", "ALTER DATABASE "+name+"_before RENAME TO "+name)
	execSQL(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	execSQL(t, admin, "DROP DATABASE "+name+"_lost WITH (FORCE)")
	requireEventually(t, "db-1/u1 on n2, db-2/u2 on n1, db-4/u4 on n2", func() any { return queryPlacements(t, url) }, log)
	requireEventually(t, []string{"database_rewound"}, func() any { return queryBreakCauses(t, url) }, log)
	require.Contains(t, serviceOf(log, stop).getBody(t, "/metrics"), `evictrail_epochs_total{cause="database_rewound"} 1`)
	require.Equal(t, []string{"deleted_unseen"}, queryColumn(t, url, `SELECT reason AS value FROM evictrail.events WHERE kind = 'vmi_ended' AND vmi = 'db-3'`))
	require.Equal(t, exitFound, stop())
}
