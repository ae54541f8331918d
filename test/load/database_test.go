package load_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/storetest"
)

var (
	days  = flag.Int("load.days", 0, "how many days of a large cluster to fill the database with; 0: some hours of a small one")
	vms   = flag.Int("load.vms", 5_000, "how many VMs the large cluster has: each makes some ten facts a day")
	dir   = flag.String("load.dir", "", "where an own Postgres keeps the database for the next time; empty: it is thrown away")
	rate  = flag.Int("load.rate", 100, "requests a second")
	only  = flag.String("load.route", "", "ask only the routes, and the questions, that match this regular expression")
	lasts = flag.Duration("load.for", 20*time.Millisecond, "how long each route is asked, and facts are stored at each rate")
	best  = flag.Int("load.best", 1, "how often the same is asked through the store; the fastest counts")
	slow  = flag.Duration("load.slow", 20*time.Millisecond, "from when on an own Postgres that is kept logs the plan of a statement")
)

// urlEnv names a database to fill and to ask, instead of an own one.
const urlEnv = "EVICTRAIL_LOAD_DATABASE_URL"

func TestMain(m *testing.M) { storetest.Main(m) }

// openDatabase returns the filled database, and its URL.
func openDatabase(tb testing.TB) (s *store.Store, url string) {
	tb.Helper()
	url = os.Getenv(urlEnv)
	switch {
	case url != "":
	case *dir != "":
		url = startPersistentPostgres(tb)
	default:
		url = storetest.NewURL(tb)
	}
	s, err := store.Open(tb.Context(), url, "")
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	fillDatabase(tb, s, url)
	return s, url
}

// startPersistentPostgres starts the Postgres that keeps its data, with the plans of slow statements in its log.
func startPersistentPostgres(tb testing.TB) string {
	tb.Helper()
	server, err := embedded.Start(tb.Context(), embedded.Options{Dir: *dir, Settings: map[string]string{
		"shared_buffers": "2GB", "max_wal_size": "4GB", "synchronous_commit": "off", "session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": slow.String(),
		"auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on", "auto_explain.log_timing": "off",
	}})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, server.Stop(context.Background())) })
	return server.URL("evictrail")
}
