package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// Facts of a VM are its own, the requests about its pods, and those about its migrations, which name the namespace only.
const recordedQuery = `
SELECT ` + tables.FactColumns + `, stored_at
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = ANY(ARRAY[@subject] || ARRAY(
    SELECT DISTINCT 'pod:' || l.namespace || '/' || (l.detail ->> 'pod')
    FROM evictrail.events AS l
    WHERE l.cluster = @cluster
      AND l.subject = @subject
      AND l.kind = 'launcher_pod'
  ))
  AND occurred_at BETWEEN @from AND @to
  AND (@everyone OR namespace = ANY(@seen))
UNION ALL
SELECT ` + tables.FactColumns + `, stored_at
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = @asked_in
  AND occurred_at BETWEEN @from AND @to
  AND (@everyone OR namespace = ANY(@seen))
  AND detail ->> 'name' IN (
    SELECT m.migration
    FROM evictrail.migrations AS m
    WHERE m.cluster = @cluster
      AND m.subject = @subject
  )
ORDER BY occurred_at, id
LIMIT @most`

// Recorded returns the facts of a VM or a node in a span of time, both ends included, in the order of their times: at most that many, the
// oldest first. Errors: *trail.AmbiguousError where no cluster is named and several know it, trail.ErrNotFound where none does.
func (s *Reader) Recorded(ctx context.Context, cluster string, of trail.Subject, from, to time.Time, most int) ([]trail.Recorded, error) {
	cluster, err := s.ClusterOf(ctx, cluster, of)
	if err != nil {
		return nil, err
	}
	namespace, _ := of.VM()
	args := s.addScopeArgs(pgx.StrictNamedArgs{
		"cluster": cluster, "subject": pg.CleanText(of.String()), "asked_in": pg.CleanText(trail.Subject{Kind: trail.SubjectNamespace, Name: namespace}.String()),
		"from": from, "to": to, "most": most,
	})
	var out []trail.Recorded
	err = s.runReadOnly(ctx, "read facts", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, recordedQuery, pg.Planned, args)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (trail.Recorded, error) { return recordedFromRow(cluster, row) })
		return err
	})
	return out, err
}

func recordedFromRow(cluster string, row pgx.CollectableRow) (trail.Recorded, error) {
	r := tables.NewFactReader(cluster)
	var storedAt time.Time
	if err := row.Scan(append(r.Columns(), &storedAt)...); err != nil {
		return trail.Recorded{}, err
	}
	f, err := r.Fact()
	return trail.Recorded{Fact: f, StoredAt: storedAt.UTC()}, err
}
