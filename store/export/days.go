package export

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// exportDays brings the files of a cluster's days to what the database has: those of days whose rows are others than in
// their file are written again.
func (r *run) exportDays(ctx context.Context, cluster string) error {
	queries := newQueries(r.Dataset, r.encoder.selection())
	days, settled, err := r.listDays(ctx, queries, cluster)
	if err != nil {
		return err
	}
	for _, f := range r.manifest.files { // of days that may have no rows any more
		day, err := time.Parse(time.DateOnly, f.Date)
		within := !day.Before(orTime(r.Since, always)) && day.Before(orTime(r.Until, never))
		if err == nil && f.Cluster == cluster && within && !slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	slices.SortFunc(days, time.Time.Compare)
	for _, day := range days {
		if err := r.exportDay(ctx, queries, cluster, day, !day.Add(aDay).After(settled)); err != nil {
			return err
		}
	}
	return nil
}

// listDays returns the days of which a cluster has rows, in their order, and before which time rows change no more;
// zero: all may.
func (r *run) listDays(
	ctx context.Context, queries querySet, cluster string,
) (days []time.Time, settled time.Time, err error) {
	args := pgx.StrictNamedArgs{"cluster": cluster, "since": orTime(r.Since, always), "until": orTime(r.Until, never)}
	err = inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
		var from *time.Time
		if err := tx.QueryRow(ctx, factsFromQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&from); err != nil {
			return err
		}
		settled = pg.TimeOrZero(from)
		return eachRow(ctx, tx, queries.days, args, func(row []any) error {
			day, is := row[0].(time.Time)
			if !is {
				return errors.New("a row has no time by which it could be put into the file of a day")
			}
			days = append(days, day.UTC())
			return nil
		})
	})
	return days, settled, err
}

// exportDay brings the file of a day to what the database has. Of a day that is settled rows are deleted by retention
// alone: then the file stays as it is.
func (r *run) exportDay(ctx context.Context, queries querySet, cluster string, day time.Time, settled bool) error {
	path := partitionPath(cluster, day.Format(time.DateOnly)) + "/" + r.Dataset.Name + "." + string(r.Format)
	have, exists := r.manifest.files[path]
	args := pgx.StrictNamedArgs{"cluster": cluster, "since": day, "until": day.Add(aDay)}
	var file *dayFile
	err := inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
		var rows, fingerprint int64
		if err := tx.QueryRow(ctx, queries.fingerprint, args).Scan(&rows, &fingerprint); err != nil {
			return err
		}
		switch {
		case exists && have.Rows == rows && have.Fingerprint == fingerprint:
			r.result.Unchanged++
			return nil
		case exists && rows < have.Rows && settled:
			r.result.Kept++
			return nil
		case r.DryRun != nil:
			r.DryRun(r.path(path), rows)
			r.result.Rows += rows
			return nil
		case rows == 0:
			return r.removeFile(path, exists)
		}
		var err error
		if file, err = r.begin(cluster, day, r.Dataset.Name); err != nil {
			return err
		}
		file.Fingerprint = fingerprint
		return eachRow(ctx, tx, queries.rows, args, func(row []any) error { return r.write(file, row) })
	})
	switch {
	case file == nil:
		return err
	case err != nil:
		file.abort()
		return err
	}
	return r.commit(file, nil)
}

// removeFile removes the file of a day that has no rows any more, and the folder of that day.
func (r *run) removeFile(path string, exists bool) error {
	if !exists {
		return nil
	}
	name := filepath.Join(r.manifest.dir, filepath.FromSlash(path))
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(name)) // where nothing else is in it
	if err := syncDir(filepath.Dir(filepath.Dir(name))); err != nil {
		return err
	}
	r.result.Removed++
	return r.manifest.add(entry{Removed: path})
}
