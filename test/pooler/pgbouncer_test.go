package pooler_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// findPgBouncer returns the path of pgbouncer.
func findPgBouncer(t *testing.T) string {
	t.Helper()
	path := os.Getenv("EVICTRAIL_PGBOUNCER")
	if path == "" {
		var err error
		path, err = filepath.Abs("../../bin/debian/pgbouncer")
		require.NoError(t, err)
	}
	require.FileExists(t, path, "run hack/ensure-pgbouncer.sh, or set EVICTRAIL_PGBOUNCER to a pgbouncer")
	return path
}

// startPgBouncer starts one before the server of a database and returns the URL of that database behind it.
func startPgBouncer(t *testing.T, database, mode string, settings ...string) string {
	t.Helper()
	server, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	address := ports.Free(t)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	login := "user=" + server.User
	if server.Password != "" {
		login += " password=" + server.Password
	}
	config := fmt.Sprintf(`[databases]
* = host=%s port=%d %s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 8
%s
`, server.Host, server.Port, login, host, port, mode, strings.Join(settings, "\n"))
	dir, err := os.MkdirTemp("", "evictrail-pgbouncer-") // t.TempDir is closed to the user that runs it for root
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o644))
	kubetest.StartProcess(t, filepath.Join(dir, "log"), findPgBouncer(t), append(buildUserArgs(t, server.Host), file)...)
	awaitCondition(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	u := url.URL{Scheme: "postgres", User: url.User(server.User), Host: address, Path: "/" + server.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// buildUserArgs returns the arguments that have pgbouncer run as the owner of the server's socket: as root it refuses to.
func buildUserArgs(t *testing.T, host string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	if !strings.HasPrefix(host, "/") {
		return []string{"-u", "nobody"}
	}
	info, err := os.Stat(host)
	require.NoError(t, err)
	owner, err := user.LookupId(strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10))
	require.NoError(t, err)
	return []string{"-u", owner.Username}
}

func awaitCondition(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "pgbouncer does not listen")
	}
}
