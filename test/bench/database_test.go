package bench_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
)

// server is a Postgres of our own that has memory and is durable: what is committed is on disk, which with other tests it is not.
var server struct {
	once sync.Once
	*embedded.Server
	dir   string
	count int
	err   error
}

func stopServer() {
	if server.Server != nil {
		_ = server.Stop(context.Background())
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}

// newDatabase returns the URL of an empty database.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	server.once.Do(func() {
		if server.dir, server.err = os.MkdirTemp("", "evictrail-bench-"); server.err != nil {
			return
		}
		if server.err = os.Chmod(server.dir, 0o755); server.err != nil { // as root the server runs as another user
			return
		}
		server.Server, server.err = embedded.Start(context.WithoutCancel(tb.Context()), embedded.Options{Dir: server.dir, Settings: map[string]string{
			"shared_buffers": "2GB", "max_wal_size": "8GB", "shared_preload_libraries": "pg_stat_statements", "track_io_timing": "off",
		}})
	})
	require.NoError(tb, server.err)
	server.count++
	name := fmt.Sprintf("bench_%d", server.count)
	execSQL(tb, server.URL("postgres"), "CREATE DATABASE "+name)
	tb.Cleanup(func() { execSQL(tb, server.URL("postgres"), "DROP DATABASE "+name+" WITH (FORCE)") })
	return server.URL(name)
}

// execSQL runs a statement on a connection of its own.
func execSQL(tb testing.TB, url, sql string) {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	require.NoError(tb, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(context.Background(), sql)
	require.NoError(tb, err)
}

// newStore returns a store with the current schema in a database of its own.
func newStore(tb testing.TB) (s *store.Store, url string) {
	tb.Helper()
	url = newDatabase(tb)
	s, err := store.Open(tb.Context(), url, "")
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	_, err = s.Up(tb.Context())
	require.NoError(tb, err)
	return s, url
}
