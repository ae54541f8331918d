package export

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// mostRows is how many facts a file has at most, so that what is done again after an end in the middle is bounded;
// tests have fewer.
var mostRows int64 = 1_000_000

// factHead is how many columns of a row are the place of a fact, before those that are exported.
const factHead = 4

// exportFacts exports the facts of a cluster that were stored after those that are exported.
func (r *run) exportFacts(ctx context.Context, cluster string) error {
	at := r.manifest.cursors[cluster]
	at.Cluster = cluster
	if err := r.checkCursor(ctx, at); err != nil {
		return err
	}
	if r.DryRun != nil {
		return r.countFacts(ctx, at)
	}
	w := &factWriter{run: r, at: at}
	err := r.readFacts(ctx, at, w.write)
	switch {
	case w.file == nil:
		return err
	case err != nil:
		w.file.abort()
		return err
	}
	return w.finish()
}

// checkCursor refuses a database that does not have the fact up to which facts were exported, unless retention dropped
// it: it lost commits, or is another one, and what is stored there now may have numbers that are taken for exported.
func (r *run) checkCursor(ctx context.Context, at cursor) error {
	if at.Seq == 0 {
		return nil
	}
	var has *string
	var from *time.Time
	err := inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, knownFactQuery, pgx.StrictNamedArgs{"cluster": at.Cluster, "seq": at.Seq}).Scan(&has, &from)
	})
	switch {
	case err != nil:
		return err
	case has == nil && from != nil && at.At.Before(*from), has != nil && *has == at.EventID:
		return nil
	}
	return fmt.Errorf("%s has facts up to number %d, %s, and the database does not have that one: it lost what it had "+
		"stored, or is another one. Export into another folder",
		r.manifest.dir, at.Seq, at.EventID)
}

// countFacts reports what would be exported after a fact.
func (r *run) countFacts(ctx context.Context, at cursor) error {
	args := r.factArgs(at)
	args["numbered"], args["until"] = at.Numbered, orTime(r.Until, never)
	return inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
		return eachRow(ctx, tx, countFactsQuery, args, func(row []any) error {
			day, _ := row[0].(time.Time)
			rows, _ := row[1].(int64)
			r.DryRun(r.path(partitionPath(at.Cluster, day.Format(time.DateOnly))), rows)
			r.result.Rows += rows
			return nil
		})
	})
}

// factArgs returns the arguments of queries for what comes after a fact.
func (r *run) factArgs(at cursor) pgx.StrictNamedArgs {
	id := at.EventID
	if id == "" {
		id = "00000000-0000-0000-0000-000000000000"
	}
	since := r.Since
	if r.manifest != nil {
		since = r.manifest.header.Since
	}
	return pgx.StrictNamedArgs{
		"cluster": at.Cluster, "seq": at.Seq, "stored_at": orTime(at.StoredAt, always), "event_id": id, "since": orTime(since, always),
	}
}

// readFacts reads the facts of a cluster after one, some in a transaction, up to the first that was stored at Until or
// later. read is called with where each stands and what of it is exported.
func (r *run) readFacts(ctx context.Context, at cursor, read func(at cursor, row []any) error) error {
	for {
		query := factsQuery
		if !at.Numbered {
			query = oldFactsQuery
		}
		args := r.factArgs(at)
		args["limit"] = factsTogether
		if at.Numbered {
			delete(args, "stored_at")
			delete(args, "event_id")
		} else {
			delete(args, "seq")
		}
		n, ended := 0, false
		err := inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
			return eachRow(ctx, tx, fmt.Sprintf(query, r.encoder.selection()), args, func(row []any) error {
				n++
				next := cursor{Cluster: at.Cluster, Numbered: at.Numbered}
				next.Seq, _ = row[0].(int64)
				next.StoredAt, _ = row[1].(time.Time)
				next.EventID, _ = row[2].(string)
				next.At, _ = row[3].(time.Time)
				next.StoredAt, next.At = next.StoredAt.UTC(), next.At.UTC()
				if ended = ended || !r.Until.IsZero() && !next.StoredAt.Before(r.Until); ended {
					return nil
				}
				at = next
				return read(at, row[factHead:])
			})
		})
		switch {
		case err != nil:
			return err
		case ended:
			return nil
		case n < factsTogether && at.Numbered:
			return nil
		case n < factsTogether:
			at.Numbered = true // and the others begin after 0
		}
	}
}

// factWriter writes facts to one file after the other.
type factWriter struct {
	*run
	at   cursor // of the last fact that was written
	file *dayFile
}

// write adds a fact to the file of its day, which has nothing but facts that were stored on one day, one after the
// other.
func (w *factWriter) write(at cursor, row []any) error {
	day := at.StoredAt.Truncate(aDay)
	if w.file != nil && (w.file.Date != day.Format(time.DateOnly) || w.file.Rows >= mostRows) {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.file == nil {
		var err error
		if w.file, err = w.begin(at.Cluster, day, fmt.Sprintf("facts-%019d-%.8s", at.Seq, at.EventID)); err != nil {
			return err
		}
	}
	w.at = at
	return w.run.write(w.file, row)
}

// finish completes the file, and notes that what is in it is exported.
func (w *factWriter) finish() error {
	file := w.file
	w.file = nil
	return w.commit(file, &w.at)
}
