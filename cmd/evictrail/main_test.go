package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/store/storetest"
)

// asCommand makes the test binary behave as evictrail, for tests that must kill it.
const asCommand = "EVICTRAIL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	storetest.Main(m)
}

// runCommand runs a command line in this process.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = executeCommand(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// playBuiltin plays a built-in recording, with its audit log, into a database.
func playBuiltin(t *testing.T, url, name string, args ...string) {
	t.Helper()
	code, _, stderr := runCommand(t, append([]string{"play", recordingDir(name), "--database-url", url}, args...)...)
	require.Equal(t, exitFound, code, stderr)
}

// playedURL returns the URL of a database of a test's own into which built-in recordings were played, with their audit logs.
func playedURL(t *testing.T, names ...string) string {
	t.Helper()
	return storetest.FilledURL(t, slices.Sorted(slices.Values(names)), func(url, name string) { playBuiltin(t, url, name) })
}

func recordingDir(name string) string { return "../../testdata/recordings/" + name }

// listRecordings names the built-in recordings.
func listRecordings(t *testing.T) []string {
	t.Helper()
	folders, err := fs.ReadDir(evictrail.Recordings(), ".")
	require.NoError(t, err)
	var names []string
	for _, f := range folders {
		if f.IsDir() {
			names = append(names, f.Name())
		}
	}
	require.NotEmpty(t, names)
	return names
}

// queryRows reads a query's rows as JSON into a slice.
func queryRows[T any](t *testing.T, url, query string) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	result, err := conn.Query(t.Context(), fmt.Sprintf("SELECT to_jsonb(r)::text FROM (%s) r", query))
	require.NoError(t, err)
	out, err := pgx.CollectRows(result, func(row pgx.CollectableRow) (T, error) {
		var text string
		var v T
		if err := row.Scan(&text); err != nil {
			return v, err
		}
		return v, json.Unmarshal([]byte(text), &v)
	})
	require.NoError(t, err)
	return out
}

func execSQL(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// readPublicViews reads all that users can read but when it was stored, to compare two databases.
func readPublicViews(t *testing.T, url string) map[string][]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	out := map[string][]string{}
	for view, which := range map[string]string{
		"eviction_requests": "", "evacuations": "", "migrations": "", "migration_phases": "", "placements": "", "gaps": "", "timeline": "", "events": "",
		"cooldown_decisions": "", "cooldowns_now": "", "loops": "WHERE closed_by IS DISTINCT FROM 'refuted'", "drains": "", "drain_blockers": "",
	} {
		result, err := conn.Query(t.Context(), fmt.Sprintf("SELECT (to_jsonb(v) - 'stored_at' - 'changed_at')::text FROM evictrail_v1.%s v %s ORDER BY 1 LIMIT 1000000", view, which)) // without a limit Citus names other keys
		require.NoError(t, err)
		out[view], err = pgx.CollectRows(result, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return out
}

func closeTo(a, b *time.Time, tolerance time.Duration) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Sub(*b).Abs() <= tolerance
}
