package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// partQuery asks how a cluster moves of which only a part is in the database; no row where all of it is, or nothing.
const partQuery = `
SELECT state
FROM evictrail.moves
WHERE cluster = @cluster
  AND state <> 'arrived'`

// queueMoveFence is checkWhole in a batch.
func queueMoveFence(batch *pgx.Batch, cluster string) {
	batch.Queue(partQuery, pgx.StrictNamedArgs{"cluster": cluster}).QueryRow(func(row pgx.Row) error {
		return scanMoveFence(row, cluster)
	})
}

// checkWhole makes sure that the whole of a cluster is in the database, or nothing: what is recorded or derived while
// it moves there, or away, would be lost or wrong. Its error is ErrUnavailable, so that what is seen waits in the
// spool.
func checkWhole(ctx context.Context, q querier, cluster string) error {
	return scanMoveFence(q.QueryRow(ctx, partQuery, pgx.StrictNamedArgs{"cluster": cluster}), cluster)
}

// scanMoveFence reads the answer to partQuery.
func scanMoveFence(row pgx.Row, cluster string) error {
	var state string
	err := row.Scan(&state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return pg.Explain("read whether the cluster moves", err)
	case state == "arriving":
		return fmt.Errorf("%w: cluster %q is being moved into this database, and only a part of it is here: "+
			"run the same `evictrail schema move-cluster` again until it has ended", pg.ErrUnavailable, cluster)
	}
	return fmt.Errorf("%w: cluster %q was moved to another database, and is being deleted here: "+
		"record it there (--database-url)", pg.ErrUnavailable, cluster)
}
