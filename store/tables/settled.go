package tables

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// DropNoFactsQuery has no facts dropped until a transaction ends. It comes before all else in a transaction whose statements see one state: what they
// see is settled with the first that reads.
const DropNoFactsQuery = `LOCK TABLE ONLY evictrail.events IN ACCESS SHARE MODE`

// SettledQuery asks before which time facts of a @cluster were dropped; NULL where none ever were. It has one row, also of
// a cluster that is not known.
const SettledQuery = `
SELECT (SELECT facts_from FROM evictrail.clusters WHERE cluster = @cluster)`

// QueueSettled queues SettledQuery: it asks, in a transaction in which no facts are dropped, before which time facts of a
// cluster are gone and what had ended is settled; nil where nothing is.
func QueueSettled(batch *pgx.Batch, cluster string, into **time.Time) {
	args := pgx.StrictNamedArgs{"cluster": cluster}
	batch.Queue(SettledQuery, args).QueryRow(func(row pgx.Row) error { return row.Scan(into) })
}

// BouncesQuery asks how many loops of a kind around a VMI, or around the VMIs of one name, are settled: those of @subjects of a @cluster that had
// ended before a time of each, @before beside them. Loops to come are numbered after them.
const BouncesQuery = `
SELECT t.subject, coalesce(t.vmi_uid, t.namespace || '/' || t.vmi), t.kind, count(*)
FROM unnest(@subjects::text[], @before::timestamptz[]) AS s(of, before)
JOIN evictrail.loops AS t ON t.cluster = @cluster AND t.subject = s.of
WHERE t.kind IN ('ping_pong', 'churn', 'frequent_moves', 'repeated_failures', 'shutdown_churn')
  AND t.open_until < s.before
  AND t.closed_by <> 'refuted'
GROUP BY t.subject, 2, t.kind`
