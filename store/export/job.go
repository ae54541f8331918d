package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Exporter exports what a database has.
type Exporter struct {
	DB       *pg.DB
	Columns  []trail.Column // of all views (read.Whole.Columns)
	Progress func(Progress) // called often; nil: it is not
}

// Job says what is to be exported, and where to.
type Job struct {
	Dataset  Dataset
	Format   Format
	Clusters []string
	// In UTC, not before the beginning of that day; zero: from the first. Of facts it counts by when they were stored, and
	// in the first job of a folder alone. A Stream has it, and Until, to the microsecond.
	Since  time.Time
	Until  time.Time                     // in UTC, before the beginning of that day; zero: up to the last
	Dir    string                        // the dataset gets a folder of its own there
	DryRun func(path string, rows int64) // instead of writing: called with what would be; nil: it is written
}

// Progress is how far a job is.
type Progress struct {
	Dataset, Cluster string
	Day              time.Time
	Rows             int64 // that were written in all
}

// Result is what a job did.
type Result struct {
	Files     int   // that were written
	Rows      int64 // in these
	Unchanged int   // days whose file has what it had
	Kept      int   // days whose file has more than the database, as retention deleted it there
	Removed   int   // files of days that have no rows any more
}

// run is a job under way.
type run struct {
	*Exporter
	Job
	encoder  encoder
	manifest *manifest
	result   Result
}

// Run does a job. Where it ends early, with an error too, what it wrote so far is complete, and the next job for the
// same folder goes on from there. Errors are those of package pg, and of files.
func (e *Exporter) Run(ctx context.Context, j Job) (result Result, err error) {
	r := &run{Exporter: e, Job: j}
	if r.encoder, err = newEncoder(j.Format, j.Dataset.columnsOf(e.Columns, false), false); err != nil {
		return Result{}, err
	}
	r.Since, r.Until = j.Since.Truncate(aDay), j.Until.Truncate(aDay)
	want := header{What: j.Dataset.Name, Format: j.Format}
	if j.Dataset.Ordered {
		want.Since = r.Since
	}
	if r.manifest, err = openManifest(filepath.Join(j.Dir, j.Dataset.Name), want, j.DryRun != nil); err != nil {
		return Result{}, fmt.Errorf("open export: %w", err)
	}
	defer func() { err = errors.Join(err, r.manifest.close()) }()
	for _, cluster := range j.Clusters {
		if j.Dataset.Ordered {
			err = r.exportFacts(ctx, cluster)
		} else {
			err = r.exportDays(ctx, cluster)
		}
		if err != nil {
			return r.result, pg.Explain("export "+j.Dataset.Name+" of "+cluster, err)
		}
	}
	return r.result, nil
}

const aDay = 24 * time.Hour

// dayFile is a file of the folder that is being written.
type dayFile struct {
	*pendingFile
	File
}

// begin begins a file. An export that is cut off before commit leaves nothing of it.
func (r *run) begin(cluster string, day time.Time, name string) (*dayFile, error) {
	date := day.Format(time.DateOnly)
	path := partitionPath(cluster, date) + "/" + name + "." + string(r.Format)
	if err := r.manifest.add(entry{Writing: path}); err != nil {
		return nil, err
	}
	f, err := createFile(filepath.Join(r.manifest.dir, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	r.encoder.open(f)
	return &dayFile{f, File{Path: path, Cluster: cluster, Date: date}}, nil
}

// write adds a row.
func (r *run) write(f *dayFile, row []any) error {
	f.Rows++
	r.report(f.Cluster, f.Date, 1)
	return r.encoder.write(row)
}

// report notes rows that were written.
func (r *run) report(cluster, date string, rows int64) {
	r.result.Rows += rows
	if r.Progress != nil {
		day, _ := time.Parse(time.DateOnly, date)
		r.Progress(Progress{r.Dataset.Name, cluster, day, r.result.Rows})
	}
}

// commit completes a file, and then notes it in the manifest, with how far facts are exported by it; nil: rows are no
// facts.
func (r *run) commit(f *dayFile, upTo *cursor) error {
	if err := r.encoder.close(); err != nil {
		f.abort()
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		f.abort()
		return err
	}
	f.Bytes = size
	if err := f.publish(); err != nil {
		return err
	}
	r.result.Files++
	return r.manifest.add(entry{File: &f.File, Cursor: upTo})
}

// path returns which file of the folder is meant, as people write it.
func (r *run) path(path string) string {
	return strings.TrimPrefix(filepath.Join(r.manifest.dir, filepath.FromSlash(path)), "./")
}
