package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/export"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// lakeRow is a row by its columns. Times are microseconds, durations seconds, and JSON is text.
type lakeRow map[string]any

// rowsOfView reads what the files of a view are to have.
func rowsOfView(t *testing.T, url, view string, columns []trail.Column) []lakeRow {
	t.Helper()
	var selected []string
	for _, c := range columns {
		if c.View != view {
			continue
		}
		selects := c.Name
		switch c.Type {
		case "timestamp with time zone":
			selects = fmt.Sprintf("(extract(epoch FROM %s) * 1000000)::bigint AS %[1]s", c.Name)
		case "interval":
			selects = fmt.Sprintf("extract(epoch FROM %s)::double precision AS %[1]s", c.Name)
		case "jsonb":
			selects = fmt.Sprintf("%s::text AS %[1]s", c.Name)
		}
		selected = append(selected, selects)
	}
	require.NotEmpty(t, selected, view)
	return sortRows(queryRows[lakeRow](t, url, fmt.Sprintf("SELECT %s FROM evictrail_v1.%s", strings.Join(selected, ", "), view)))
}

// sortRows sorts rows by all that they have.
func sortRows(rows []lakeRow) []lakeRow {
	texts := make([]string, len(rows))
	for i, r := range rows {
		text, _ := json.Marshal(r)
		texts[i] = string(text)
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(texts[a], texts[b]) })
	sorted := make([]lakeRow, len(rows))
	for i, at := range order {
		sorted[i] = rows[at]
	}
	return sorted
}

// eachLakeFile calls a function with each file of a dataset that a reader of the lake sees, with its cluster and day.
func eachLakeFile(t *testing.T, dir, dataset string, read func(path, cluster, date string)) {
	t.Helper()
	root := filepath.Join(dir, dataset)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		below, err := filepath.Rel(root, path)
		parts := strings.Split(below, "/")
		require.Len(t, parts, 3, below)
		cluster, isCluster := strings.CutPrefix(parts[0], "cluster=")
		date, isDate := strings.CutPrefix(parts[1], "date=")
		require.True(t, isCluster && isDate, below)
		read(path, cluster, date)
		return err
	}))
}

// readLake reads the Parquet files of a dataset, each of which has rows of its day alone.
func readLake(t *testing.T, dir string, dataset export.Dataset) []lakeRow {
	t.Helper()
	var all []lakeRow
	eachLakeFile(t, dir, dataset.Name, func(path, cluster, date string) {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		r := parquet.NewReader(file)
		columns := r.Schema().Columns()
		for {
			rows := make([]parquet.Row, 100)
			n, err := r.ReadRows(rows)
			for _, row := range rows[:n] {
				out := lakeRow{"cluster": cluster}
				for _, v := range row {
					out[columns[v.Column()][0]] = valueOf(t, v)
				}
				at, is := out[dataset.At].(float64)
				require.True(t, is)
				require.Equal(t, date, time.UnixMicro(int64(at)).UTC().Format(time.DateOnly), path)
				all = append(all, out)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, r.Close())
	})
	return sortRows(all)
}

// valueOf returns a value as JSON has it.
func valueOf(t *testing.T, v parquet.Value) any {
	t.Helper()
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Int32:
		return float64(v.Int32())
	case v.Kind() == parquet.Int64:
		return float64(v.Int64())
	case v.Kind() == parquet.Double:
		return v.Double()
	}
	require.Equal(t, parquet.ByteArray, v.Kind())
	return string(v.ByteArray())
}

// viewColumns describes the columns of all views.
func viewColumns(t *testing.T, url string) []trail.Column {
	t.Helper()
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	defer s.Close()
	columns, err := s.Columns(t.Context())
	require.NoError(t, err)
	return columns
}

// exportAll runs an export that is to end well, and returns what it says.
func exportAll(t *testing.T, url, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runCommand(t, append([]string{"export", "--database-url", url, "--dir", dir}, args...)...)
	require.Equal(t, exitFound, code, stderr)
	return stdout, stderr
}

// TestExportIsWhatTheViewsHave plays recordings, exports everything as Parquet and as JSON lines, and reads it back:
// the rows of each view, and no others. A second run has nothing to do, and standard output gets the same rows.
func TestExportIsWhatTheViewsHave(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop", "c-node-drain", "g-churn-cooldown")
	columns := viewColumns(t, url)
	dir, lines := t.TempDir(), t.TempDir()
	dry, _ := exportAll(t, url, dir, "--what", "all", "--format", "parquet", "--dry-run")
	require.Contains(t, dry, "evacuations/cluster=c-node-drain/date=")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "a dry run writes nothing")
	exportAll(t, url, dir, "--what", "all", "--format", "parquet")
	exportAll(t, url, lines, "--what", "all")
	filled := 0
	for _, d := range export.Datasets() {
		want := rowsOfView(t, url, d.Name, columns)
		read := readLake(t, dir, d)
		require.Len(t, read, len(want), d.Name)
		for i, got := range read {
			require.Equal(t, want[i], got, d.Name)
		}
		objects := sortRows(queryRows[lakeRow](t, url, "SELECT * FROM evictrail_v1."+d.Name))
		var got []lakeRow
		eachLakeFile(t, lines, d.Name, func(path, cluster, _ string) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				row := lakeRow{}
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				row["cluster"] = cluster
				got = append(got, row)
			}
		})
		require.Len(t, got, len(objects), d.Name)
		if len(objects) > 0 {
			require.Equal(t, objects, sortRows(got), d.Name)
		}
		streamed, _ := exportAll(t, url, "-", "--what", d.Name)
		var rows []lakeRow
		for line := range strings.Lines(streamed) {
			row := lakeRow{}
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			rows = append(rows, row)
		}
		require.Len(t, rows, len(objects), d.Name)
		if len(objects) > 0 {
			filled++
			require.Equal(t, objects, sortRows(rows), d.Name)
		}
	}
	require.Greater(t, filled, 8)
	_, said := exportAll(t, url, dir, "--what", "all", "--format", "parquet")
	require.NotRegexp(t, `[1-9]\d* rows? written`, said)
	dry, _ = exportAll(t, url, dir, "--what", "all", "--format", "parquet", "--dry-run")
	require.Empty(t, dry)
}

// TestExportIsKilledAndGoesOn kills exports with SIGKILL at many moments, while facts are added in between: in the end
// there are the rows of the views, each once.
func TestExportIsKilledAndGoesOn(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop")
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.DB.Exec(t.Context(), spreadFacts)
	require.NoError(t, err)
	columns := viewColumns(t, url)
	dir := t.TempDir()
	args := []string{"export", "--database-url", url, "--dir", dir, "--format", "parquet", "--what", "facts,timeline"}
	killed := 0
	self, err := os.Executable()
	require.NoError(t, err)
	for i := range 12 {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		require.NoError(t, cmd.Start())
		died := make(chan error, 1)
		go func() { died <- cmd.Wait() }()
		select {
		case err := <-died:
			require.NoError(t, err)
		case <-time.After(time.Duration(100+60*i) * time.Millisecond):
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, <-died)
			killed++
		}
		if i == 6 {
			playBuiltin(t, url, "c-node-drain")
		}
	}
	t.Logf("killed %d times", killed)
	require.Positive(t, killed)
	exportAll(t, url, dir, args[5:]...)
	for _, name := range []string{"facts", "timeline"} {
		d, err := export.FindDataset(name)
		require.NoError(t, err)
		require.Equal(t, rowsOfView(t, url, name, columns), readLake(t, dir, d), name)
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.False(t, strings.HasSuffix(path, ".tmp"), path)
		return err
	}))
}

// spreadFacts adds facts, as if they had been stored on 300 days, and lines of timelines of as many.
const spreadFacts = `
INSERT INTO evictrail.events (cluster, subject, occurred_at, id, kind, reason, clock, observed_at, stored_at, seen_late, object_kind, object_uid, object_version, what, value, evidence)
SELECT 'b-dual-retry-loop', 'node:n', t, gen_random_uuid(), 'node_seen', 'x', 'observer', t, t, false, 'Node', 'u', '1', 'x', i::text, 'x'
FROM generate_series(1, 30000) AS i, LATERAL (SELECT timestamptz '2025-01-01' + i * interval '15 min' AS t) AS at;
INSERT INTO evictrail.timeline (cluster, subject, event_id, at, sentence, kind, reason, seen_late)
SELECT 'b-dual-retry-loop', 'node:n', gen_random_uuid(), t, 'It is ' || t, 'node_seen', 'x', false
FROM generate_series(1, 3000) AS i, LATERAL (SELECT timestamptz '2025-01-01' + i * interval '150 min' AS t) AS at`

// TestReadersOfViewsMayExport exports as a user who may read the views and nothing else.
func TestReadersOfViewsMayExport(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop")
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	storetest.MakeRoles(t, s)
	reader := url + "&options=-c%20role%3Devictrail_reader"
	dir := t.TempDir()
	for range 2 {
		exportAll(t, reader, dir, "--what", "all", "--format", "parquet")
		exportAll(t, reader, dir, "--format", "parquet", "--cluster", "b-dual-retry-loop")
	}
	require.Equal(t, rowsOfView(t, url, "facts", viewColumns(t, url)), readLake(t, dir, export.Facts))
}

// TestExportRefusesWhatItCannotDo says what to do instead.
func TestExportRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop")
	dir := t.TempDir()
	exportAll(t, url, dir, "--format", "parquet", "--since", "2026-01-01")
	for want, args := range map[string][]string{
		"dir: name a directory":                           {},
		"standard output has JSON lines":                  {"--dir", "-", "--format", "parquet"},
		"standard output has one dataset":                 {"--dir", "-", "--what", "loops,gaps"},
		`format "csv": expected jsonl or parquet`:         {"--dir", dir, "--format", "csv"},
		`what "migration_queue" shows what is now`:        {"--dir", dir, "--what", "migration_queue"},
		`what "nope": expected facts, eviction_requests,`: {"--dir", dir, "--what", "nope"},
		"nothing is between them":                         {"--dir", dir, "--since", "2026-11-21", "--until", "2026-11-20"},
	} {
		code, _, stderr := runCommand(t, append([]string{"export", "--database-url", url}, args...)...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
	for want, args := range map[string][]string{
		"has parquet files, not jsonl":                       {},
		"has facts since 2026-01-01, and goes on from there": {"--format", "parquet", "--since", "2025-01-01"},
	} {
		code, _, stderr := runCommand(t, append([]string{"export", "--database-url", url, "--dir", dir}, args...)...)
		require.Equal(t, exitError, code, stderr)
		require.Contains(t, stderr, want)
	}
	code, _, stderr := runCommand(t, "export", "--database-url", url, "--dir", dir, "--cluster", "nope")
	require.Equal(t, exitNotFound, code)
	require.Contains(t, stderr, `"nope"`)
}
