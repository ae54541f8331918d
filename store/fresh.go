package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

const (
	// lastRecordedQuery reads how aspects of objects were last recorded.
	lastRecordedQuery = `
SELECT a.object_kind, a.object_uid, a.what, a.value, a.object_version, a.subject, a.namespace, a.vmi, a.vmi_uid, a.node, a.migration, a.pod, a.fact_id
FROM unnest(@kinds::text[], @uids::text[], @whats::text[]) AS n(kind, uid, what)
JOIN evictrail.aspects AS a ON a.cluster = @cluster AND a.object_kind = n.kind AND a.object_uid = n.uid AND a.what = n.what`
	// sameAspectQuery reads what was recorded of aspects of objects where the last does not say enough: it is newer than the fact, or gone with its object. What counts is
	// near the fact, but for what a list says, as nobody knows since when that is so. Counters are compared with what all replicas counted.
	sameAspectQuery = `
SELECT f.*
FROM unnest(@subjects::text[], @kinds::text[], @uids::text[], @whats::text[], @versions::text[], @since::timestamptz[], @listed::boolean[])
  AS n(subject, kind, uid, what, version, since, listed)
LEFT JOIN evictrail.aspects AS a ON a.cluster = @cluster AND a.object_kind = n.kind AND a.object_uid = n.uid AND a.what = n.what
CROSS JOIN LATERAL (
  SELECT ` + tables.FactColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = n.subject
    AND occurred_at >= CASE WHEN n.listed AND a.what IS NOT NULL THEN '-infinity' ELSE n.since END
    AND object_uid = n.uid
    AND what = n.what
  OFFSET 0
) AS f
WHERE a.what IS NULL
   OR a.fact_id IS NULL
   OR n.kind = 'Descheduler'
   OR (length(a.object_version), a.object_version) > (length(n.version), n.version)`
)

// sameWithin is how far apart, at the most, replicas see one change.
const sameWithin = time.Hour

// filterUnrecorded returns those of some facts that say something new, with what counters grew that was not counted yet (trail.Fresh). Until the transaction ends no other
// replica records. It sends what is to be checked first, too.
func filterUnrecorded(ctx context.Context, tx pg.Sender, cluster string, facts []trail.Fact, check func(*pgx.Batch)) ([]trail.Fact, error) {
	var subjects, kinds, uids, whats, versions []string
	var since []time.Time
	var listed []bool
	for i := range facts {
		if f := &facts[i]; f.Object.Kind != trail.ObjectRequest { // whose times are those of the API server, for all replicas
			from := f.OccurredAt.Add(-sameWithin)
			if f.Object.Kind == trail.ObjectSource { // a gap may have opened long ago
				from = pg.Beginning
			}
			subjects, kinds, uids = append(subjects, pg.CleanText(f.Subject.String())), append(kinds, string(f.Object.Kind)), append(uids, pg.CleanText(f.Object.UID))
			whats, versions = append(whats, pg.CleanText(f.What)), append(versions, pg.CleanText(f.Object.ResourceVersion))
			since, listed = append(since, from), append(listed, f.Late)
		}
	}
	var stored []trail.Fact
	var batch pgx.Batch
	batch.Queue(tables.RecordAloneQuery, pgx.StrictNamedArgs{"cluster": cluster})
	check(&batch)
	if len(kinds) > 0 {
		batch.Queue(sameAspectQuery, pgx.StrictNamedArgs{
			"cluster": cluster, "subjects": subjects, "kinds": kinds, "uids": uids, "whats": whats, "versions": versions, "since": since, "listed": listed,
		}).Query(func(rows pgx.Rows) error {
			more, err := tables.CollectFacts(rows, cluster)
			stored = append(stored, more...)
			return err
		})
		// After the facts themselves, as of two at one version the first counts, and an aspect does not say whether it comes from a list.
		batch.Queue(lastRecordedQuery, pgx.StrictNamedArgs{"cluster": cluster, "kinds": kinds, "uids": uids, "whats": whats}).Query(func(rows pgx.Rows) error {
			return eachAspect(rows, func(f trail.Fact) { stored = append(stored, f) })
		})
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, pg.Explain("read what is recorded", err)
	}
	return trail.Fresh(slices.Values(stored), facts), nil
}
