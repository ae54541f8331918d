package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

func init() { keptTogether, lockTries, lockPause = 20, 4, 50*time.Millisecond }

// Kept reads what would be kept of the facts of subjects before a boundary: what matters since a time, and how they stood then.
func Kept(ctx context.Context, db *pg.DB, cluster string, subjects []trail.Subject, since, boundary time.Time) (facts []trail.Fact, err error) {
	undo := errors.New("undo")
	err = db.InTx(ctx, "keep facts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING ALL)"); err != nil {
			return err
		}
		args := pgx.StrictNamedArgs{
			"cluster": cluster, "boundary": boundary, "subjects": tables.SubjectTexts(subjects), "since": slices.Repeat([]time.Time{since}, len(subjects)),
		}
		if _, err := tx.Exec(ctx, keepFactsQuery, args); err != nil {
			return err
		}
		var err error
		if facts, err = tables.FactsBy(ctx, tx, cluster, "SELECT "+tables.FactColumns+" FROM evictrail.events_next"); err != nil {
			return err
		}
		return undo
	})
	if errors.Is(err, undo) {
		err = nil
	}
	return facts, err
}
