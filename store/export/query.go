package export

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// readRows begins a transaction that sees one state, for as long as it takes: who reads views may have a limit that is
// meant for questions.
const readRows = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = 0;
SET LOCAL TimeZone = 'UTC';
SET LOCAL jit = off`

// inReadTx runs what reads rows.
func inReadTx(ctx context.Context, db *pg.DB, run func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.Pool, pgx.TxOptions{BeginQuery: readRows}, run)
}

// factsTogether is how many facts are read in a transaction; tests have fewer.
var factsTogether = 10_000

// Facts are asked for with where each stands, and by this the next ones. Those from before schema 43 have no number:
// they come first, in the order of their time of storing.
const (
	factsQuery = `
SELECT v.seq, v.stored_at, v.event_id::text, v.at, %s
FROM evictrail_v1.facts AS v
WHERE v.cluster = @cluster
  AND v.seq > 0
  AND v.seq > @seq
  AND v.stored_at >= @since
ORDER BY v.seq
LIMIT @limit`
	oldFactsQuery = `
SELECT v.seq, v.stored_at, v.event_id::text, v.at, %s
FROM evictrail_v1.facts AS v
WHERE v.cluster = @cluster
  AND v.seq = 0
  AND (v.stored_at, v.event_id) > (@stored_at, @event_id::uuid)
  AND v.stored_at >= @since
ORDER BY v.stored_at, v.event_id
LIMIT @limit`
	// countFactsQuery counts the facts that are to be exported, by day.
	countFactsQuery = `
SELECT (v.stored_at AT TIME ZONE 'UTC')::date, count(*)
FROM evictrail_v1.facts AS v
WHERE v.cluster = @cluster
  AND (v.seq > @seq OR v.seq = 0 AND NOT @numbered AND (v.stored_at, v.event_id) > (@stored_at, @event_id::uuid))
  AND v.stored_at >= @since
  AND v.stored_at < @until
GROUP BY 1
ORDER BY 1`
	// knownFactQuery asks which fact has a number, and from when on all are there.
	knownFactQuery = `
SELECT
    (SELECT v.event_id::text FROM evictrail_v1.facts AS v WHERE v.cluster = @cluster AND v.seq > 0 AND v.seq = @seq),
    c.facts_from
FROM evictrail_v1.clusters AS c
WHERE c.cluster = @cluster`
)

// factsFromQuery asks from when on all facts are there: rows about what was over by then change no more, but may be
// deleted.
const factsFromQuery = `
SELECT facts_from
FROM evictrail_v1.clusters
WHERE cluster = @cluster`

// querySet has the queries for the days of a dataset, made of names of ours.
type querySet struct {
	days, fingerprint, rows string
}

// newQueries returns the queries of a dataset whose rows change.
func newQueries(d Dataset, selection string) querySet {
	ofDay := fmt.Sprintf(`
FROM evictrail_v1.%s AS v
WHERE v.cluster = @cluster
  AND v.%[2]s >= @since
  AND v.%[2]s < @until`, d.Name, d.At)
	order := append([]string{d.At}, d.Order...)
	return querySet{
		days: fmt.Sprintf("\nSELECT DISTINCT (v.%s AT TIME ZONE 'UTC')::date AS day%s\nORDER BY day", d.At, ofDay),
		// Each row counts with all of its columns, whatever their order. Two rows that are the same would leave
		// nothing, so they are counted as well.
		fingerprint: "\nSELECT count(*), coalesce(bit_xor(hashtextextended(v::text, 0)), 0)" + ofDay,
		rows:        "\nSELECT " + selection + ofDay + "\nORDER BY v." + strings.Join(order, ", v."),
	}
}

// Times that no row is before or after.
var (
	always = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	never  = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// orTime returns a time, or another one where that is zero.
func orTime(t, otherwise time.Time) time.Time {
	if t.IsZero() {
		return otherwise
	}
	return t
}

// eachRow reads the rows of a query one by one.
func eachRow(ctx context.Context, tx pgx.Tx, query string, args pgx.StrictNamedArgs, read func(row []any) error) error {
	rows, err := tx.Query(ctx, query, pg.Planned, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		if err == nil {
			err = read(row)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
