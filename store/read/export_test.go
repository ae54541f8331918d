package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// Simulated histories last hours: with this the facts of neighbours begin within them.
func init() {
	neighboursBefore = func(trail.Thresholds) time.Duration { return 5 * time.Minute }
}

// IsLost is the condition by which lost guests are read.
const IsLost = isLost

// Read lets tests look at the transactions of readers.
func (s *Reader) Read(ctx context.Context, run func(pgx.Tx) error) error {
	return s.runReadOnly(ctx, "look", run)
}

// Neighbours reads the facts of the VMs that were on a node at a moment, as they matter to what happened since a time.
func (s *Reader) Neighbours(ctx context.Context, cluster, node string, since, at time.Time) ([]trail.Fact, error) {
	return tables.FactsBy(ctx, s.db, cluster, neighboursQuery, pgx.StrictNamedArgs{
		"cluster": cluster, "but": "", "nodes": []string{node}, "from": []time.Time{since}, "to": []time.Time{at}, "began": []time.Time{since}, "ended": []time.Time{at},
		"guests": []bool{true}, "at": at, "everywhere": false, "before": time.Duration(0), "slack": tellingSlack,
	})
}
