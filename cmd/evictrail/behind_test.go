package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestRecordingGoesOnWhileNothingIsDerived locks a derived table: all facts are recorded all the same, the metric says how far rows are behind, and once the table is
// free everything is derived.
func TestRecordingGoesOnWhileNothingIsDerived(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := storetest.NewURL(t)
	kubeconfig, further := poisonedCluster(t, "e-user-migrations", func(string) []json.RawMessage { return nil })
	s := startRun(t, []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}, nil)
	lag := func() float64 {
		found := regexp.MustCompile(`(?m)^evictrail_derive_lag_seconds (\S+)$`).FindStringSubmatch(s.getBody(t, "/metrics"))
		if found == nil {
			return -1
		}
		n, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		return n
	}
	require.Eventually(t, func() bool { return lag() >= 0 }, 2*time.Minute, 50*time.Millisecond)
	require.Less(t, lag(), 5.0)
	require.Regexp(t, `(?m)^evictrail_window_memory_bytes \d`, s.getBody(t, "/metrics"))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE evictrail.migrations IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	further()
	ended := func() int {
		return len(queryRows[map[string]any](t, url, "SELECT 1 AS n FROM evictrail.events WHERE kind = 'migration_phase' AND value = 'Succeeded'"))
	}
	require.Eventually(t, func() bool {
		return ended() > 1 && strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n")
	}, 2*time.Minute, 100*time.Millisecond, "facts are recorded")
	require.Eventually(t, func() bool { return lag() > 8 }, 2*time.Minute, 100*time.Millisecond)
	_, err = conn.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return len(queryRows[map[string]any](t, url, "SELECT 1 AS n FROM evictrail.migrations WHERE outcome = 'succeeded'")) == ended() && lag() < 5
	}, 2*time.Minute, 100*time.Millisecond, "and derived in the end")
	require.Equal(t, exitFound, s.stop())
}
