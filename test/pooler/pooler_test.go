package pooler_test

import (
	"bytes"
	"context"
	"os/exec"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

// runEvictrail runs the built program and returns what it prints to either output.
func runEvictrail(ctx context.Context, database string, args ...string) (string, error) {
	program, err := build.Evictrail()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--database-url", database)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// recordings are played side by side, each as a cluster of its name.
var recordings = []string{"b-dual-retry-loop", "c-node-drain", "g-churn-cooldown"}

// playRecordings records the recordings into a database, at the same time.
func playRecordings(t *testing.T, database string) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	for _, name := range recordings {
		g.Go(func() error {
			out, err := runEvictrail(ctx, database, "play", "../../testdata/recordings/"+name)
			if err != nil {
				t.Logf("play %s: %s", name, out)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
}

// questions are asked of what was recorded.
var questions = [][]string{
	{"evacuations", "-o", "json"},
	{"migrations", "-o", "json"},
	{"requests", "-o", "json"},
	{"loops", "-o", "json"},
	{"drains", "-o", "json"},
	{"cooldowns", "-o", "json"},
	{"timeline", "-o", "json"},
	{"why", "demo/churner", "--cluster", "g-churn-cooldown"},
	{"whatif", "--cluster", "g-churn-cooldown"},
}

// changedAt is when a row was written, by the clock of the database.
var changedAt = regexp.MustCompile(`(?m)^ *"changed_at": .*$`)

// TestTransactionPooling plays recordings through a pooler in transaction mode, from an empty database on: every answer is the one that is given
// of a database without a pooler.
func TestTransactionPooling(t *testing.T) {
	t.Parallel()
	direct, behind := storetest.EmptyURL(t), storetest.EmptyURL(t)
	pooled := startPgBouncer(t, behind, "transaction", "server_round_robin = 1") + "&" + pg.PoolerMode
	playRecordings(t, direct)
	playRecordings(t, pooled)
	for _, question := range questions {
		want, err := runEvictrail(t.Context(), direct, question...)
		require.NoError(t, err, "%v: %s", question, want)
		got, err := runEvictrail(t.Context(), pooled, question...)
		require.NoError(t, err, "%v: %s", question, got)
		require.Equal(t, changedAt.ReplaceAllString(want, ""), changedAt.ReplaceAllString(got, ""), question)
	}
	require.Zero(t, sessionLocks(t, behind), "a lock that a session holds stays with the pooler's backend")
	out, _ := runEvictrail(t.Context(), pooled, "doctor", "--kubeconfig", "/dev/null")
	require.Contains(t, out, "one stands before the database, and our statements last")
}

// sessionLocks counts the advisory locks in the database, which nothing of ours needs any more.
func sessionLocks(t *testing.T, database string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	const query = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

// TestTransactionPoolingIsRefused starts with a URL that has statements prepared behind a pooler that loses them: nothing is recorded, and both the
// program and `doctor` say what to do.
func TestTransactionPoolingIsRefused(t *testing.T) {
	t.Parallel()
	pooled := startPgBouncer(t, storetest.NewURL(t), "transaction")
	out, err := runEvictrail(t.Context(), pooled, "play", "../../testdata/recordings/"+recordings[0])
	require.Error(t, err)
	require.Contains(t, out, "a connection pooler in transaction mode stands before the database: add default_query_exec_mode=cache_describe to the URL")
	out, _ = runEvictrail(t.Context(), pooled, "doctor", "--kubeconfig", "/dev/null")
	require.Contains(t, out, "in transaction mode, which loses the statements that evictrail prepares")
	require.Contains(t, out, "add default_query_exec_mode=cache_describe to --database-url")
}

// TestSessionPooling needs nothing in the URL: a session keeps its backend.
func TestSessionPooling(t *testing.T) {
	t.Parallel()
	pooled := startPgBouncer(t, storetest.NewURL(t), "session")
	out, err := runEvictrail(t.Context(), pooled, "play", "../../testdata/recordings/"+recordings[0])
	require.NoError(t, err, out)
	out, _ = runEvictrail(t.Context(), pooled, "doctor", "--kubeconfig", "/dev/null")
	require.Contains(t, out, "one stands before the database, and our statements last")
}

// TestStatementLostInUse explains errors of poolers that came after the start.
func TestStatementLostInUse(t *testing.T) {
	t.Parallel()
	pooled := startPgBouncer(t, storetest.NewURL(t), "transaction")
	s, err := store.Open(t.Context(), pooled, "")
	require.NoError(t, err)
	defer s.Close()
	g, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		g.Go(func() error {
			for range 500 {
				if _, err := s.Clusters(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	require.ErrorIs(t, err, pg.ErrUnavailable)
	require.ErrorContains(t, err, "add default_query_exec_mode=cache_describe")
}
