package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestRunOutlivesItsPostgres kills the embedded Postgres of a run and keeps it from being started for a while: what happens meanwhile is spooled, the state
// names the database, and once that is back everything is stored. Nothing is missing, and there is no gap.
func TestRunOutlivesItsPostgres(t *testing.T) {
	t.Parallel()
	const name = "k-blocked-slot"
	kubeconfig, further := clusterAt(t, name, half)
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)) // as root the server runs as another user
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url=", "--data-dir", dir, "--spool-dir", t.TempDir()}
	log, stop := startUnready(t, args)
	s := runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
	ready := func() bool { return s.get(t, "/readyz") == "ok\n" }
	require.Eventually(t, ready, 2*time.Minute, 20*time.Millisecond, log)
	require.NotContains(t, log.String(), "level=ERROR")
	require.NotContains(t, serverLog(t, dir), "ERROR:", "nothing is wrong at a first start")
	url := regexp.MustCompile(`EVICTRAIL_DATABASE_URL='([^']+)'`).FindStringSubmatch(log.String())[1]

	other, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	held := make(chan error, 1)
	go func() { held <- syscall.Flock(int(other.Fd()), syscall.LOCK_EX) }() // as soon as the server has ended
	require.NoError(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL))
	require.NoError(t, <-held)
	further(all)
	require.Eventually(t, func() bool { return strings.Contains(s.get(t, "/readyz"), "is spooled and not stored: ") }, 2*time.Minute, 50*time.Millisecond)
	require.Contains(t, s.get(t, "/readyz"), "The database")
	require.True(t, s.isReady(t), "what is seen is kept all the same")
	require.Contains(t, log.String(), "embedded server ended by itself, starting it again")
	require.NoError(t, other.Close())

	require.Eventually(t, ready, 2*time.Minute, 50*time.Millisecond, log)
	calmConfig, calmFurther := clusterAt(t, name, half)
	calmURL := storetest.NewURL(t)
	calm := startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calmURL}, nil)
	calmFurther(all)
	require.Eventually(t, func() bool { return len(whats(t, calmURL)) > 0 && len(whats(t, calmURL)) == len(whats(t, url)) }, time.Minute, 100*time.Millisecond)
	require.Equal(t, whats(t, calmURL), whats(t, url))
	require.Empty(t, everything(t, url)["gaps"])
	require.Equal(t, exitFound, calm.stop())
	require.Equal(t, exitFound, s.stop())
	require.NoError(t, syscall.Flock(int(reopen(t, dir).Fd()), syscall.LOCK_EX|syscall.LOCK_NB), "no server is left")
}

// postmaster returns the process ID of the server on a data directory.
func postmaster(t *testing.T, dir string) int {
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

// reopen opens the lock file of a directory.
func reopen(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
