package storetest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
)

// Replication is a primary and a standby that streams from it: real servers, each with its data in a directory of its own.
type Replication struct {
	tb               testing.TB
	dir              string
	settings         map[string]string
	Primary, Standby *embedded.Server
}

// NewReplication starts both, with the current schema. Settings are those of either server, over what tests use. They are
// gone when the test ends.
func NewReplication(tb testing.TB, settings map[string]string) *Replication {
	tb.Helper()
	dir, err := os.MkdirTemp("", "evictrail-repl-") // a short path, for sockets
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(tb, os.Chmod(dir, 0o755)) // as root servers run as another user
	all := map[string]string{"fsync": "off", "max_connections": "50", "shared_buffers": "16MB", "wal_keep_size": "256MB"}
	maps.Copy(all, settings)
	r := &Replication{tb: tb, dir: dir, settings: all}
	r.Primary = r.start("primary", nil)
	s, err := store.Open(tb.Context(), r.PrimaryURL(), "")
	require.NoError(tb, err)
	defer s.Close()
	_, err = s.Up(tb.Context())
	require.NoError(tb, err)
	r.copyPrimary()
	r.Standby = r.start("standby", nil)
	return r
}

// start starts a server on the directory of a name, with settings over those of all.
func (r *Replication) start(name string, settings map[string]string) *embedded.Server {
	r.tb.Helper()
	all := maps.Clone(r.settings)
	maps.Copy(all, settings)
	server, err := embedded.Start(r.tb.Context(), embedded.Options{Dir: filepath.Join(r.dir, name), Settings: all})
	require.NoError(r.tb, err)
	r.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Stop(ctx)
	})
	return server
}

// copyPrimary makes the data of the standby, which says how to reach the primary.
func (r *Replication) copyPrimary() {
	r.tb.Helper()
	target := filepath.Join(r.dir, "standby", filepath.Base(r.Primary.DataDir()))
	require.NoError(r.tb, os.MkdirAll(filepath.Dir(target), 0o755)) //nolint:gosec // as root the server runs as another user
	bin := r.Query(r.PrimaryURL(), "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
	socket := filepath.Join(filepath.Dir(r.Primary.DataDir()), "socket")
	out, err := exec.CommandContext(r.tb.Context(), filepath.Join(bin, "pg_basebackup"), "--host", socket, "--port", "5432",
		"--username", "evictrail", "--pgdata", target, "--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast").CombinedOutput()
	require.NoError(r.tb, err, string(out))
	owner, err := os.Stat(r.Primary.DataDir())
	require.NoError(r.tb, err)
	as := owner.Sys().(*syscall.Stat_t)
	require.NoError(r.tb, filepath.WalkDir(target, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(as.Uid), int(as.Gid))) //nolint:gosec // in a directory of ours alone
	}))
}

// PrimaryURL returns the URL of the database on the primary.
func (r *Replication) PrimaryURL() string { return r.Primary.URL("evictrail") }

// StandbyURL returns the URL of the database on the standby.
func (r *Replication) StandbyURL() string { return r.Standby.URL("evictrail") }

// EitherURL returns a URL that leads to whichever of the two takes writes.
func (r *Replication) EitherURL() string {
	u, err := url.Parse(r.PrimaryURL())
	require.NoError(r.tb, err)
	second, err := url.Parse(r.StandbyURL())
	require.NoError(r.tb, err)
	q := u.Query()
	q.Set("host", q.Get("host")+","+second.Query().Get("host"))
	q.Set("port", "5432,5432")
	q.Set("target_session_attrs", "read-write")
	q.Set("connect_timeout", "2")
	u.RawQuery = q.Encode()
	return u.String()
}

// Kill ends a server at once, as a crash of its machine would.
func (r *Replication) Kill(server *embedded.Server) {
	r.tb.Helper()
	require.NoError(r.tb, syscall.Kill(server.PID(), syscall.SIGKILL))
	<-server.Done()
}

// RestartStandby starts the standby again after it ended.
func (r *Replication) RestartStandby() { r.tb.Helper(); r.Standby = r.start("standby", nil) }

// Query returns the text that a query answers on a server.
func (r *Replication) Query(address, query string) string {
	r.tb.Helper()
	conn, err := pgx.Connect(r.tb.Context(), address)
	require.NoError(r.tb, err)
	defer func() { _ = conn.Close(context.WithoutCancel(r.tb.Context())) }()
	var text string
	require.NoError(r.tb, conn.QueryRow(r.tb.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&text))
	return text
}

// Promote makes the standby a primary. pg_promote itself is not waited for: its snapshot may be what replay waits for.
func (r *Replication) Promote() {
	r.tb.Helper()
	require.Equal(r.tb, "true", r.Query(r.StandbyURL(), "SELECT pg_promote(wait => false)::text"))
	require.Eventually(r.tb, func() bool { return r.IsTrue(r.StandbyURL(), "SELECT NOT pg_is_in_recovery()") }, time.Minute, 50*time.Millisecond, "the standby is promoted")
}

// Exec runs a statement on a server.
func (r *Replication) Exec(address, statement string) {
	r.tb.Helper()
	conn, err := pgx.Connect(r.tb.Context(), address)
	require.NoError(r.tb, err)
	defer func() { _ = conn.Close(context.WithoutCancel(r.tb.Context())) }()
	_, err = conn.Exec(r.tb.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	require.NoError(r.tb, err)
}

// IsTrue reports whether a server answers a query, and with true.
func (r *Replication) IsTrue(address, query string) bool {
	conn, err := pgx.Connect(r.tb.Context(), address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(context.WithoutCancel(r.tb.Context())) }()
	var is bool
	return conn.QueryRow(r.tb.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&is) == nil && is
}
