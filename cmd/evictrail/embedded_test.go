package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestRunOutlivesItsPostgres kills the embedded Postgres of a run and keeps it from being started for a while: what happens during that time is spooled, the state
// names the database, and once that is back everything is stored. Nothing is missing, and there is no gap.
func TestRunOutlivesItsPostgres(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "k-blocked-slot"
	kubeconfig, further := clusterAt(t, name, countHalfLines)
	dir := dataDir(t)
	args := []string{
		"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url=", "--data-dir", dir, "--spool-dir", t.TempDir(),
	}
	log, stop := startUnready(t, args)
	s := runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
	ready := func() bool { return s.getBody(t, "/readyz") == "ok\n" }
	require.Eventually(t, ready, 2*time.Minute, 20*time.Millisecond, log)
	require.NotContains(t, log.String(), "level=ERROR")
	require.NotContains(t, serverLog(t, dir), "ERROR:", "nothing is wrong at a first start")
	url := regexp.MustCompile(`EVICTRAIL_DATABASE_URL='([^']+)'`).FindStringSubmatch(log.String())[1]

	other, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	held := make(chan error, 1)
	go func() { held <- syscall.Flock(int(other.Fd()), syscall.LOCK_EX) }() // as soon as the server has ended
	require.NoError(t, syscall.Kill(readServerPID(t, dir), syscall.SIGKILL))
	require.NoError(t, <-held)
	further(countAllLines)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/readyz"), "is spooled and not stored: ") }, 2*time.Minute, 50*time.Millisecond)
	require.Contains(t, s.getBody(t, "/readyz"), "The database")
	require.True(t, s.isReady(t), "what is seen is kept all the same")
	require.Contains(t, log.String(), "embedded server ended by itself, starting it again")
	require.NoError(t, other.Close())

	require.Eventually(t, ready, 2*time.Minute, 50*time.Millisecond, log)
	calmConfig, calmFurther := clusterAt(t, name, countHalfLines)
	calmURL := storetest.NewURL(t)
	calm := startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calmURL}, nil)
	calmFurther(countAllLines)
	require.Eventually(t, func() bool {
		return len(queryRecordedEvents(t, calmURL)) > 0 && len(queryRecordedEvents(t, calmURL)) == len(queryRecordedEvents(t, url))
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, queryRecordedEvents(t, calmURL), queryRecordedEvents(t, url))
	require.Empty(t, readPublicViews(t, url)["gaps"])
	require.Equal(t, exitFound, calm.stop())
	require.Equal(t, exitFound, s.stop())
	lock := openLockFile(t, dir) // a process that another test has just forked holds it, too, until it runs its program
	require.Eventually(t, func() bool { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }, 20*time.Second, 20*time.Millisecond, "no server is left")
}

// waitForMatch waits for a match in what a command prints.
func waitForMatch(t *testing.T, out *lockedBuilder, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	require.Eventually(t, func() bool { return re.MatchString(out.String()) }, 5*time.Minute, 20*time.Millisecond, out)
	return re.FindStringSubmatch(out.String())[1]
}

// startPrinting runs a command that stays until it is stopped; what it prints and logs comes into one text.
func startPrinting(t *testing.T, args ...string) (out *lockedBuilder, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = &lockedBuilder{}
	code := make(chan int, 1)
	go func() { code <- executeCommand(ctx, args, out, out) }()
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { _ = stop() })
	return out, stop
}

// dataDir is a directory to be made for an embedded server, which may run as another user.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	return filepath.Join(dir, "data")
}

// TestPlayWithoutADatabase plays into a Postgres of its own, twice into the same directory: it can be asked until it is stopped, and has kept what was played.
func TestPlayWithoutADatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	dir := dataDir(t)
	for range 2 {
		out, stop := startPrinting(t, "play", recordingDir("a-descheduler-eviction-success"), "--database-url=", "--data-dir", dir)
		url := waitForMatch(t, out, `EVICTRAIL_DATABASE_URL='([^']+)'`)
		require.Contains(t, out.String(), "into cluster a-descheduler-eviction-success")
		code, found, stderr := runCommand(t, "evacuations", "--database-url", url)
		require.Equal(t, exitFound, code, stderr)
		require.Equal(t, 3, strings.Count(found, "\n"), found)
		require.Equal(t, exitFound, stop())
	}
}

// TestDemoNamesItsClusters plays two recordings whose nodes have the same names, in one of which the descheduler counts its blocks itself: the metrics of
// each have the name of its cluster.
func TestDemoNamesItsClusters(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	from := t.TempDir()
	for _, name := range []string{"c-node-drain", "g-churn-cooldown"} {
		require.NoError(t, os.CopyFS(filepath.Join(from, name), os.DirFS(recordingDir(name))))
	}
	out, stop := startPrinting(t, "demo", "--listen", "127.0.0.1:0", "--database-url=", "--data-dir", dataDir(t), "--recordings", from)
	waitForMatch(t, out, "(All 2 recordings are in)")
	s := runningService{base: "http://" + waitForMatch(t, out, `--server http://(\S+)`), client: http.DefaultClient, stop: stop}
	found := s.getBody(t, "/metrics")
	for _, name := range []string{"c-node-drain", "g-churn-cooldown"} {
		require.Regexp(t, `(?m)^evictrail_node_vmis\{cluster="`+name+`",node="worker-1"\} [1-9]`, found)
	}
	require.Regexp(t, `(?m)^evictrail_eviction_blocks_total\{cluster="g-churn-cooldown",.*\} [1-9]`, found)
	require.NotRegexp(t, `(?m)^evictrail_eviction_blocks_total\{(cluster="c-node-drain"|namespace)`, found)
	require.NotRegexp(t, `(?m)^evictrail_node_vmis\{node=`, found)
	require.Equal(t, exitFound, stop())
}

// readServerPID returns the process ID of the server on a data directory.
func readServerPID(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "pg*", "postmaster.pid"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	return pid
}

// serverLog returns what the server on a directory said.
func serverLog(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "pg*.log"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return string(text)
}

// openLockFile opens the lock file of a directory.
func openLockFile(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
