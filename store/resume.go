package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// aspectRow is one row of evictrail.aspects.
type aspectRow struct {
	ObjectKind    string  `json:"object_kind"`
	ObjectUID     string  `json:"object_uid"`
	What          string  `json:"what"`
	Value         string  `json:"value"`
	ObjectVersion string  `json:"object_version"`
	Subject       string  `json:"subject"`
	Namespace     *string `json:"namespace"`
	VMI           *string `json:"vmi"`
	VMIUID        *string `json:"vmi_uid"`
	Node          *string `json:"node"`
	Migration     *string `json:"migration"`
	Pod           *string `json:"pod"`
	FactID        string  `json:"fact_id"`
}

// A resourceVersion is a number written in decimal: the longer one is the larger one.
const keepAspectsQuery = `
INSERT INTO evictrail.aspects AS a (
    cluster, object_kind, object_uid, what, value, object_version, subject, namespace, vmi, vmi_uid, node, migration, pod, fact_id
)
SELECT
    @cluster, object_kind, object_uid, what, value, object_version, subject, namespace, vmi, vmi_uid, node, migration, pod, fact_id
FROM jsonb_to_recordset(@rows::jsonb) AS r(
    object_kind text, object_uid text, what text, value text, object_version text, subject text, namespace text,
    vmi text, vmi_uid text, node text, migration text, pod text, fact_id uuid
)
ON CONFLICT (cluster, object_kind, object_uid, what) DO UPDATE
SET value = excluded.value, object_version = excluded.object_version, fact_id = excluded.fact_id,
    vmi_uid = coalesce(excluded.vmi_uid, a.vmi_uid), node = excluded.node
WHERE (length(excluded.object_version), excluded.object_version) >= (length(a.object_version), a.object_version)`

const dropAspectsQuery = `
DELETE FROM evictrail.aspects
WHERE cluster = @cluster
  AND (object_kind, object_uid) IN (SELECT * FROM unnest(@kinds::text[], @uids::text[]))`

// keepAspects brings the state in which each object was last recorded up to date, and forgets objects that are gone.
// Of Kubernetes Events and requests nothing is kept: their facts carry in their identity what they say.
func keepAspects(batch *pgx.Batch, cluster string, facts []trail.Fact) {
	last := map[[3]string]aspectRow{}
	var kinds, uids []string
	for i := range facts {
		switch f := &facts[i]; {
		case !f.Object.Kind.Remembered():
		case f.What == trail.WhatGone:
			kinds, uids = append(kinds, string(f.Object.Kind)), append(uids, f.Object.UID)
		default:
			r := rowFromAspect(f)
			last[[3]string{r.ObjectKind, r.ObjectUID, r.What}] = r
		}
	}
	rows := make([]aspectRow, 0, len(last))
	for _, r := range last {
		rows = append(rows, r)
	}
	if len(rows) > 0 {
		batch.Queue(keepAspectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "rows": rows})
	}
	if len(uids) > 0 {
		batch.Queue(dropAspectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "kinds": kinds, "uids": uids})
	}
}

func rowFromAspect(f *trail.Fact) aspectRow {
	r := aspectRow{
		ObjectKind: string(f.Object.Kind), ObjectUID: pg.CleanText(f.Object.UID), What: pg.CleanText(f.What), Value: pg.CleanText(f.Value),
		ObjectVersion: pg.CleanText(f.Object.ResourceVersion), Subject: pg.CleanText(f.Subject.String()), Namespace: pg.NullText(f.Namespace),
		VMI: pg.NullText(f.VMI), VMIUID: pg.NullText(f.VMIUID), Node: pg.NullText(f.Node), Migration: pg.NullText(f.Migration),
		FactID: f.ID.String(),
	}
	if d, ok := f.Detail.(*trail.PodDetail); ok {
		r.Pod = pg.NullText(d.Pod)
	}
	return r
}

const resumeQuery = `
SELECT object_kind, object_uid, what, value, object_version, subject, namespace, vmi, vmi_uid, node, migration, pod, fact_id
FROM evictrail.aspects
WHERE cluster = @cluster`

// Resume hands the state in which the objects of a cluster were last recorded to resume, such as Tracker.Resume of a new tracker. Each row becomes
// as much of a fact as that reads, one after the other: there may be hundreds of thousands. After an error a part of them was handed over.
func (s *Store) Resume(ctx context.Context, cluster string, resume func(trail.Fact)) error {
	rows, err := s.DB.Query(ctx, resumeQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return pg.Explain("resume", err)
	}
	return pg.Explain("resume", eachAspect(rows, resume))
}

// eachAspect takes rows of resumeQuery one after the other.
func eachAspect(rows pgx.Rows, take func(trail.Fact)) error {
	var r aspectReader
	pg.ShareTexts(r.columnTargets())
	_, err := pgx.ForEachRow(rows, r.columnTargets(), func() error {
		f, err := r.buildFact()
		if err == nil {
			take(f)
		}
		return err
	})
	return err
}

// aspectReader reads rows of resumeQuery.
type aspectReader struct {
	objectKind, objectUID, what, value, objectVersion, subject, namespace, vmi, vmiUID, node, migration, pod pg.Text
	factID                                                                                                   *[16]byte
}

// columnTargets returns where to read those of resumeQuery into.
func (r *aspectReader) columnTargets() []any {
	return []any{
		&r.objectKind, &r.objectUID, &r.what, &r.value, &r.objectVersion, &r.subject, &r.namespace, &r.vmi, &r.vmiUID, &r.node, &r.migration, &r.pod, &r.factID,
	}
}

// buildFact returns as much of a fact as the row that was read last has.
func (r *aspectReader) buildFact() (trail.Fact, error) {
	subject, err := trail.ParseSubject(r.subject.Last)
	f := trail.Fact{
		Subject: subject, What: r.what.Last, Value: r.value.Last, Namespace: r.namespace.Last, VMI: r.vmi.Last, VMIUID: r.vmiUID.Last,
		Node: r.node.Last, Migration: r.migration.Last,
		Object: trail.Object{Kind: trail.ObjectKind(r.objectKind.Last), UID: r.objectUID.Last, ResourceVersion: r.objectVersion.Last},
	}
	if r.factID != nil {
		f.ID = *r.factID
	}
	if r.pod.Last != "" {
		f.Detail = &trail.PodDetail{Pod: r.pod.Last}
	}
	return f, err
}
