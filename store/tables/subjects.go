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

const markDirtyQuery = `
INSERT INTO evictrail.subjects AS s (cluster, subject, derived_at, dirty_since, version)
SELECT @cluster, n.subject, '-infinity', min(n.since), 1
FROM unnest(@subjects::text[], @since::timestamptz[]) AS n(subject, since)
GROUP BY n.subject
ORDER BY n.subject
ON CONFLICT (cluster, subject) DO UPDATE SET dirty_since = least(s.dirty_since, excluded.dirty_since), version = s.version + 1`

// MarkDirty notes that facts of subjects changed that occurred since a time of each, beside them: they are to be derived anew.
func MarkDirty(ctx context.Context, tx pgx.Tx, cluster string, subjects []string, since []time.Time) error {
	_, err := tx.Exec(ctx, markDirtyQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": subjects, "since": since})
	return pg.Explain("note what is to be derived", err)
}

// DirtyAllQuery marks all subjects of a @cluster as dirty @since a time.
const DirtyAllQuery = `
UPDATE evictrail.subjects
SET dirty_since = @since, version = version + 1
WHERE cluster = @cluster`
