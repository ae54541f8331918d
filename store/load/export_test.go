package load

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// FactsThatMatter reads what is read to derive subjects since a time: all facts since then, and those from before it that say how they stood.
func (l Source) FactsThatMatter(ctx context.Context, subjects []trail.Subject, since time.Time) ([]trail.Fact, error) {
	args := pgx.StrictNamedArgs{"cluster": l.cluster, "subjects": tables.SubjectTexts(subjects), "from": slices.Repeat([]time.Time{since}, len(subjects))}
	return tables.FactsBy(ctx, l.db, l.cluster, factsThatMatterQuery, args)
}
