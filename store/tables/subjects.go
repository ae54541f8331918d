package tables

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// SubjectTexts returns subjects as columns have them, in their order.
func SubjectTexts(subjects []trail.Subject) []string {
	out := make([]string, len(subjects))
	for i, subject := range subjects {
		out[i] = pg.CleanText(subject.String())
	}
	return out
}

// SortedSubjects returns the keys of a map in the order of their texts.
func SortedSubjects[V any](of map[trail.Subject]V) []trail.Subject {
	return slices.SortedFunc(maps.Keys(of), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) })
}

// A subject's version counts how often it was marked as dirty. Its row is locked until the transaction ends, so versions are in the order of commits; rows are locked in
// order, so that two that mark the same wait for each other instead of deadlocking.
const markDirtyQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, dirty_since, version)
SELECT @cluster, n.subject, '-infinity', min(n.since), 1
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
GROUP BY n.subject
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET dirty_since = least(s.dirty_since, excluded.dirty_since), version = s.version + 1
RETURNING subject, version`

// QueueMarkDirty marks subjects, as columns have them, as dirty since the earliest time that stands beside each: they are to be derived again. The answer is the subjects,
// each once, with their versions. The leader waits for these rows during that time, so it is best done last in a transaction.
func QueueMarkDirty(batch *pgx.Batch, cluster string, subjects []string, since []time.Time) *pgx.QueuedQuery {
	return batch.Queue(markDirtyQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since})
}

const markAllDirtyQuery = `
UPDATE evictrail.subjects
SET dirty_since = @since, version = version + 1
WHERE cluster = @cluster`

// MarkAllDirty marks all subjects of a cluster as dirty since ever: everything is to be derived again.
func MarkAllDirty(ctx context.Context, tx pgx.Tx, cluster string) error {
	_, err := tx.Exec(ctx, markAllDirtyQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": pg.Beginning})
	return pg.Explain("note what is to be derived", err)
}
