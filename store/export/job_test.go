package export_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/export"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

const aDay = 24 * time.Hour

// evacuationsDataset returns a dataset whose rows change.
func evacuationsDataset(t *testing.T) export.Dataset {
	t.Helper()
	d, err := export.FindDataset("evacuations")
	require.NoError(t, err)
	return d
}

// lake is a folder into which a database is exported.
type lake struct {
	store *store.Store
	dir   string
	e     export.Exporter
}

func newLake(t *testing.T, s *store.Store) *lake {
	t.Helper()
	columns, err := s.Columns(t.Context())
	require.NoError(t, err)
	return &lake{s, t.TempDir(), export.Exporter{DB: s.DB, Columns: columns}}
}

// run exports a dataset of cluster c1.
func (l *lake) run(ctx context.Context, d export.Dataset) (export.Result, error) {
	return l.e.Run(ctx, export.Job{Dataset: d, Format: export.JSONL, Clusters: []string{"c1"}, Dir: l.dir})
}

// mustRun exports a dataset without an error.
func (l *lake) mustRun(t *testing.T, d export.Dataset) export.Result {
	t.Helper()
	r, err := l.run(t.Context(), d)
	require.NoError(t, err)
	return r
}

// readRaw returns the lines of the files of a dataset, and how many each has.
func (l *lake) readRaw(t *testing.T, d export.Dataset) (rows []string, files map[string]int) {
	t.Helper()
	files = map[string]int{}
	require.NoError(t, filepath.WalkDir(filepath.Join(l.dir, d.Name), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name()[0] == '_' || e.Name()[0] == '.' {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			rows = append(rows, strings.TrimSpace(line))
			files[path]++
		}
		return err
	}))
	slices.Sort(rows)
	return rows, files
}

// read returns the rows of the files of a dataset, sorted, and in which file each is.
func (l *lake) read(t *testing.T, d export.Dataset) (rows []string, files map[string]int) {
	t.Helper()
	rows, files = l.readRaw(t, d)
	for path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var row map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			require.Contains(t, path, "/cluster=c1/date="+fmt.Sprint(row[d.At])[:10]+"/")
		}
	}
	return rows, files
}

// want returns the rows of the view, sorted.
func (l *lake) want(t *testing.T, d export.Dataset) []string {
	t.Helper()
	rows, err := l.store.DB.Query(t.Context(), "SELECT (to_jsonb(v) - 'cluster')::text FROM evictrail_v1."+d.Name+" AS v WHERE cluster = 'c1'")
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	slices.Sort(all)
	return all
}

// requireWhole requires that the files have the rows of the view.
func (l *lake) requireWhole(t *testing.T, d export.Dataset) {
	t.Helper()
	got, _ := l.read(t, d)
	require.Equal(t, l.want(t, d), got)
}

// execSQL runs a statement that changes rows.
func execSQL(t *testing.T, s *store.Store, sql string) {
	t.Helper()
	tag, err := s.DB.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.Positive(t, tag.RowsAffected(), sql)
}

// incidentOn returns the facts of an incident of another day, with other VMs than those of other days.
func incidentOn(day int) []trail.Fact {
	facts := storetest.Incident("c1", 3)
	for i := range facts {
		f := &facts[i]
		f.OccurredAt, f.ObservedAt = f.OccurredAt.Add(time.Duration(day)*aDay), f.ObservedAt.Add(time.Duration(day)*aDay)
		if f.Subject.Kind == trail.SubjectVMI {
			f.VMI = fmt.Sprintf("%s-%d", f.VMI, day)
			f.Subject = trail.VMISubject("shop", f.VMI)
		}
		f.Object.UID = fmt.Sprintf("%s-%d", f.Object.UID, day)
		f.ID[0] ^= byte(1 + day)
	}
	return facts
}

// TestFactsAreExportedOnce exports while facts come, some of them late: each is in one file, and files that are there
// stay as they are.
func TestFactsAreExportedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	l := newLake(t, s)
	require.Zero(t, l.mustRun(t, export.Facts), "there is nothing yet")
	before := map[string]int{}
	for _, day := range []int{3, 4, 1, 5} { // day 1 comes late
		storetest.Record(t, s, incidentOn(day))
		r := l.mustRun(t, export.Facts)
		require.Greater(t, r.Files, 1)
		l.requireWhole(t, export.Facts)
		_, files := l.read(t, export.Facts)
		for path, rows := range before {
			require.Equal(t, rows, files[path], path)
		}
		require.Len(t, files, len(before)+r.Files)
		before = files
	}
	require.Zero(t, l.mustRun(t, export.Facts))

	execSQL(t, s, "UPDATE evictrail.events SET stored_at = stored_at - interval '1 day' WHERE seq > (SELECT max(seq) - 3 FROM evictrail.events)")
	another := newLake(t, s)
	another.mustRun(t, export.Facts)
	another.requireWhole(t, export.Facts)
}

// TestFactsFromBeforeTheyWereNumbered exports the facts that a database had before schema 43 first, and those that came
// since.
func TestFactsFromBeforeTheyWereNumbered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Record(t, s, incidentOn(1))
	execSQL(t, s, "UPDATE evictrail.events SET seq = 0, stored_at = stored_at - interval '2 days' + seq * interval '1 hour'")
	l := newLake(t, s)
	l.mustRun(t, export.Facts)
	l.requireWhole(t, export.Facts)
	storetest.Record(t, s, incidentOn(2))
	l.mustRun(t, export.Facts)
	l.requireWhole(t, export.Facts)
}

// TestExportThatIsCutOffGoesOn cuts exports off after each row, and leaves files and lines half written as a crash
// would: the rows are there once in the end.
func TestExportThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	for day := range 3 {
		storetest.Record(t, s, incidentOn(day))
	}
	execSQL(t, s, "UPDATE evictrail.events SET seq = 0 WHERE seq < 20")
	for _, d := range []export.Dataset{export.Facts, evacuationsDataset(t)} {
		l := newLake(t, s)
		runs := 0
		for after := int64(1); ; after++ {
			ctx, cancel := context.WithCancel(t.Context())
			l.e.Progress = func(p export.Progress) {
				if p.Rows >= after {
					cancel()
				}
			}
			_, err := l.run(ctx, d)
			cancel()
			if err == nil {
				break
			}
			runs++
			require.ErrorIs(t, err, context.Canceled)
			tearManifest(t, filepath.Join(l.dir, d.Name, "_manifest.jsonl"))
		}
		require.Greater(t, runs, 2, d.Name)
		l.requireWhole(t, d)
	}
}

// TestAFileThatWasNotCompletedIsRemoved cuts an export off, after which retention drops the first fact of the file that
// was being written: it is not taken for complete.
func TestAFileThatWasNotCompletedIsRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Record(t, s, incidentOn(1))
	l := newLake(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.e.Progress = func(export.Progress) { cancel() }
	_, err := l.run(ctx, export.Facts)
	require.ErrorIs(t, err, context.Canceled)
	tearManifest(t, filepath.Join(l.dir, "facts", "_manifest.jsonl"))
	got, _ := l.readRaw(t, export.Facts)
	require.Len(t, got, 1)
	execSQL(t, s, "DELETE FROM evictrail.events WHERE seq = (SELECT min(seq) FROM evictrail.events)")
	l.e.Progress = nil
	l.mustRun(t, export.Facts)
	l.requireWhole(t, export.Facts)
}

// tearManifest leaves a manifest and what it says is being written as an end in the middle of a write does: the file
// under its name, but its line not whole.
func tearManifest(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	var last struct{ Writing string }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &last))
	if last.Writing != "" && strings.Contains(last.Writing, "facts-") {
		path := filepath.Join(filepath.Dir(name), last.Writing)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(`{"doubled": "row"}`+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(name, append(text, `{"file":{"path":"clus`...), 0o600))
}

// TestDaysThatChangedAreWrittenAgain exports rows of which some change, come or go: then the files of their days are
// replaced, and no others.
func TestDaysThatChangedAreWrittenAgain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	d := evacuationsDataset(t)
	l := newLake(t, s)
	for day := range 4 {
		storetest.Record(t, s, incidentOn(day))
	}
	require.Equal(t, 4, l.mustRun(t, d).Files)
	l.requireWhole(t, d)
	require.Equal(t, export.Result{Unchanged: 4}, l.mustRun(t, d))
	execSQL(t, s, "UPDATE evictrail.evacuations SET evidence = 'by an audit log' WHERE vmi = 'db-1-1'")
	r := l.mustRun(t, d)
	require.Equal(t, export.Result{Files: 1, Rows: 3, Unchanged: 3}, r)
	l.requireWhole(t, d)
	execSQL(t, s, "DELETE FROM evictrail.evacuations WHERE vmi LIKE 'db-%-2' OR vmi = 'db-0-3'")
	r = l.mustRun(t, d)
	require.Equal(t, export.Result{Files: 1, Rows: 2, Unchanged: 2, Removed: 1}, r)
	l.requireWhole(t, d)

	execSQL(t, s, "UPDATE evictrail.clusters SET facts_from = '2026-11-23'") // what is before is deleted by retention alone
	want, _ := l.read(t, d)
	execSQL(t, s, "DELETE FROM evictrail.evacuations WHERE vmi LIKE 'db-%-0' OR vmi = 'db-2-1'")
	require.Equal(t, export.Result{Unchanged: 1, Kept: 2}, l.mustRun(t, d))
	got, _ := l.read(t, d)
	require.Equal(t, want, got)
}

// TestRetentionLeavesExportsAsTheyAre drops the facts of a month between two exports: what was exported stays, and what
// comes then is added.
func TestRetentionLeavesExportsAsTheyAre(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	l := newLake(t, s)
	old := incidentOn(0)
	for i := range old {
		old[i].OccurredAt, old[i].ObservedAt = old[i].OccurredAt.AddDate(0, -9, 0), old[i].ObservedAt.AddDate(0, -9, 0)
	}
	storetest.Record(t, s, old)
	l.mustRun(t, export.Facts)
	want, _ := l.read(t, export.Facts)
	require.Len(t, want, len(old))
	did, err := retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 90 * aDay}, time.Now())
	require.NoError(t, err)
	require.Len(t, did.Dropped, 1)
	require.Zero(t, l.mustRun(t, export.Facts))
	news := incidentOn(2)
	storetest.Record(t, s, news)
	l.mustRun(t, export.Facts)
	got, _ := l.read(t, export.Facts)
	require.Len(t, got, len(old)+len(news))
}

// TestADatabaseThatLostFactsIsNotGoneOnWith refuses to go on where numbers of facts that were exported may be those of
// others by now.
func TestADatabaseThatLostFactsIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	l := newLake(t, s)
	storetest.Record(t, s, incidentOn(1))
	l.mustRun(t, export.Facts)
	execSQL(t, s, "DELETE FROM evictrail.events WHERE seq > (SELECT max(seq) - 5 FROM evictrail.events)")
	_, err := l.run(t.Context(), export.Facts)
	require.ErrorContains(t, err, "the database does not have that one: it lost what it had stored, or is another one. Export into another folder")
}

// TestSinceAndUntil export days that are within them.
func TestSinceAndUntil(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for day := range 4 {
		storetest.Record(t, s, incidentOn(day))
	}
	d := evacuationsDataset(t)
	l := newLake(t, s)
	job := export.Job{Dataset: d, Format: export.JSONL, Clusters: []string{"c1"}, Dir: l.dir, Since: storetest.Start.Add(aDay + time.Hour), Until: storetest.Start.Add(3*aDay + time.Hour)}
	r, err := l.e.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, export.Result{Files: 2, Rows: 6}, r)
	l.mustRun(t, d)
	l.requireWhole(t, d)

	execSQL(t, s, "UPDATE evictrail.events SET stored_at = occurred_at")
	job.Dataset = export.Facts
	_, err = l.e.Run(t.Context(), job)
	require.NoError(t, err)
	got, _ := l.read(t, export.Facts)
	require.Len(t, got, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at >= '2026-11-22' AND stored_at < '2026-11-24'"))
	l.mustRun(t, export.Facts)
	got, _ = l.read(t, export.Facts)
	require.Len(t, got, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at >= '2026-11-22'"), "it goes on from the first since")
}

// TestOneExportAtATime refuses a second one for a folder.
func TestOneExportAtATime(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	storetest.Record(t, s, incidentOn(1))
	l := newLake(t, s)
	var second error
	l.e.Progress = func(export.Progress) {
		if second == nil {
			_, second = l.run(t.Context(), export.Facts)
		}
	}
	l.mustRun(t, export.Facts)
	require.ErrorContains(t, second, "another export is writing to it")
	l.requireWhole(t, export.Facts)
}

// TestNamesOfClustersAreFoldersAsHiveNamesThem has names that no folder can have.
func TestNamesOfClustersAreFoldersAsHiveNamesThem(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "a/b=c é", storetest.Incident("a/b=c é", 1))
	require.NoError(t, err)
	l := newLake(t, s)
	r, err := l.e.Run(t.Context(), export.Job{Dataset: export.Facts, Format: export.Parquet, Clusters: []string{"a/b=c é"}, Dir: l.dir})
	require.NoError(t, err)
	require.Positive(t, r.Rows)
	entries, err := os.ReadDir(filepath.Join(l.dir, "facts"))
	require.NoError(t, err)
	require.Equal(t, "cluster=a%2Fb%3Dc é", entries[1].Name())
}

// TestEachColumnHasAType knows how to write the columns of all datasets.
func TestEachColumnHasAType(t *testing.T) {
	t.Parallel()
	l := newLake(t, storetest.New(t))
	for _, d := range export.Datasets() {
		_, err := l.e.Run(t.Context(), export.Job{Dataset: d, Format: export.Parquet, Dir: l.dir})
		require.NoError(t, err, d.Name)
	}
	l.e.Columns = append(l.e.Columns, trail.Column{View: "facts", Name: "place", Type: "point"})
	_, err := l.e.Run(t.Context(), export.Job{Dataset: export.Facts, Format: export.Parquet, Dir: l.dir})
	require.ErrorContains(t, err, "column place of view facts has the type point")
}
