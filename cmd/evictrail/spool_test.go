package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// lateDatabase names a database that does not exist until made is called.
func lateDatabase(t *testing.T) (url string, made func()) {
	t.Helper()
	there := storetest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), there)
	require.NoError(t, err)
	var name string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+"_later WITH (FORCE)")
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	})
	return strings.Replace(there, "?", "_later?", 1), func() {
		_, err := conn.Exec(t.Context(), "CREATE DATABASE "+name+"_later")
		require.NoError(t, err)
	}
}

// clusterAt is a cluster that stands still after some lines of a recording; further lets it go on.
func clusterAt(t *testing.T, name string, line func(lines int) int) (kubeconfig string, further func(line func(lines int) int)) {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	next := 0
	further = func(line func(lines int) int) {
		for ; next < line(len(rec.Lines)); next++ {
			server.Release(next)
		}
	}
	further(line)
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	return writeKubeconfig(t, cluster.URL), further
}

func countHalfLines(lines int) int { return lines / 2 }
func countAllLines(lines int) int  { return lines }

// TestRunWithoutItsDatabase starts before there is a database, restarts without one, and stores everything once when it comes.
func TestRunWithoutItsDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	kubeconfig, further := clusterAt(t, "k-blocked-slot", countHalfLines)
	url, made := lateDatabase(t)
	dir := t.TempDir()
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", dir}
	spooled := func(s runningService) bool {
		return strings.Contains(s.getBody(t, "/readyz"), "is spooled and not stored: ")
	}

	first := startNoted(t, args)
	require.Eventually(t, func() bool { return spooled(first) }, 2*time.Minute, 20*time.Millisecond)
	require.Contains(t, first.getBody(t, "/readyz"), "create the database first")
	require.Eventually(t, func() bool { return !strings.Contains(first.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Contains(t, first.getBody(t, "/metrics"), "\nevictrail_spool_writable 1\n")
	code, _, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Equal(t, exitError, code, "the database is away")
	require.Equal(t, exitFound, first.stop())
	further(countAllLines)
	_, found, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Regexp(t, `warn  spool .* [0-9]+ facts wait for the database, the oldest since `, found)

	second := startNoted(t, args)
	require.Eventually(t, func() bool { return spooled(second) }, 2*time.Minute, 20*time.Millisecond)
	require.Equal(t, exitFound, second.stop())

	third := startNoted(t, args)
	made()
	require.Eventually(t, func() bool { return third.getBody(t, "/readyz") == "ok\n" }, 2*time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 2 }, 2*time.Minute, 50*time.Millisecond, "the times between the three")
	require.Eventually(t, func() bool { return strings.Contains(third.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, third.stop())
	for _, gap := range readPublicViews(t, url)["gaps"] {
		require.Contains(t, gap, `"not_running"`)
	}
	undisturbed := storetest.NewURL(t)
	again, furtherAgain := clusterAt(t, "k-blocked-slot", countHalfLines)
	calm := []string{"run", "--kubeconfig", again, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", undisturbed, "--spool-dir", t.TempDir()}
	require.Equal(t, exitFound, startRun(t, calm, nil).stop())
	furtherAgain(countAllLines)
	require.Equal(t, exitFound, startRun(t, calm, nil).stop())
	require.Equal(t, queryRecordedEvents(t, undisturbed), queryRecordedEvents(t, url), "each once, and nothing else")

	require.Len(t, readPublicViews(t, url)["gaps"], 2)
	fourth := startRun(t, args, nil)
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 3 }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, fourth.stop())
	require.Equal(t, queryRecordedEvents(t, undisturbed), queryRecordedEvents(t, url))
}

// queryRecordedEvents returns what is recorded of each object, but when it was seen: a restart sees some of it later.
func queryRecordedEvents(t *testing.T, url string) []map[string]any {
	t.Helper()
	return queryRows[map[string]any](t, url, `
SELECT subject, kind, object_uid, what, value
FROM evictrail.events
WHERE object_kind <> 'Source'
ORDER BY subject, kind, object_uid, what, value, object_version`)
}

// startNoted runs the service until it records, whatever it says of its database.
func startNoted(t *testing.T, args []string) runningService {
	t.Helper()
	log, stop := startUnready(t, args)
	s := runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
	require.Eventually(t, func() bool { return s.isReady(t) }, 2*time.Minute, 20*time.Millisecond, log)
	return s
}

// TestRunWithALostSpool starts with neither its spool nor its database, which knows the cluster: what ended during that time is recorded when it
// comes back, and the time since it last heard of us is a gap.
func TestRunWithALostSpool(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	kubeconfig, further := clusterAt(t, "b2-dual-retry-same-vm", countHalfLines)
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url}
	require.Equal(t, exitFound, startRun(t, args, nil).stop())
	open := len(openOf(t, url))
	require.Positive(t, open, "something is open in the middle of the recording")
	further(countAllLines)

	allow := forbidConnections(t, url)
	log, stop := startUnready(t, args)
	s := runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/readyz"), "spooled and not stored: ") }, 2*time.Minute, 20*time.Millisecond, log)
	allow()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "cluster is listed again") }, 2*time.Minute, 50*time.Millisecond, log)
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 1 }, 2*time.Minute, 50*time.Millisecond, log)
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, stop())
	require.Equal(t, 1, strings.Count(log.String(), "cluster is listed again"), log)

	calm := storetest.NewURL(t)
	require.Equal(t, exitFound, startRun(t, append(append([]string{}, args[:7]...), "--database-url", calm), nil).stop())
	require.Equal(t, openOf(t, calm), openOf(t, url), "what is open is what is open in the cluster")
	require.NotEqual(t, open, len(openOf(t, url)), "some of what was open has ended")
}

// openOf returns what is open: guests, evacuations, migrations, by what distinguishes them.
func openOf(t *testing.T, url string) []map[string]any {
	t.Helper()
	return queryRows[map[string]any](t, url, `
SELECT 'guest' AS what, vmi, node FROM evictrail.placements WHERE to_at IS NULL
UNION ALL SELECT 'evacuation', vmi, node FROM evictrail.evacuations WHERE ended_at IS NULL
UNION ALL SELECT 'migration', vmi, migration_uid FROM evictrail.migrations WHERE finished_at IS NULL
ORDER BY 1, 2, 3`)
}

// forbidConnections keeps everybody out of a database until allow is called.
func forbidConnections(t *testing.T, url string) (allow func()) {
	t.Helper()
	admin := strings.Replace(url, nameOfDatabase(t, url), "postgres", 1)
	name := nameOfDatabase(t, url)
	execSQL(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
	execSQL(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	return func() { execSQL(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true") }
}

func nameOfDatabase(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	return config.Database
}

// TestRunKilledWithoutItsDatabase kills evictrail while its database is away: what was spooled is stored by the next.
func TestRunKilledWithoutItsDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	kubeconfig, _ := clusterAt(t, "b2-dual-retry-same-vm", countAllLines)
	url, made := lateDatabase(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}
	self, err := os.Executable()
	require.NoError(t, err)
	for range 3 {
		log := &lockedBuilder{}
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env, cmd.Stderr = append(os.Environ(), asCommand+"=1"), log
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return strings.Count(log.String(), "watch synced") >= 6 }, 2*time.Minute, time.Millisecond, log)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	made()
	s := startRun(t, args, nil)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, s.stop())
	calm := storetest.NewURL(t)
	require.Equal(t, exitFound, startRun(t, append(append([]string{}, args[:7]...), "--database-url", calm), nil).stop())
	require.Equal(t, openOf(t, calm), openOf(t, url))
	require.Equal(t, queryRecordedEvents(t, calm), queryRecordedEvents(t, url))
}

// TestRunWithABrokenSpoolDirectory wants facts to go straight to the database, and that to be said.
func TestRunWithABrokenSpoolDirectory(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	kubeconfig, _ := clusterAt(t, "k-blocked-slot", countAllLines)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", file}
	s := startNoted(t, args)
	require.Contains(t, s.getBody(t, "/readyz"), "facts go straight to the database")
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_writable 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, s.stop())
	calm := storetest.NewURL(t)
	require.Equal(t, exitFound, startRun(t, append(append([]string{}, args[:7]...), "--database-url", calm), nil).stop())
	require.Equal(t, queryRecordedEvents(t, calm), queryRecordedEvents(t, url))
	_, found, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Regexp(t, `fail  spool .*not a directory`, found)
}

func TestSpoolFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        int64
		err         string
	}{
		{"binary", "4GiB", 4 << 30, ""},
		{"as Kubernetes writes it", "512Mi", 512 << 20, ""},
		{"decimal", "20GB", 20e9, ""},
		{"bytes", "50000000", 50_000_000, ""},
		{"a word", "plenty", 0, "expected a number of bytes, such as 512MiB"},
		{"too little", "1MiB", 0, "spool-size 1MiB: expected at least 16MiB"},
		{"less than nothing", "-4GiB", 0, "expected a number of bytes"},
		{"too much", "9999999999TiB", 0, "expected a number of bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := spoolFlags{dir: "d"}
			err := f.size.Set(c.value)
			if err == nil {
				err = f.checkFlags()
			}
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, int64(f.size))
		})
	}
	_, out, _ := runCommand(t, "run", "--help")
	require.Contains(t, out, "(default 4GiB)")
}

// TestOneRunPerSpool names the file that another process has.
func TestOneRunPerSpool(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	kubeconfig, _ := clusterAt(t, "k-blocked-slot", countAllLines)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", storetest.NewURL(t), "--spool-dir", t.TempDir()}
	startRun(t, args, nil)
	log := &lockedBuilder{}
	require.Equal(t, exitError, executeCommand(t.Context(), args, io.Discard, log))
	require.Contains(t, log.String(), filepath.Join(args[len(args)-1], "c1.queue")+": in use by another evictrail: stop that one")
	_, found, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Regexp(t, `ok    spool .* a running evictrail has it`, found)
}

// TestRunThroughAnOutage takes the database away while the cluster goes on: watches and audit events are taken in, and stored once when it
// is back. Nothing is a gap.
func TestRunThroughAnOutage(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "c-node-drain"
	kubeconfig, further := clusterAt(t, name, countHalfLines)
	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url}
	s := startRun(t, args, nil)
	allow := forbidConnections(t, url)
	further(countAllLines)
	began := time.Now()
	code, body := s.postBody(t, "/audit", auditLog(t, name))
	require.Equal(t, http.StatusOK, code, body)
	t.Logf("the audit log was taken in within %s", time.Since(began))
	waits := regexp.MustCompile(`spooled and not stored: [0-9]+ facts, the oldest since `)
	require.Eventually(t, func() bool { return waits.MatchString(s.getBody(t, "/readyz")) }, 2*time.Minute, 50*time.Millisecond)
	require.True(t, s.isReady(t), "audit events are to be sent here all the same")

	calmConfig, calmFurther := clusterAt(t, name, countHalfLines)
	calmURL := storetest.NewURL(t)
	calm := startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calmURL}, nil)
	calmFurther(countAllLines)
	code, body = calm.postBody(t, "/audit", auditLog(t, name))
	require.Equal(t, http.StatusOK, code, body)
	allow()
	const most = 150 // facts, of nearly 200: so many are there when all is in
	require.Eventually(t, func() bool {
		there, here := queryRecordedEvents(t, calmURL), queryRecordedEvents(t, url)
		return len(there) > most && reflect.DeepEqual(there, here)
	}, 40*time.Second, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n") && s.getBody(t, "/readyz") == "ok\n"
	}, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, exitFound, s.stop())
	require.Equal(t, exitFound, calm.stop())
	require.Equal(t, queryRecordedEvents(t, calmURL), queryRecordedEvents(t, url))
	require.Empty(t, readPublicViews(t, url)["gaps"])
	derived := func(url string) []map[string]any {
		return queryRows[map[string]any](t, url, `
SELECT vmi, outcome, attempts, failed_attempts, requester_class FROM evictrail_v1.evacuations ORDER BY vmi, marked_at`)
	}
	require.Equal(t, derived(calmURL), derived(url))
}
