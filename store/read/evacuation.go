package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const mostTriedQuery = `
SELECT namespace, vmi
FROM evictrail_v1.evacuations
WHERE cluster = @cluster
ORDER BY failed_attempts DESC, marked_at
LIMIT 1`

// MostTried names the VM of a cluster whose evacuation failed most often; trail.ErrNotFound where there is no evacuation.
func (s Whole) MostTried(ctx context.Context, cluster string) (namespace, vmi string, err error) {
	err = s.db.QueryRow(ctx, mostTriedQuery, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&namespace, &vmi)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", fmt.Errorf("evacuations of cluster %s: %w", cluster, trail.ErrNotFound)
	}
	return namespace, vmi, pg.Explain("find an evacuation", err)
}
