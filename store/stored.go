package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
)

const storedQuery = `
SELECT n.id
FROM unnest(@subjects::text[], @times::timestamptz[], @ids::uuid[]) AS n(subject, occurred_at, id)
WHERE EXISTS (
  SELECT
  FROM evictrail.events AS e
  WHERE e.cluster = @cluster
    AND e.subject = n.subject
    AND e.occurred_at = n.occurred_at
    AND e.id = n.id
  OFFSET 0
)`

// unstored leaves out facts that are stored already, where they may come in large numbers: an API server sends a whole batch of audit events again when it was
// not answered in time, and a log is read again. So nothing is held and read for them.
func (s *Store) unstored(ctx context.Context, cluster string, facts []trail.Fact) ([]trail.Fact, error) {
	var subjects []string
	var times []time.Time
	var ids []pgtype.UUID
	for i := range facts {
		if f := &facts[i]; f.Object.Kind == trail.ObjectRequest {
			subjects, times, ids = append(subjects, clean(f.Subject.String())), append(times, f.OccurredAt), append(ids, pgtype.UUID{Bytes: f.ID, Valid: true})
		}
	}
	if len(ids) == 0 {
		return facts, nil
	}
	rows, err := s.pool.Query(ctx, storedQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "times": times, "ids": ids})
	if err != nil {
		return nil, explain("look for facts that are stored", err)
	}
	stored, err := collectIDs(rows)
	if err != nil {
		return nil, explain("look for facts that are stored", err)
	}
	if len(stored) == 0 {
		return facts, nil
	}
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return stored[f.ID] }), nil
}

// collectIDs reads rows of the ID of a fact each.
func collectIDs(rows pgx.Rows) (map[trail.FactID]bool, error) {
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	out := make(map[trail.FactID]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out, err
}
