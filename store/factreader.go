package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// factColumns are the columns that a factReader reads.
const factColumns = `
    subject, occurred_at, id, kind, reason, clock, observed_at, seen_late, namespace, vmi, vmi_uid, node,
    migration, migration_uid, object_kind, object_uid, object_version, what, value, evidence, detail`

// OFFSET keeps Postgres from reading a whole month and looking at every row of it, which it otherwise prefers until it has counted what a
// new month holds: the facts of each subject are found by the primary key.
const factsOfSubjectsQuery = `
SELECT f.*
FROM unnest(@subjects::text[]) AS s(of)
CROSS JOIN LATERAL (
  SELECT ` + factColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
  OFFSET 0
) AS f`

// Of many pods nothing was asked: they are found among the subjects before each month is looked into.
const factsSinceQuery = `
SELECT f.*
FROM unnest(@subjects::text[], @from::timestamptz[]) AS s(of, since)
JOIN evictrail.subjects AS known ON known.cluster = @cluster AND known.subject = s.of
CROSS JOIN LATERAL (
  SELECT ` + factColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at >= s.since
  OFFSET 0
) AS f`

// factsBy reads the facts of one cluster that a query selects, in no order.
func factsBy(ctx context.Context, q pg.Queryer, cluster, query string, args pgx.StrictNamedArgs) ([]trail.Fact, error) {
	rows, err := q.Query(ctx, query, args)
	if err != nil {
		return nil, pg.Explain("read facts", err)
	}
	facts, err := collectFacts(rows, cluster)
	return facts, pg.Explain("read facts", err)
}

// collectFacts reads facts of one cluster out of rows of factColumns.
func collectFacts(rows pgx.Rows, cluster string) ([]trail.Fact, error) {
	r := newFactReader(cluster)
	var full [][]trail.Fact
	var facts []trail.Fact
	_, err := pgx.ForEachRow(rows, r.columns(), func() error {
		f, err := r.fact()
		if len(facts) >= factsTogether { // they are large: what has many would be copied several times while it grows
			full, facts = append(full, facts), make([]trail.Fact, 0, factsTogether)
		}
		facts = append(facts, f)
		return err
	})
	if len(full) > 0 {
		facts = slices.Concat(append(full, facts)...)
	}
	return facts, err
}

// factsTogether is how many facts are put into one piece of memory while they are read.
const factsTogether = 512

// factReader reads rows of factColumns.
type factReader struct {
	cluster                                              string
	subject, kind, reason, clock, namespace, vmi, vmiUID pg.Text
	node, migration, migrationUID, objectKind, objectUID pg.Text
	objectVersion, what, value, evidence                 pg.Text
	occurredAt, observedAt                               time.Time
	id                                                   pgtype.UUID
	late                                                 bool
	detail                                               pgtype.DriverBytes
}

func newFactReader(cluster string) *factReader {
	r := &factReader{cluster: cluster}
	pg.ShareTexts(r.columns())
	return r
}

// columns gives where to read factColumns into.
func (r *factReader) columns() []any {
	return []any{
		&r.subject, &r.occurredAt, &r.id, &r.kind, &r.reason, &r.clock, &r.observedAt, &r.late, &r.namespace, &r.vmi, &r.vmiUID, &r.node,
		&r.migration, &r.migrationUID, &r.objectKind, &r.objectUID, &r.objectVersion, &r.what, &r.value, &r.evidence, &r.detail,
	}
}

// fact returns the fact of the row that was read last.
func (r *factReader) fact() (trail.Fact, error) {
	subject, err := trail.ParseSubject(r.subject.Last)
	if err != nil {
		return trail.Fact{}, err
	}
	detail, err := trail.DecodeDetail(trail.Kind(r.kind.Last), r.detail, pg.Unmarshal)
	if err != nil {
		return trail.Fact{}, err
	}
	f := trail.Fact{
		ID: r.id.Bytes, Cluster: r.cluster, Kind: trail.Kind(r.kind.Last), Reason: trail.Reason(r.reason.Last), Subject: subject,
		Object: trail.Object{Kind: trail.ObjectKind(r.objectKind.Last), UID: r.objectUID.Last, ResourceVersion: r.objectVersion.Last},
		What:   r.what.Last, Value: r.value.Last, OccurredAt: r.occurredAt.UTC(), Clock: trail.Clock(r.clock.Last), ObservedAt: r.observedAt.UTC(),
		Late: r.late, Namespace: r.namespace.Last, VMI: r.vmi.Last, VMIUID: r.vmiUID.Last, Node: r.node.Last,
		Migration: r.migration.Last, MigrationUID: r.migrationUID.Last, Evidence: r.evidence.Last, Detail: detail,
	}
	f.CorrectTimes() // versions until 2026-11 stored any time
	return f, nil
}
