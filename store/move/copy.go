package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// chunkRows is how many rows are copied in one transaction; tests have fewer.
var chunkRows = 10_000

const (
	// reading begins a transaction whose statements may take long, and write values the same way in all databases.
	reading = `BEGIN READ ONLY;
SET LOCAL statement_timeout = 0;
SET LOCAL jit = off;
SET LOCAL datestyle = 'ISO, MDY';
SET LOCAL intervalstyle = 'postgres';
SET LOCAL bytea_output = 'hex';
SET LOCAL extra_float_digits = 1`
	writing = `BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL jit = off`
)

// runReading runs a function in a transaction that reads.
func runReading(ctx context.Context, db *pg.DB, run func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: reading}, run)
}

// runWriting runs a function in a transaction that writes.
func runWriting(ctx context.Context, db *pg.DB, run func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: writing}, run)
}

// copyTables copies the rows of all tables that are not copied yet.
func (m *Mover) copyTables(ctx context.Context, all []table, at position) error {
	for i := range all {
		t := &all[i]
		if slices.Contains(at.Copied, t.Name) {
			continue
		}
		if t.Name == "events" {
			if err := m.makeMonths(ctx); err != nil {
				return err
			}
		}
		if at.AfterKey == nil { // what a recorder left that was started too early
			if _, err := m.deleteRows(ctx, m.To, t.Name); err != nil {
				return err
			}
		}
		for done := false; !done; {
			var err error
			if at.AfterKey, done, err = m.copyChunk(ctx, t, at.AfterKey); err != nil {
				return pg.Explain("copy evictrail."+t.Name, err)
			}
		}
		at.AfterKey = nil
	}
	return nil
}

const (
	monthsQuery = `
SELECT c.relname::text
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'evictrail.events'::regclass
  AND c.relname ~ '^events_\d{4}_\d{2}$'
ORDER BY 1`
	hasRowsQuery    = `SELECT EXISTS (SELECT 1 FROM %s WHERE cluster = @cluster)`
	ensureMonthCall = `SELECT evictrail.ensure_month(@month)`
)

// makeMonths makes the partitions of those months of which the source has facts in a partition of their own. Where the
// destination has dropped such a month, or has facts of it elsewhere, they lie with these.
func (m *Mover) makeMonths(ctx context.Context) error {
	const doing = "make partitions"
	rows, err := m.From.Query(ctx, monthsQuery)
	if err != nil {
		return pg.Explain(doing, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pg.Explain(doing, err)
	}
	for _, name := range names {
		filled, err := m.hasRows(ctx, m.From, name)
		if err != nil {
			return err
		}
		month, err := time.Parse("events_2006_01", name)
		if err != nil || !filled {
			continue
		}
		_, err = m.To.Exec(ctx, ensureMonthCall, pgx.StrictNamedArgs{"month": month})
		if err != nil && (pg.IsDenied(err) || !pg.IsPartitionUnneeded(err)) {
			return pg.Explain(doing, err)
		}
	}
	return nil
}

// hasRows reports whether a table has rows of the cluster.
func (m *Mover) hasRows(ctx context.Context, db *pg.DB, name string) (has bool, err error) {
	sql := fmt.Sprintf(hasRowsQuery, pgx.Identifier{"evictrail", name}.Sanitize())
	err = db.QueryRow(ctx, sql, pg.Planned, pgx.StrictNamedArgs{"cluster": m.Cluster}).Scan(&has)
	return has, pg.Explain("look for rows of the cluster in evictrail."+name, err)
}

const (
	advanceQuery = `
UPDATE evictrail.moves
SET after_key = @key
WHERE cluster = @cluster`
	copiedQuery = `
UPDATE evictrail.moves
SET copied = copied || @table::text, after_key = NULL
WHERE cluster = @cluster`
)

// copyChunk copies the next rows of a table after a key, and notes that in the same transaction. It returns the key of
// the last one, and whether none is left.
func (m *Mover) copyChunk(ctx context.Context, t *table, after []string) (last []string, done bool, err error) {
	err = runReading(ctx, m.From, func(from pgx.Tx) error {
		where, err := t.rowsAfter(from.Conn(), m.Cluster, after)
		if err != nil {
			return err
		}
		if last, err = t.chunkEnd(ctx, from, where); err != nil {
			return err
		}
		note, args := advanceQuery, pgx.StrictNamedArgs{"cluster": m.Cluster, "key": last}
		if done = last == nil; done {
			note, args = copiedQuery, pgx.StrictNamedArgs{"cluster": m.Cluster, "table": t.Name}
		} else {
			end, err := t.literalTuple(from.Conn(), last)
			if err != nil {
				return err
			}
			where += " AND " + t.keyTuple() + " <= " + end
		}
		return runWriting(ctx, m.To, func(to pgx.Tx) error {
			if err := keepFactsThatCome(ctx, to, t); err != nil {
				return err
			}
			n, err := t.pipe(ctx, from, to, where)
			if err != nil {
				return err
			}
			m.report(Progress{Doing: "copied", Table: t.Name, Rows: n})
			_, err = to.Exec(ctx, note, args)
			return err
		})
	})
	return last, done, err
}

// keepFactsThatCome keeps months from being dropped until a transaction that brings facts ends.
func keepFactsThatCome(ctx context.Context, to pgx.Tx, t *table) error {
	if t.Name != "events" {
		return nil
	}
	_, err := to.Exec(ctx, tables.DropNoFactsQuery)
	return err
}

// rowsAfter returns the condition of the rows of a cluster after a key.
func (t *table) rowsAfter(conn *pgx.Conn, cluster string, after []string) (string, error) {
	name, err := quoteText(conn, cluster)
	where := "cluster = " + name
	if err != nil || after == nil {
		return where, err
	}
	begin, err := t.literalTuple(conn, after)
	return where + " AND " + t.keyTuple() + " > " + begin, err
}

// chunkEnd returns the key of the last row of a chunk; nil where all the rest fits.
func (t *table) chunkEnd(ctx context.Context, from pgx.Tx, where string) ([]string, error) {
	if len(t.Key) == 0 {
		return nil, nil
	}
	var last []string
	sql := fmt.Sprintf("SELECT ARRAY[%s::text] FROM %s WHERE %s ORDER BY %s OFFSET %d LIMIT 1",
		strings.Join(t.Key, "::text, "), t.path(), where, strings.Join(t.Key, ", "), chunkRows-1)
	err := from.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return last, err
}

// pipe copies rows from one database to the other, and returns how many. They are never held in memory together.
func (t *table) pipe(ctx context.Context, from, to pgx.Tx, where string) (int64, error) {
	out, in := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := from.Conn().PgConn().CopyTo(ctx, in, fmt.Sprintf(
			"COPY (SELECT %s FROM %s WHERE %s) TO STDOUT (FORMAT binary)", t.columns(), t.path(), where))
		_ = in.CloseWithError(err)
		sent <- err
	}()
	tag, err := to.Conn().PgConn().CopyFrom(ctx, out,
		fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", t.path(), t.columns()))
	_ = out.CloseWithError(errors.New("the destination takes no more rows"))
	if failed := <-sent; err == nil {
		err = failed
	}
	return tag.RowsAffected(), err
}
