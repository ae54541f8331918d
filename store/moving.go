package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// partQuery asks how a cluster moves of which only a part is in the database; no row where all of it is, or nothing.
const partQuery = `
SELECT state
FROM evictrail.moves
WHERE cluster = @cluster
  AND state <> 'arrived'`

// queueWhole is checkWhole in a batch of a transaction that records, and tables.QueueSettled: one statement asks for both.
func queueWhole(batch *pgx.Batch, cluster string, settled **time.Time) {
	const query = tables.SettledQuery + `, (` + partQuery + `)`
	batch.Queue(query, pgx.StrictNamedArgs{"cluster": cluster}).QueryRow(func(row pgx.Row) error {
		var state *string
		if err := row.Scan(settled, &state); err != nil || state == nil {
			return err
		}
		return newMoveError(cluster, *state)
	})
}

// checkWhole makes sure that the whole of a cluster is in the database, or nothing: what is recorded or derived while
// it moves there, or away, would be lost or wrong. Its error is ErrUnavailable, so that what is seen waits in the
// spool.
func checkWhole(ctx context.Context, q querier, cluster string) error {
	var state string
	err := q.QueryRow(ctx, partQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return pg.Explain("read whether the cluster moves", err)
	}
	return newMoveError(cluster, state)
}

// newMoveError says what to do about a cluster of which only a part is here.
func newMoveError(cluster, state string) error {
	if state == "arriving" {
		return fmt.Errorf("%w: cluster %q is being moved into this database, and only a part of it is here: "+
			"run the same `evictrail schema move-cluster` again until it has ended", pg.ErrUnavailable, cluster)
	}
	return fmt.Errorf("%w: cluster %q was moved to another database, and is being deleted here: "+
		"record it there (--database-url)", pg.ErrUnavailable, cluster)
}
