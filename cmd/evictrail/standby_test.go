package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// onlyPrimary returns what answers callers from a database without a standby.
func onlyPrimary(t *testing.T, s *store.Store) *standby.Servers {
	t.Helper()
	reads, err := (&databaseFlags{}).openReads(t.Context(), s, standby.Options{})
	require.NoError(t, err)
	return reads
}

// TestRunWithAStandby records into a primary, and asks while its standby answers, does not replay, and is all that is left.
func TestRunWithAStandby(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	servers := storetest.NewReplication(t, nil)
	both := []string{"--database-url", servers.PrimaryURL(), "--database-read-url", servers.StandbyURL()}
	s := startAnyhow(t, append(recorderArgs(spoiledCluster(t, spoilNothing).kubeconfig, servers.PrimaryURL(),
		"--auth", "none", "--database-read-max-lag", "10s"), both[2:]...))
	awaitText := func(path, text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, path), text) }, saidWithin, 50*time.Millisecond, "%s: %s", path, text)
	}
	awaitText("/readyz", "ok\nQuestions are answered by the standby, ")
	awaitText("/api/v1/timeline", `"vmi": "nbr-1"`)
	awaitText("/metrics", "\nevictrail_standby_used 1\n")
	var answer trail.Answer
	require.NoError(t, json.Unmarshal([]byte(s.getBody(t, "/api/v1/vms/demo/nbr-2/why")), &answer))
	require.True(t, answer.Recorder.Standby.Used)

	servers.Query(servers.StandbyURL(), "SELECT pg_wal_replay_pause()::text")
	awaitText("/", "Read from a standby of the database, as of ")
	header := readHeader(t, s, "/api/v1/evacuations")
	asOf, err := time.Parse(time.RFC3339Nano, header.Get("Evictrail-Standby-As-Of"))
	require.NoError(t, err)
	require.Greater(t, time.Since(asOf), 2*time.Second) // it has everything until something was written
	since, err := time.Parse(time.RFC3339, header.Get("Evictrail-Changes-Since"))
	require.NoError(t, err)
	require.WithinDuration(t, asOf.Add(-time.Minute), since, time.Second, "what the standby has not replayed yet is asked for again")
	code, out, notes := runCommand(t, append([]string{"evacuations", "-o", "json"}, both...)...)
	require.Equal(t, exitFound, code, notes)
	require.Contains(t, out, "nbr-2")
	require.Contains(t, notes, "evictrail: Read from a standby of the database, as of ")

	code, body := s.postBody(t, "/api/v1/acknowledgements", `{"namespace":"demo","vm":"nbr-1","author":"anna","note":"known"}`, "Content-Type", "application/json")
	require.Equal(t, http.StatusCreated, code, body)
	require.Contains(t, s.getBody(t, "/api/v1/acknowledgements"), "anna", "who wrote it reads it")
	require.Contains(t, s.getBody(t, "/vms/demo/nbr-1"), "anna")
	awaitText("/readyz", "ok\nQuestions are answered by the primary since ")
	require.Eventually(t, func() bool { // a busy machine may have been behind before
		return regexp.MustCompile(`\nevictrail_standby_fallbacks_total\{cause="lag"\} [1-9]`).MatchString(s.getBody(t, "/metrics"))
	}, saidWithin, 50*time.Millisecond)
	awaitText("/readyz", "more than the 10s of --database-read-max-lag: it does not replay what it receives")
	servers.Query(servers.StandbyURL(), "SELECT pg_wal_replay_resume()::text")
	awaitText("/readyz", "ok\nQuestions are answered by the standby, ")
	require.Contains(t, s.getBody(t, "/api/v1/acknowledgements"), "anna")

	servers.Kill(servers.Primary)
	awaitText("/readyz", "database_read_only since ")
	awaitText("/readyz", "behind: the primary does not answer.")
	require.Contains(t, s.getBody(t, "/vms/demo/nbr-1"), "anna", "the standby is all that is left")
	code, out, notes = runCommand(t, append([]string{"why", "demo/nbr-2", "-o", "json"}, both...)...)
	require.Equal(t, exitFound, code, notes)
	answer = trail.Answer{}
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.True(t, answer.Recorder.Standby.Used)
	require.WithinDuration(t, answer.Recorder.Standby.AsOf, answer.AsOf, 2*time.Second)
}

// readHeader returns the header of an answer.
func readHeader(t *testing.T, s runningService, path string) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, http.NoBody)
	require.NoError(t, err)
	answer, err := s.client.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return answer.Header
}

// TestReadFlags refuses what cannot work.
func TestReadFlags(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"database-read-url needs --database-url":                 {"run", "--database-read-url", "postgres:///x"},
		"database-read-max-lag 500ms: at least 1s":               {"loops", "--database-url", "postgres:///x", "--database-read-url", "postgres:///x", "--database-read-max-lag", "500ms"},
		"database-read-url holds a password":                     {"loops", "--database-url", "postgres:///x", "--database-read-url", "postgres://u:p@localhost/x"},
		"database-read-url: the way to the database is not":      {"loops", "--database-url", "postgres:///x", "--database-read-url", "postgres://db.example/x"},
		"server and database-url both say whom to ask: give one": {"loops", "--server", "http://127.0.0.1:1", "--database-read-url", "postgres:///x"},
	} {
		code, _, stderr := runCommand(t, args...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, text)
	}
}
