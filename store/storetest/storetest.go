package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/leaktest"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
)

// server is the one that the tests of this process share.
var server struct {
	once     sync.Once
	url      string        // of the template database
	admin    *pgxpool.Pool // makes and drops databases: a connection for each would be a third of all that the tests open
	embedded *embedded.Server
	dir      string
	err      error
	count    atomic.Int64
	filled   sync.Map // *filled by parts: what FilledURL copies
}

// filled is a database that tests get copies of.
type filled struct {
	mu   sync.Mutex
	name string // "": not filled yet
}

// Main runs the tests of a package and then stops the shared server; a goroutine that stays behind is a failure (leaktest). Call it from TestMain.
func Main(m *testing.M) { MainWith(m, func() {}) }

// MainWith is Main for a package that has more to clean up.
func MainWith(m *testing.M, cleanUp func()) {
	code := m.Run()
	stopServer()
	cleanUp()
	os.Exit(leaktest.Code(code))
}

func stopServer() {
	if server.url != "" && server.embedded == nil { // the embedded one is gone as a whole
		server.filled.Range(func(_, found any) bool {
			if name := found.(*filled).name; name != "" {
				_ = execSQL(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
			}
			return true
		})
	}
	switch {
	case server.embedded != nil:
		_ = stopEmbedded()
	case server.admin != nil:
		server.admin.Close()
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}

// New returns a store on a fresh database with the current schema. Both are gone when the test ends.
func New(tb testing.TB) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), NewURL(tb), "")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// NewURL returns the URL of a fresh database with the current schema.
func NewURL(tb testing.TB) string { tb.Helper(); return createDatabase(tb, ofTemplate(tb)) }

// EmptyURL returns the URL of a fresh database without any schema.
func EmptyURL(tb testing.TB) string { tb.Helper(); return createDatabase(tb, "") }

// FilledURL returns the URL of a fresh database with the current schema into which fill wrote some parts, in their order.
// What the parts of two databases begin with is filled once, and copied, which takes less time.
func FilledURL(tb testing.TB, parts []string, fill func(url, part string)) string {
	tb.Helper()
	return createDatabase(tb, fillOnce(tb, parts, fill))
}

// fillOnce is the option of a database that is a copy of one with some parts, which it makes where no test did.
func fillOnce(tb testing.TB, parts []string, fill func(url, part string)) string {
	tb.Helper()
	n := len(parts) - 1
	if n < 0 {
		return ofTemplate(tb)
	}
	found, _ := server.filled.LoadOrStore(strings.Join(parts, "\n"), &filled{})
	f := found.(*filled)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name == "" {
		name := createKept(tb, fillOnce(tb, parts[:n], fill))
		fill(withDatabase(server.url, name), parts[n])
		f.name = name
	}
	return "TEMPLATE " + f.name
}

// createDatabase makes a database that is gone when the test ends.
func createDatabase(tb testing.TB, options string) string {
	tb.Helper()
	name := createKept(tb, options)
	tb.Cleanup(func() { dropDatabase(tb, name) })
	return withDatabase(server.url, name)
}

func dropDatabase(tb testing.TB, name string) {
	tb.Helper()
	if err := execSQL(context.Background(), fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name)); err != nil {
		tb.Error(err)
	}
}

// createKept makes a database and returns its name.
func createKept(tb testing.TB, options string) string {
	tb.Helper()
	ensureServer(tb)
	name := fmt.Sprintf("evictrail_test_%d_%d", os.Getpid(), server.count.Add(1))
	if server.embedded != nil && options != "" {
		options += " STRATEGY FILE_COPY" // without fsync it takes half the time of copying through the log
	}
	if err := execSQL(tb.Context(), fmt.Sprintf("CREATE DATABASE %s %s", name, options)); err != nil {
		tb.Fatal(err)
	}
	return name
}

// ensureServer has the shared server run.
func ensureServer(tb testing.TB) {
	tb.Helper()
	server.once.Do(func() { server.err = startServer(context.WithoutCancel(tb.Context())) })
	if server.err != nil {
		tb.Fatalf("start Postgres for tests: %v", server.err)
	}
}

// ofTemplate is the option of a database that is a copy of the template.
func ofTemplate(tb testing.TB) string {
	tb.Helper()
	ensureServer(tb)
	return "TEMPLATE " + templateName()
}

// templateName names the database with the current schema that others are copies of. A server that was there before may be
// that of several packages.
func templateName() string {
	if server.embedded != nil {
		return "evictrail_template"
	}
	return fmt.Sprintf("evictrail_template_%d", os.Getpid())
}

// startServer finds or starts a server, on which the template is then.
func startServer(ctx context.Context) (err error) {
	server.url = os.Getenv("EVICTRAIL_TEST_DATABASE_URL")
	if server.url == "" {
		return startPrepared(ctx)
	}
	if server.admin, err = pgxpool.New(ctx, server.url); err != nil {
		return err
	}
	return makeTemplate(ctx)
}

// makeTemplate makes the template that New copies.
func makeTemplate(ctx context.Context) error {
	if err := execSQL(ctx, "CREATE DATABASE "+templateName()); err != nil {
		return err
	}
	s, err := store.Open(ctx, withDatabase(server.url, templateName()), "")
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Up(ctx)
	return err
}

func startEmbedded(ctx context.Context) (err error) {
	server.embedded, err = embedded.Start(ctx, embedded.Options{
		Dir: server.dir, Settings: map[string]string{"fsync": "off", "full_page_writes": "off", "max_connections": "100"},
	})
	if err != nil {
		return err
	}
	server.url = server.embedded.URL("postgres")
	server.admin, err = pgxpool.New(ctx, server.url)
	return err
}

func stopEmbedded() error {
	server.admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return server.embedded.Stop(ctx)
}

func execSQL(ctx context.Context, sql string) error {
	_, err := server.admin.Exec(ctx, sql)
	return err
}

// withDatabase returns the same URL with another database.
func withDatabase(base, name string) string {
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" {
		return strings.TrimSpace(base) + " dbname=" + name
	}
	u.Path = "/" + name
	return u.String()
}

// KeepUp derives what a leader leaves, as often as it does, until the returned function is called: that waits for what is being derived.
func KeepUp(tb testing.TB, leader *store.ClusterStore) (end func()) {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for {
			_, rest, err := leader.KeepUp(tb.Context())
			if err != nil && tb.Context().Err() == nil {
				tb.Errorf("derive what was left: %v", err)
			}
			if leader.Rest(ctx, rest) != nil {
				return
			}
		}
	})
	return func() { stop(); keeping.Wait() }
}
