//go:build citus

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestOnCitus runs on a Citus of one's own: `make citus`. It plays recordings into distributed tables and into a plain
// Postgres, and compares what readers see; then it brings the tables back, spreads them again, and asks all that
// TestStatementsRunOnCitus asks.
func TestOnCitus(t *testing.T) { //nolint:paralleltest // one database, which is not a test's own
	database, plain := os.Getenv("EVICTRAIL_TEST_CITUS_URL"), storetest.NewURL(t)
	run := func(args ...string) {
		t.Helper()
		code, out, stderr := runCommand(t, append(args, "--database-url", database)...)
		require.Equal(t, exitFound, code, stderr)
		t.Log(out)
	}
	run("schema", "up")
	run("schema", "distribute")
	run("schema", "status")
	for _, name := range listRecordings(t) {
		playBuiltin(t, database, name)
		playBuiltin(t, plain, name)
	}
	want := readPublicViews(t, plain)
	require.Equal(t, want, readPublicViews(t, database))
	run("schema", "undistribute")
	require.Equal(t, want, readPublicViews(t, database))
	run("schema", "distribute")
	useEverything(t, database)
}
