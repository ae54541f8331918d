package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestLeaderSealsDaysAndVerifyCompares has the replica that derives seal a day once it is over, in the database and in
// a file outside. Verify finds nothing, also without the file; then a fact that is changed, and, where all digests were
// made again, only by the file.
func TestLeaderSealsDaysAndVerifyCompares(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop")
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	var log bytes.Buffer
	k := &sealer{
		db: s.DB, cluster: "b-dual-retry-loop", anchor: filepath.Join(t.TempDir(), "anchors.jsonl"),
		trouble: trouble{metrics: metrics.New(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(&log, nil))},
	}
	verify := func(args ...string) (int, string, string) {
		return runCommand(t, append([]string{"verify", "--database-url", url}, args...)...)
	}
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	k.sealDays(t.Context(), midnight.Add(sealAfter-time.Minute))
	require.Empty(t, log.String(), "the day may not be over by the clock of the database")
	code, out, _ := verify()
	require.Equal(t, exitFound, code)
	require.Contains(t, out, "b-dual-retry-loop: no day is sealed yet")
	code, _, stderr := verify("--cluster", "nope")
	require.Equal(t, exitNotFound, code)
	require.Contains(t, stderr, `"nope"`)

	k.sealDays(t.Context(), midnight.Add(time.Hour))
	k.sealDays(t.Context(), midnight.Add(time.Hour))
	require.Equal(t, 1, strings.Count(log.String(), "facts of a day sealed"), log.String())
	require.Contains(t, log.String(), "digest=")
	lines, err := os.ReadFile(k.anchor)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(lines, []byte("\n")), string(lines))
	facts := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events")
	code, out, stderr = verify()
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "b-dual-retry-loop: intact: 1 day from ")
	require.Contains(t, out, countOf(facts, "fact")+" compared")
	require.Contains(t, out, "no anchor file")
	code, out, stderr = verify("--anchor", k.anchor, "--cluster", "b-dual-retry-loop")
	require.Equal(t, exitFound, code, stderr)
	require.NotContains(t, out, "anchor")

	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.events SET value = 'n9' WHERE seq = 7")
	require.NoError(t, err)
	code, out, stderr = verify()
	require.Equal(t, exitError, code)
	require.Contains(t, out, "NOT intact")
	day := midnight.AddDate(0, 0, -1).Format(time.DateOnly)
	require.Contains(t, stderr, "b-dual-retry-loop: the first day that differs is "+day+": its "+countOf(facts, "fact")+" were changed or reordered")
	_, err = s.DB.Exec(t.Context(), "DELETE FROM evictrail.evidence")
	require.NoError(t, err)
	k.anchor = filepath.Join(t.TempDir(), "another")
	k.sealDays(t.Context(), midnight.Add(time.Hour))
	code, _, stderr = verify()
	require.Equal(t, exitFound, code, stderr)
	file := filepath.Join(t.TempDir(), "anchors")
	require.NoError(t, os.WriteFile(file, lines, 0o600))
	code, _, stderr = verify("--anchor", file)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "the first day that differs is "+day+": its digest is ")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, stderr = verify("--anchor", file)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "the anchor file has no day of it")

	k.anchor = t.TempDir()
	k.sealDays(t.Context(), midnight.Add(time.Hour))
	k.sealDays(t.Context(), midnight.Add(time.Hour))
	require.Equal(t, 1, strings.Count(log.String(), "days are not sealed or not anchored"), log.String())
}

// TestAnchorFileIsCheckedAtTheStart refuses a file that cannot be written before anything is recorded.
func TestAnchorFileIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	code, _, stderr := runCommand(t, "run", "--listen", "127.0.0.1:0", "--audit-anchor", filepath.Join(t.TempDir(), "nowhere", "anchors"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "audit-anchor: open anchor file: ")
	require.Contains(t, stderr, "name a file in a directory that is there")

	for name, text := range map[string]*string{"no file": nil, "a line that is being written": new("{\"cluster\": ")} {
		dir := t.TempDir()
		path := filepath.Join(dir, "anchors")
		if text != nil {
			require.NoError(t, os.WriteFile(path, []byte(*text), 0o600))
		}
		code, _, stderr = runCommand(t, "config", "print", "--audit-anchor", path)
		require.Equal(t, exitFound, code, stderr)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		if text == nil {
			require.Empty(t, left, name)
			continue
		}
		require.Len(t, left, 1, name)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, *text, string(after), name)
	}
}
