package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// limitsQuery asks for the migrations of a cluster that were created since a time, the newest first.
const limitsQuery = `
SELECT coalesce(source_node, ''), created_at, scheduling_at, finished_at, coalesce(wait_reason, '')
FROM evictrail.migrations
WHERE cluster = @cluster
  AND created_at >= @since
ORDER BY created_at DESC
LIMIT 20000`

// Limits reports, by cluster, whether KubeVirt's limits fit the migrations of the last forecast.LimitsLookBack; nothing to a caller
// who may not see all of a cluster, as slots are shared by all.
func (s *Reader) Limits(ctx context.Context, cluster string) ([]forecast.Limits, error) {
	if s.scope.Limited() {
		return nil, nil
	}
	clusters, err := s.Signs(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var out []forecast.Limits
	for _, c := range clusters {
		l, err := s.weighLimits(ctx, c.Cluster)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// weighLimits reports whether the limits of a cluster fit, as of when it was last seen.
func (s *Reader) weighLimits(ctx context.Context, cluster string) (l forecast.Limits, err error) {
	at, err := s.LastSeen(ctx, cluster, s.asOf())
	if err != nil {
		return l, err
	}
	t := forecast.Traffic{Cluster: cluster, From: at.Add(-forecast.LimitsLookBack), To: at}
	if err := s.runReadOnly(ctx, "weigh limits", func(tx pgx.Tx) error { return loadTraffic(ctx, tx, &t) }); err != nil {
		return l, pg.Explain("weigh limits", err)
	}
	l = t.Weigh()
	l.Recorder, l.NotObserved, err = s.recordingOf(ctx, cluster, true, t.From, t.To)
	return l, err
}

// loadTraffic fills in what migrations of a cluster asked of the limits, and these.
func loadTraffic(ctx context.Context, tx pgx.Tx, t *forecast.Traffic) error {
	inForce, err := loadKubeVirt(ctx, tx, t.Cluster)
	if err != nil {
		return err
	}
	t.PerCluster, t.PerNode = inForce.ParallelLimits()
	args := pgx.StrictNamedArgs{"cluster": t.Cluster, "since": t.From}
	t.Uses, err = collectRows(ctx, tx, limitsQuery, args, func(row pgx.CollectableRow) (forecast.SlotUse, error) {
		var m trail.Migration
		var scheduling, finished *time.Time
		err := row.Scan(&m.SourceNode, &m.CreatedAt, &scheduling, &finished, &m.WaitReason)
		m.SchedulingAt, m.FinishedAt = pg.TimeOrZero(scheduling), pg.TimeOrZero(finished)
		return forecast.NewSlotUse(&m), err
	})
	return err
}
