package tables

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// FactColumns are the columns that a FactReader reads.
const FactColumns = `
    subject, occurred_at, id, kind, reason, clock, observed_at, seen_late, namespace, vmi, vmi_uid, node,
    migration, migration_uid, object_kind, object_uid, object_version, what, value, evidence, detail`

// FactsBy reads the facts of one cluster that a query for FactColumns selects, with its arguments (pgx), in no order.
func FactsBy(ctx context.Context, q pg.Queryer, cluster, query string, args ...any) ([]trail.Fact, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, pg.Explain("read facts", err)
	}
	facts, err := CollectFacts(rows, cluster)
	return facts, pg.Explain("read facts", err)
}

// CollectFacts reads facts of one cluster out of rows of FactColumns.
func CollectFacts(rows pgx.Rows, cluster string) ([]trail.Fact, error) {
	r := NewFactReader(cluster)
	var full [][]trail.Fact
	var facts []trail.Fact
	_, err := pgx.ForEachRow(rows, r.Columns(), func() error {
		f, err := r.Fact()
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

// FactReader reads rows of FactColumns one by one: Columns are scanned into, and then Fact is called. It is not safe for concurrent use.
type FactReader struct {
	cluster                                              string
	subject, kind, reason, clock, namespace, vmi, vmiUID pg.Text
	node, migration, migrationUID, objectKind, objectUID pg.Text
	objectVersion, what, value, evidence                 pg.Text
	occurredAt, observedAt                               time.Time
	id                                                   pgtype.UUID
	late                                                 bool
	detail                                               pgtype.DriverBytes
}

// NewFactReader returns what reads facts of a cluster.
func NewFactReader(cluster string) *FactReader {
	r := &FactReader{cluster: cluster}
	pg.ShareTexts(r.Columns())
	return r
}

// Columns returns where to read FactColumns into.
func (r *FactReader) Columns() []any {
	return []any{
		&r.subject, &r.occurredAt, &r.id, &r.kind, &r.reason, &r.clock, &r.observedAt, &r.late, &r.namespace, &r.vmi, &r.vmiUID, &r.node,
		&r.migration, &r.migrationUID, &r.objectKind, &r.objectUID, &r.objectVersion, &r.what, &r.value, &r.evidence, &r.detail,
	}
}

// Fact returns the fact of the row that was read last.
func (r *FactReader) Fact() (trail.Fact, error) {
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
