package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/leaktest"
)

// helperEnv makes the test binary a process that runs a server on this directory until it is killed.
const helperEnv = "EVICTRAIL_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		fmt.Println(runHelper(dir))
		select {}
	}
	leaktest.Main(m)
}

// runHelper starts a server, writes a row and returns the one line that is said about it.
func runHelper(dir string) string {
	ctx := context.Background()
	s, err := Start(ctx, newOptions(dir))
	if err != nil {
		return err.Error()
	}
	conn, err := pgx.Connect(ctx, s.URL("evictrail"))
	if err != nil {
		return err.Error()
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE kept AS SELECT 42 AS number"); err != nil {
		return err.Error()
	}
	return fmt.Sprint("ready ", s.PID())
}

func newOptions(dir string) Options {
	return Options{Dir: dir, Settings: map[string]string{"fsync": "off"}}
}

// tempDir is t.TempDir, open to the user that the server runs as when the tests run as root.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}

func startServer(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func openConn(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("evictrail"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// queryText returns the one text that a query answers.
func queryText(t *testing.T, s *Server, query string) string {
	t.Helper()
	var answer string
	require.NoError(t, openConn(t, s).QueryRow(t.Context(), query).Scan(&answer))
	return answer
}

func awaitDone(t *testing.T, s *Server) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		require.Fail(t, "the server did not end")
	}
}

func TestStartStopStart(t *testing.T) {
	t.Parallel()
	opts := newOptions(filepath.Join(tempDir(t), "made", "by us"))
	opts.Settings["work_mem"] = "5MB"
	opts.Settings["listen_addresses"] = "*"

	s := startServer(t, opts)
	require.Equal(t, s.Version(), strings.Fields(queryText(t, s, "SHOW server_version"))[0])
	require.Equal(t, s.DataDir(), queryText(t, s, "SHOW data_directory"))
	require.Equal(t, "UTC", queryText(t, s, "SHOW timezone"))
	require.Equal(t, "5MB", queryText(t, s, "SHOW work_mem"))
	require.Equal(t, "on", queryText(t, s, "SHOW data_checksums"))
	require.Empty(t, queryText(t, s, "SHOW listen_addresses"), "nothing may listen on TCP")
	info, err := os.Stat(s.socketDir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "trust rests on a closed socket directory")

	_, err = openConn(t, s).Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS number")
	require.NoError(t, err)
	_, err = Start(t.Context(), opts)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, opts.Dir)

	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "a second Stop is no error")
	awaitDone(t, s)
	require.NoError(t, s.Err())

	s = startServer(t, opts)
	require.Equal(t, "42", queryText(t, s, "SELECT number::text FROM kept"))
}

// TestFind looks for a server before it is started, while it runs and after it has ended.
func TestFind(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	dir := filepath.Join(tempDir(t), "found")
	version, url, err := Find(t.Context(), dir, "evictrail")
	require.NoError(t, err)
	require.Empty(t, url)
	require.NoDirExists(t, dir, "looking changes nothing")
	s := startServer(t, newOptions(dir))
	require.Equal(t, s.Version(), version)
	_, url, err = Find(t.Context(), dir, "evictrail")
	require.NoError(t, err)
	require.Equal(t, s.URL("evictrail"), url)
	require.NoError(t, s.Stop(t.Context()))
	_, url, err = Find(t.Context(), dir, "evictrail")
	require.NoError(t, err)
	require.Empty(t, url)
}

// skipInShort is storetest.SkipInShort, which imports this package.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
}

func TestLongPathUsesShortSocketDirectory(t *testing.T) {
	t.Parallel()
	skipInShort(t)
	s := startServer(t, newOptions(filepath.Join(tempDir(t), strings.Repeat("long", 25))))
	require.NotContains(t, s.socketDir, s.dir.parent)
	require.Equal(t, "1", queryText(t, s, "SELECT '1'"))
	require.NoError(t, s.Stop(t.Context()))
	require.NoDirExists(t, s.socketDir)
}

func TestEndWithoutStop(t *testing.T) {
	t.Parallel()
	skipInShort(t)
	opts := newOptions(tempDir(t))

	s := startServer(t, opts)
	require.NoError(t, s.Err())
	backend, err := strconv.Atoi(queryText(t, s, "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(backend, syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	awaitDone(t, s)
	require.ErrorContains(t, s.Err(), "signal: killed")

	time.AfterFunc(200*time.Millisecond, func() { _ = syscall.Kill(backend, syscall.SIGCONT) })
	s = startServer(t, opts) // waits for the backend to go
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Stop(ended), context.Canceled, "the server was ended at once")
	awaitDone(t, s)
	require.NoError(t, s.Err())

	s = startServer(t, opts)
	require.NoError(t, s.dir.awaitPredecessor(t.Context(), discard, 0), "as if another evictrail had left it")
	awaitDone(t, s)
	require.ErrorContains(t, s.Err(), "exit status 0")
	require.ErrorContains(t, s.Err(), "database system is shut down", "the end of the log is shown")
}

func TestStartFailureShowsLog(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	opts := newOptions(tempDir(t))
	opts.Settings["shared_buffers"] = "plenty"
	_, err := Start(t.Context(), opts)
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers"`)

	opts.Settings["shared_buffers"] = "16MB"
	opts.StartTimeout = time.Nanosecond
	_, err = Start(t.Context(), opts)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	opts.StartTimeout = 0
	startServer(t, opts) // neither failure left the directory locked
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // in the middle of initdb
	defer cancel()
	_, err := Start(ctx, newOptions(dir))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	left, err := filepath.Glob(filepath.Join(dir, ".pg*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestServerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	skipInShort(t)
	dir := tempDir(t)
	parent, pid := startHelper(t, dir)
	data, err := filepath.Glob(filepath.Join(dir, "pg*", "PG_VERSION"))
	require.NoError(t, err)
	require.Len(t, data, 1)
	runs := func() bool { return isServer(pid, filepath.Dir(data[0])) }
	require.True(t, runs())
	t.Cleanup(func() {
		if runs() {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
	})

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	if predecessorGrace > 0 { // the kernel sends a parent-death signal
		require.Eventually(t, func() bool { return !runs() }, 2*time.Minute, 10*time.Millisecond)
	}
	s := startServer(t, newOptions(dir))
	require.Equal(t, "42", queryText(t, s, "SELECT number::text FROM kept"))
}

func TestStartWaitsForServerOfDeadParent(t *testing.T) {
	t.Parallel()
	skipInShort(t)
	dir := tempDir(t)
	parent, _ := startHelper(t, dir)
	require.NoError(t, parent.Process.Kill())
	s := startServer(t, newOptions(dir))
	require.Equal(t, "42", queryText(t, s, "SELECT number::text FROM kept"))
	_ = parent.Wait()
}

// startHelper runs a server in a process of its own and returns that and the server's process ID.
func startHelper(t *testing.T, dir string) (*exec.Cmd, int) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(line, "ready %d\n", &pid)
	require.NoError(t, err, line)
	return cmd, pid
}
