package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// lockedLog is a log that is read while it is written.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestKeeperStartsAKilledServerAgain kills the server of a Keeper: it comes back at the same URL with all that was committed, is tried again where it
// cannot be started, and is left alone once it was stopped. The long path has its socket elsewhere, in a directory that goes with the server.
func TestKeeperStartsAKilledServerAgain(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"short": "d", "long": strings.Repeat("long", 25)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lockedLog{}
			opts := newOptions(filepath.Join(tempDir(t), dir))
			opts.Logger = slog.New(slog.NewTextHandler(log, nil))
			k, err := Keep(t.Context(), opts)
			require.NoError(t, err)
			t.Cleanup(func() { _ = k.Stop(t.Context()) })
			first, url := k.Server(), k.URL("evictrail")
			_, err = openConn(t, first).Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS number")
			require.NoError(t, err)

			// Another process that takes the directory in the moment between two servers keeps it from being started.
			other, err := os.OpenFile(filepath.Join(first.dir.parent, ".lock"), os.O_RDWR, 0)
			require.NoError(t, err)
			defer func() { _ = other.Close() }()
			held := make(chan error, 1)
			go func() { held <- syscall.Flock(int(other.Fd()), syscall.LOCK_EX) }()
			require.NoError(t, syscall.Kill(first.PID(), syscall.SIGKILL))
			awaitDone(t, first)
			require.NoError(t, <-held)
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "embedded server not started, trying again") }, time.Minute, 10*time.Millisecond)
			require.NoError(t, other.Close())

			require.Eventually(t, func() bool { return k.Server() != first }, time.Minute, 10*time.Millisecond)
			require.Equal(t, url, k.URL("evictrail"))
			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			defer func() { _ = conn.Close(t.Context()) }()
			var number int
			require.NoError(t, conn.QueryRow(t.Context(), "SELECT number FROM kept").Scan(&number))
			require.Equal(t, 42, number)
			require.Equal(t, 1, strings.Count(log.String(), "embedded server ended by itself"))

			second := k.Server()
			require.NoError(t, k.Stop(t.Context()))
			require.NoError(t, k.Stop(t.Context()), "a second Stop is no error")
			awaitDone(t, second)
			require.Same(t, second, k.Server())
			require.NoError(t, second.Err())
		})
	}
}
