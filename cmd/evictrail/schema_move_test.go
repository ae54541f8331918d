package main

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// moveArgs are those of a move between two databases.
func moveArgs(cluster, from, to string, more ...string) []string {
	return append([]string{"schema", "move-cluster", cluster, "--database-url", from, "--to-database-url", to}, more...)
}

// moveCluster moves a cluster without an error.
func moveCluster(t *testing.T, cluster, from, to string, more ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runCommand(t, moveArgs(cluster, from, to, more...)...)
	require.Equal(t, exitFound, code, stderr)
	return stdout, stderr
}

// firstHalf writes a recording that ends in the middle of another one.
func firstHalf(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(recordingDir(name))))
	path := filepath.Join(dir, "trace.jsonl.gz")
	packed, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	var all bytes.Buffer
	_, err = all.ReadFrom(r)
	require.NoError(t, err)
	lines := slices.Collect(strings.Lines(all.String()))
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = w.Write([]byte(strings.Join(lines[:len(lines)/2], "")))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return dir
}

// TestMovedClusterGoesOn plays half of a recording, moves the cluster, and plays the rest into the destination: users
// read there what they would in one database that had all of it.
func TestMovedClusterGoesOn(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "b2-dual-retry-same-vm"
	from, to := storetest.NewURL(t), storetest.NewURL(t)
	code, _, stderr := runCommand(t, "play", firstHalf(t, name), "--database-url", from, "--no-audit")
	require.Equal(t, exitFound, code, stderr)
	half := readPublicViews(t, from)

	plan, _ := moveCluster(t, name, from, to, "--dry-run")
	require.Regexp(t, `events +\d+ +[\d.]+ KiB`, plan)
	require.Empty(t, readPublicViews(t, to)["events"], "a dry run writes nothing")
	out, notes := moveCluster(t, name, from, to)
	require.Regexp(t, `moved: \d+ rows of \d+ tables are the same`, out)
	require.Contains(t, notes, "start the replicas of the cluster with --database-url of the destination")
	require.Equal(t, half, readPublicViews(t, to))
	require.Equal(t, half, readPublicViews(t, from))
	out, _ = moveCluster(t, name, from, to, "--dry-run")
	require.Contains(t, out, "has arrived")

	playBuiltin(t, to, name, "--no-audit")
	whole := storetest.NewURL(t)
	playBuiltin(t, whole, name, "--no-audit")
	want := readPublicViews(t, whole)
	require.Greater(t, len(want["events"]), len(half["events"]))
	require.NotEmpty(t, half["evacuations"])
	require.Equal(t, want, readPublicViews(t, to))

	out, _ = moveCluster(t, name, from, to, "--drop-source")
	require.Regexp(t, `had arrived in the destination at .*\n.*: \d+ rows deleted from the source`, out)
	require.Empty(t, readPublicViews(t, from)["events"])
	code, _, stderr = runCommand(t, moveArgs("nope", from, to)...)
	require.Equal(t, exitNotFound, code)
	require.Contains(t, stderr, `no cluster named "nope"`)
	for want, args := range map[string][]string{
		"name the database that the cluster is to move to": {"schema", "move-cluster", "x", "--database-url", from},
		"accepts 1 arg":                    {"schema", "move-cluster", "--database-url", from},
		"to-database-url holds a password": moveArgs("x", from, "postgres://a:b@localhost/x"),
		"give one of them":                 moveArgs("x", from, to, "--dry-run", "--drop-source"),
	} {
		code, _, stderr := runCommand(t, args...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
}

// TestRunGoesOnAfterAMove records with one database, moves the cluster, and records with the other: the time between is
// the only thing that is new, and a recorder that starts before the move has ended waits for that.
func TestRunGoesOnAfterAMove(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	rec, err := recording.Open(evictrail.Recordings(), "k-blocked-slot", nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	from, to := storetest.NewURL(t), storetest.NewURL(t)
	args := []string{
		"run", "--kubeconfig", writeKubeconfig(t, cluster.URL), "--cluster", "c1", "--listen", "127.0.0.1:0",
		"--spool-dir", t.TempDir(), "--database-url",
	}
	first := startRun(t, append(slices.Clone(args), from), nil)
	filled := func() bool { return len(readPublicViews(t, from)["evacuations"]) > 0 }
	require.Eventually(t, filled, 2*time.Minute, 50*time.Millisecond)
	code, _, stderr := runCommand(t, moveArgs("c1", from, to)...)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, `is recording cluster "c1" with the source`)
	require.Equal(t, exitFound, first.stop())
	before := readPublicViews(t, from)
	moveCluster(t, "c1", from, to, "--drop-source")
	require.Equal(t, before, readPublicViews(t, to))

	second := startRun(t, append(slices.Clone(args), to), nil)
	interrupted := func() bool { return len(readPublicViews(t, to)["gaps"]) == 1 }
	require.Eventually(t, interrupted, 2*time.Minute, 50*time.Millisecond, "the time between is a gap")
	require.Equal(t, exitFound, second.stop())
	after := readPublicViews(t, to)
	require.Equal(t, before["events"], withoutGaps(after["events"]), "nothing else is new")
	for _, view := range []string{"evacuations", "migrations", "placements", "eviction_requests"} {
		require.Len(t, after[view], len(before[view]), view)
	}
}

// TestMoveKilled kills moves of a history with many facts with SIGKILL at random moments: the next one goes on, and in
// the end the destination has what the source has.
func TestMoveKilled(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "b-dual-retry-loop"
	from := playedURL(t, name)
	execSQL(t, from, spreadFacts)
	self, err := os.Executable()
	require.NoError(t, err)
	want := readPublicViews(t, from)
	start := func(to string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self, moveArgs(name, from, to)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		require.NoError(t, cmd.Start())
		return cmd
	}
	undisturbed := storetest.NewURL(t)
	began := time.Now()
	require.NoError(t, start(undisturbed).Wait())
	took := time.Since(began)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, an undisturbed move takes %s", seed, took)
	r := rand.New(rand.NewPCG(seed, 0))
	partial := 0
	for range storetest.Count(3, 10) {
		to := storetest.NewURL(t)
		for i := range 4 {
			cmd := start(to)
			if i == 0 { // facts come first: once it is noted up to which one they are there, some are
				copying := func() bool {
					return len(queryColumn(t, to, "SELECT state AS value FROM evictrail.moves WHERE after_key IS NOT NULL")) > 0
				}
				for end := time.Now().Add(time.Minute); !copying() && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
			} else {
				time.Sleep(time.Duration(r.Int64N(int64(took)))) // a real process is killed at a real moment
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if n := len(readPublicViews(t, to)["events"]); n > 0 && n < len(want["events"]) {
				partial++
			}
		}
		moveCluster(t, name, from, to)
		require.Equal(t, want, readPublicViews(t, to))
	}
	t.Logf("%d kills left a part of the facts", partial)
	require.Positive(t, partial, "no kill hit a move in the middle")
}
