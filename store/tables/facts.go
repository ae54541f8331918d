package tables

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// FactRow is one row of evictrail.events.
type FactRow struct {
	Subject       string
	OccurredAt    time.Time
	ID            pgtype.UUID
	Kind          string
	Reason        string
	Clock         string
	ObservedAt    time.Time
	SeenLate      bool
	Namespace     *string
	VMI           *string
	VMIUID        *string
	Node          *string
	Migration     *string
	MigrationUID  *string
	ObjectKind    string
	ObjectUID     string
	ObjectVersion string
	What          string
	Value         string
	Evidence      string
	Detail        []byte
}

// Replaced reports whether a text of the row may be another than that of the fact.
func (r *FactRow) Replaced() bool {
	texts := []string{
		r.Subject, pg.TextOrEmpty(r.Namespace), pg.TextOrEmpty(r.VMI), pg.TextOrEmpty(r.VMIUID), pg.TextOrEmpty(r.Node), pg.TextOrEmpty(r.Migration), pg.TextOrEmpty(r.MigrationUID),
		r.ObjectUID, r.ObjectVersion, r.What, r.Value, r.Evidence, string(r.Detail),
	}
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "\uFFFD") || strings.Contains(s, `\ufffd`) })
}

func rowFromFact(f *trail.Fact) (*FactRow, error) {
	r := &FactRow{
		Subject: pg.CleanText(f.Subject.String()), OccurredAt: f.OccurredAt, ID: pgtype.UUID{Bytes: f.ID, Valid: true},
		Kind: string(f.Kind), Reason: string(f.Reason), Clock: string(f.Clock), ObservedAt: f.ObservedAt, SeenLate: f.Late,
		Namespace: pg.NullText(f.Namespace), VMI: pg.NullText(f.VMI), VMIUID: pg.NullText(f.VMIUID), Node: pg.NullText(f.Node),
		Migration: pg.NullText(f.Migration), MigrationUID: pg.NullText(f.MigrationUID),
		ObjectKind: string(f.Object.Kind), ObjectUID: pg.CleanText(f.Object.UID), ObjectVersion: pg.CleanText(f.Object.ResourceVersion),
		What: pg.CleanText(f.What), Value: pg.CleanText(f.Value), Evidence: pg.CleanText(f.Evidence),
	}
	if f.Detail != nil {
		text, err := pg.JSONText(f.Detail)
		if err != nil {
			return r, fmt.Errorf("detail of %s %s: %w", f.Kind, f.ID, err)
		}
		r.Detail = []byte(text)
	}
	return r, nil
}

// InsertFactsQuery inserts the facts of FactArgs that have no row yet. More may follow it, such as RETURNING.
const InsertFactsQuery = `
INSERT INTO evictrail.events (
    cluster, subject, occurred_at, id, kind, reason, clock, observed_at, seen_late, namespace, vmi, vmi_uid, node,
    migration, migration_uid, object_kind, object_uid, object_version, what, value, evidence, detail
)
SELECT @cluster, f.*
FROM unnest(
    @subject::text[], @occurred_at::timestamptz[], @id::uuid[], @kind::text[], @reason::text[], @clock::text[],
    @observed_at::timestamptz[], @seen_late::boolean[], @namespace::text[], @vmi::text[], @vmi_uid::text[],
    @node::text[], @migration::text[], @migration_uid::text[], @object_kind::text[], @object_uid::text[],
    @object_version::text[], @what::text[], @value::text[], @evidence::text[], @detail::jsonb[]
) AS f
ON CONFLICT DO NOTHING`

// InsertTogether is how many facts are written in one statement at most: on their way they take six times their memory.
const InsertTogether = 1000

// FactRows returns the rows of facts, in their order. The error is trail.ErrRefused, for a detail that cannot be JSON.
func FactRows(facts []trail.Fact) ([]*FactRow, error) {
	rows := make([]*FactRow, len(facts))
	for i := range facts {
		var err error
		if rows[i], err = rowFromFact(&facts[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// FactArgs returns the arguments of InsertFactsQuery.
func FactArgs(cluster string, rows []*FactRow) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{
		"cluster": cluster,
		"subject": extractColumn(rows, func(r *FactRow) string { return r.Subject }), "occurred_at": extractColumn(rows, func(r *FactRow) time.Time { return r.OccurredAt }),
		"id": extractColumn(rows, func(r *FactRow) pgtype.UUID { return r.ID }), "kind": extractColumn(rows, func(r *FactRow) string { return r.Kind }),
		"reason": extractColumn(rows, func(r *FactRow) string { return r.Reason }), "clock": extractColumn(rows, func(r *FactRow) string { return r.Clock }),
		"observed_at": extractColumn(rows, func(r *FactRow) time.Time { return r.ObservedAt }), "seen_late": extractColumn(rows, func(r *FactRow) bool { return r.SeenLate }),
		"namespace": extractColumn(rows, func(r *FactRow) *string { return r.Namespace }), "vmi": extractColumn(rows, func(r *FactRow) *string { return r.VMI }),
		"vmi_uid": extractColumn(rows, func(r *FactRow) *string { return r.VMIUID }), "node": extractColumn(rows, func(r *FactRow) *string { return r.Node }),
		"migration": extractColumn(rows, func(r *FactRow) *string { return r.Migration }), "migration_uid": extractColumn(rows, func(r *FactRow) *string { return r.MigrationUID }),
		"object_kind": extractColumn(rows, func(r *FactRow) string { return r.ObjectKind }), "object_uid": extractColumn(rows, func(r *FactRow) string { return r.ObjectUID }),
		"object_version": extractColumn(rows, func(r *FactRow) string { return r.ObjectVersion }), "what": extractColumn(rows, func(r *FactRow) string { return r.What }),
		"value": extractColumn(rows, func(r *FactRow) string { return r.Value }), "evidence": extractColumn(rows, func(r *FactRow) string { return r.Evidence }),
		"detail": extractColumn(rows, func(r *FactRow) []byte { return r.Detail }),
	}
}

// extractColumn takes one column out of rows, as unnest wants it.
func extractColumn[T any](rows []*FactRow, of func(*FactRow) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = of(r)
	}
	return out
}
