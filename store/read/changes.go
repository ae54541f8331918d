package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const changesQuery = `
SELECT DISTINCT changed_at
FROM evictrail.timeline
WHERE changed_at > now() - make_interval(secs => @within)
  AND (@cluster = '' OR cluster = @cluster)
  AND (@vmi = '' OR namespace = @namespace AND vmi = @vmi)
  AND (@node = '' OR node = @node)
  AND (@everyone OR namespace = ANY(@seen))
LIMIT 1000`

// Changes returns the times of the transactions, by the database's clock, that changed the rows about a VM, a node or a whole cluster
// within a time before now, in no order. Who asks again while that time lasts misses none, whichever began or ended first.
func (s *Reader) Changes(ctx context.Context, q trail.Query, back time.Duration) ([]time.Time, error) {
	cluster, within := s.scope.Cluster(q.Cluster)
	if !within {
		return nil, nil
	}
	if s.standby.Answered() { // what changed within that time may have come only now
		back += time.Duration(s.standby.LagSeconds * float64(time.Second))
	}
	var out []time.Time
	err := s.runReadOnly(ctx, "look for changes", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, changesQuery, pg.Planned, s.addScopeArgs(pgx.StrictNamedArgs{
			"within": back.Seconds(), "cluster": cluster, "namespace": q.Namespace, "vmi": q.VMI, "node": q.Node,
		}))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		return err
	})
	return out, err
}
