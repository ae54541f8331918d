package store

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/fold"
)

// flushTable is how rows of one derived table are written.
type flushTable struct {
	name   string
	put    string // SQL
	delete string // SQL
	row    func(o owned, value any) any
}

// flushTables are the derived tables, in the order in which they are written.
var flushTables = []flushTable{
	newFlushTable("eviction_requests", "request_id", func(o owned, r *trail.EvictionRequest) any { return requestRow{o.with(*r), *r} }),
	newFlushTable("evacuations", "evacuation_id", func(o owned, r *trail.Evacuation) any { return evacuationRow{o.with(*r), *r} }),
	newFlushTable("migrations", "migration_uid", func(o owned, r *trail.Migration) any { return migrationRow{o.with(*r), *r} }),
	newFlushTable("placements", "placement_id", func(o owned, r *trail.Placement) any { return placementRow{o.with(*r), *r} }),
	newFlushTable("cooldown_decisions", "decision_id", func(o owned, r *trail.Decision) any { return decisionRow{o.with(*r), *r} }),
	newFlushTable("loops", "loop_id", func(o owned, r *trail.Loop) any { return loopRow{o.with(*r), *r} }),
	newFlushTable("drains", "drain_id", func(o owned, r *trail.Drain) any { return drainRow{o.with(*r), *r} }),
	newFlushTable("drain_blockers", "vmi_uid", func(o owned, r *trail.DrainBlocker) any { return blockerRow{o.with(*r), *r} }),
	newFlushTable("consequences", "consequence_id", func(o owned, r *trail.Consequence) any { return consequenceRow{o.with(*r), *r} }),
	newFlushTable("outages", "outage_id", func(o owned, r *trail.Outage) any { return outageRow{o.with(*r), *r} }),
	newFlushTable("gaps", "gap_id", func(o owned, r *trail.Gap) any { return gapRow{o.with(*r), *r} }),
	newFlushTable("timeline", "event_id", func(o owned, r *fold.Line) any { return timelineRow{o.with(r.Line), r.Line, r.Tie} }),
}

// newFlushTable makes the SQL of a table: its columns are the keys of the JSON of its rows.
func newFlushTable[R trail.Row](name, key string, row func(owned, *R) any) flushTable {
	columns := jsonKeys(reflect.TypeOf(row(owned{}, new(R))))
	excluded := make([]string, len(columns))
	for i, c := range columns {
		excluded[i] = "excluded." + c
	}
	return flushTable{
		name: name,
		put: fmt.Sprintf(`
INSERT INTO evictrail.%[1]s AS t (%[2]s)
SELECT %[2]s
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT (cluster, subject, %[3]s) DO UPDATE
SET (%[2]s, changed_at) = (%[4]s, now())`, name, strings.Join(columns, ", "), key, strings.Join(excluded, ", ")),
		delete: fmt.Sprintf(`
DELETE FROM evictrail.%[1]s AS t
USING unnest(@subjects::text[], @keys::text[]) AS d(subject, key)
WHERE t.cluster = @cluster
  AND t.subject = d.subject
  AND t.%[2]s = d.key::%[3]s`, name, key, keyType(key)),
		row: func(o owned, value any) any { return row(o, value.(*R)) },
	}
}

// keyType is the type of a key column: IDs of facts are UUIDs, those of Kubernetes objects are text.
func keyType(key string) string {
	if strings.HasSuffix(key, "_uid") {
		return "text"
	}
	return "uuid"
}

const (
	// dueAgainQuery notes when subjects that were derived are due again.
	dueAgainQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, next_at)
SELECT @cluster, n.subject, now(), n.next_at
FROM unnest(@subjects::text[], @next::timestamptz[]) AS n(subject, next_at)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET derived_at = now(), next_at = excluded.next_at`
	// cleanQuery notes that subjects are not dirty any more, where nothing was recorded since.
	cleanQuery = `
UPDATE evictrail.subjects AS s
SET dirty_since = NULL
FROM unnest(@subjects::text[], @versions::bigint[]) AS n(subject, version)
WHERE s.cluster = @cluster
  AND s.subject = n.subject
  AND s.version = n.version`
	deferQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, dirty_since)
SELECT @cluster, n.subject, '-infinity', n.since
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET dirty_since = least(s.dirty_since, excluded.dirty_since)`
	dropRedundantQuery = `
DELETE FROM evictrail.events AS e
USING unnest(@subjects::text[], @times::timestamptz[], @ids::uuid[]) AS d(subject, occurred_at, id)
WHERE e.cluster = @cluster
  AND e.subject = d.subject
  AND e.occurred_at = d.occurred_at
  AND e.id = d.id`
)

// flush writes what a fold brought, in one transaction of a term. Its error is ErrDeposed where the term has ended.
func (s *Store) flush(ctx context.Context, cluster string, term int64, c *fold.Changes) error {
	var batch pgx.Batch
	fence(&batch, cluster, term)
	for i := range flushTables {
		t := &flushTables[i]
		if gone := c.Delete[t.name]; len(gone) > 0 {
			subjects, keys := make([]string, len(gone)), make([]string, len(gone))
			for i, r := range gone {
				subjects[i], keys[i] = clean(r.Subject.String()), clean(r.Key)
			}
			batch.Queue(t.delete, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "keys": keys})
		}
	}
	for i := range flushTables {
		t := &flushTables[i]
		rows := c.Put[t.name]
		if len(rows) == 0 {
			continue
		}
		written := make([]any, len(rows))
		for i, r := range rows {
			written[i] = t.row(owned{Cluster: cluster, Subject: clean(r.Subject.String())}, r.Value)
		}
		text, err := jsonText(written)
		if err != nil {
			return fmt.Errorf("write %s: %w", t.name, err)
		}
		batch.Queue(t.put, pgx.StrictNamedArgs{"rows": text})
	}
	queueSubjects(&batch, cluster, c)
	return s.inTx(ctx, "write derived rows", func(tx pgx.Tx) error { return tx.SendBatch(ctx, &batch).Close() })
}

// queueSubjects notes which subjects are derived, which are due, which were deferred, and drops redundant facts.
func queueSubjects(batch *pgx.Batch, cluster string, c *fold.Changes) {
	if len(c.Due) > 0 {
		var subjects []string
		var next []*time.Time
		for s, at := range c.Due {
			subjects, next = append(subjects, clean(s.String())), append(next, nullTime(at))
		}
		batch.Queue(dueAgainQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "next": next})
	}
	if len(c.Clean) > 0 {
		var subjects []string
		var versions []int64
		for s, v := range c.Clean {
			subjects, versions = append(subjects, clean(s.String())), append(versions, v)
		}
		batch.Queue(cleanQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "versions": versions})
	}
	if len(c.Deferred) > 0 {
		var subjects []string
		var since []time.Time
		for s, at := range c.Deferred {
			subjects, since = append(subjects, clean(s.String())), append(since, sendable(at))
		}
		batch.Queue(deferQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since})
	}
	if len(c.Redundant) > 0 {
		var subjects []string
		var times []time.Time
		var ids []pgtype.UUID
		for i := range c.Redundant {
			f := &c.Redundant[i]
			subjects, times, ids = append(subjects, clean(f.Subject.String())), append(times, f.OccurredAt), append(ids, pgtype.UUID{Bytes: f.ID, Valid: true})
		}
		batch.Queue(dropRedundantQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "times": times, "ids": ids})
	}
}
