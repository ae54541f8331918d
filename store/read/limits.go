package read

import (
	"context"
	"slices"
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
	cluster, within := s.scope.Cluster(cluster)
	if !within || s.scope.Limited() {
		return nil, nil
	}
	var out []forecast.Limits
	err := s.runReadOnly(ctx, "weigh limits", func(tx pgx.Tx) error {
		out = nil
		clusters, err := loadTexts(ctx, tx, clustersNamedQuery, pgx.StrictNamedArgs{"cluster": cluster})
		if err != nil {
			return err
		}
		for _, name := range clusters {
			t, err := s.loadTraffic(ctx, tx, name)
			if err != nil {
				return err
			}
			out = append(out, t.Weigh())
		}
		return nil
	})
	if err != nil {
		return nil, pg.Explain("weigh limits", err)
	}
	for i := range out {
		if out[i].Recorder, out[i].NotObserved, err = s.recordingOf(ctx, out[i].Cluster, true, out[i].From, out[i].To); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loadTraffic returns what migrations of a cluster asked of the limits, as of when it was last seen.
func (s *Reader) loadTraffic(ctx context.Context, tx pgx.Tx, cluster string) (forecast.Traffic, error) {
	at, err := s.LastSeen(ctx, cluster, s.asOf())
	if err != nil {
		return forecast.Traffic{}, err
	}
	t := forecast.Traffic{Cluster: cluster, From: at.Add(-forecast.LimitsLookBack), To: at}
	settings, err := loadSettings(ctx, tx, cluster)
	if err != nil {
		return t, err
	}
	inForce := &trail.KubeVirtSettings{}
	for _, of := range slices.Backward(settings) {
		if of.KubeVirt != nil {
			inForce = of.KubeVirt
			break
		}
	}
	t.PerCluster, t.PerNode = inForce.ParallelLimits()
	t.Uses, err = collectRows(ctx, tx, limitsQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": t.From}, func(row pgx.CollectableRow) (forecast.SlotUse, error) {
		var m trail.Migration
		var scheduling, finished *time.Time
		err := row.Scan(&m.SourceNode, &m.CreatedAt, &scheduling, &finished, &m.WaitReason)
		m.SchedulingAt, m.FinishedAt = pg.TimeOrZero(scheduling), pg.TimeOrZero(finished)
		return forecast.NewSlotUse(&m), err
	})
	return t, err
}
