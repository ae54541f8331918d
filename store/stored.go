package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
)

const storedQuery = `
SELECT n.place
FROM unnest(@subjects::text[], @times::timestamptz[], @ids::uuid[]) WITH ORDINALITY AS n(subject, occurred_at, id, place)
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
	var at []int
	for i := range facts {
		if f := &facts[i]; f.Object.Kind == trail.ObjectRequest {
			subjects, times, ids = append(subjects, clean(f.Subject.String())), append(times, f.OccurredAt), append(ids, pgtype.UUID{Bytes: f.ID, Valid: true})
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return facts, nil
	}
	rows, err := s.pool.Query(ctx, storedQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "times": times, "ids": ids})
	if err != nil {
		return nil, explain("look for facts that are stored", err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, explain("look for facts that are stored", err)
	}
	known := make(map[int]bool, len(stored))
	for _, place := range stored {
		known[at[place-1]] = true
	}
	out := make([]trail.Fact, 0, len(facts)-len(stored))
	for i := range facts {
		if !known[i] {
			out = append(out, facts[i])
		}
	}
	return out, nil
}
