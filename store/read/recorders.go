package read

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

const (
	signsQuery = `
SELECT cluster, nullif(alive_at, to_timestamp(0)), last_event_at, replayed
FROM evictrail.clusters
WHERE @cluster = '' OR cluster = @cluster
ORDER BY cluster`
	reportsQuery = `
SELECT cluster, replica, alive_at, started_at, state, since, why, unseen, leads, leader_known, leader_since, leader_problem, derived_at, failure
FROM evictrail.recorders
WHERE @cluster = '' OR cluster = @cluster
ORDER BY cluster, replica`
)

// gapsShown is the maximum number of gaps that an answer names.
const gapsShown = 10

// Recorders returns the state of the recorder of each cluster, or of the named one, ordered by name. With a non-zero from, each has the gaps
// that overlap the period from..to; a zero to is no bound. With an error the states are those that this process knows without the database.
func (s *Reader) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	cluster, within := s.scope.Cluster(cluster)
	if !within {
		return nil, nil
	}
	signs, err := s.Signs(ctx, cluster)
	if overlay := s.own.overlay.Load(); overlay != nil {
		signs = (*overlay)(signs, cluster)
	}
	now := s.asOf()
	out := make([]trail.RecorderStatus, len(signs))
	for i := range signs {
		signs[i].Standby = s.standby
		out[i] = signs[i].Status(now)
		if err == nil && !from.IsZero() {
			out[i].NotObserved, err = s.Unobserved(ctx, signs[i].Cluster, from, to, gapsShown)
		}
	}
	return out, err
}

// recordingOf returns what an answer about a period says of its recording: the gaps that overlap the period and, for an answer about the
// present, the state of the recorder.
func (s *Reader) recordingOf(ctx context.Context, cluster string, now bool, from, to time.Time) (note *trail.RecorderNote, gaps []trail.Gap, err error) {
	if now {
		to = time.Time{} // also those that opened after the last observation
	}
	if gaps, err = s.Unobserved(ctx, cluster, from, to, gapsShown); err != nil || !now {
		return nil, gaps, err
	}
	all, err := s.Recorders(ctx, cluster, time.Time{}, time.Time{})
	if err != nil || len(all) == 0 {
		return nil, gaps, err
	}
	return all[0].Note(), gaps, nil
}

// Signs reads what is known of the recording of each cluster, or of the one that is named, in the order of their names.
func (s *Reader) Signs(ctx context.Context, cluster string) ([]trail.ClusterSigns, error) {
	cluster, within := s.scope.Cluster(cluster)
	if !within {
		return nil, nil
	}
	args := pgx.StrictNamedArgs{"cluster": cluster}
	var out []trail.ClusterSigns
	place := map[string]int{}
	var batch pgx.Batch
	batch.Queue(signsQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var c trail.ClusterSigns
		var alive, last *time.Time
		if err := row.Scan(&c.Cluster, &alive, &last, &c.Replayed); err != nil {
			return err
		}
		c.AliveAt, c.LastEventAt = pg.TimeOrZero(alive), pg.TimeOrZero(last)
		place[c.Cluster], out = len(out), append(out, c)
		return nil
	}))
	batch.Queue(reportsQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		name, r, err := reportFromRow(row)
		if err != nil {
			return err
		}
		if _, known := place[name]; !known {
			place[name], out = len(out), append(out, trail.ClusterSigns{Cluster: name})
		}
		c := &out[place[name]]
		c.Replicas = append(c.Replicas, r)
		return nil
	}))
	err := s.runReadOnly(ctx, "read how it stands with recorders", func(tx pgx.Tx) error {
		out, place = nil, map[string]int{}
		return tx.SendBatch(ctx, &batch).Close()
	})
	slices.SortFunc(out, func(a, b trail.ClusterSigns) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out, err
}

func reportFromRow(row pgx.CollectableRow) (cluster string, r trail.ReplicaReport, err error) {
	var state string
	var derived *time.Time
	err = row.Scan(&cluster, &r.Replica, &r.AliveAt, &r.StartedAt, &state, &r.Since, &r.Why, &r.Unseen,
		&r.Leader.Leads, &r.Leader.Known, &r.Leader.Since, &r.Leader.Problem, &derived, &r.Leader.Failure)
	r.State, r.Leader.DerivedAt = trail.RecorderState(state), pg.TimeOrZero(derived)
	r.AliveAt, r.StartedAt, r.Since, r.Leader.Since = r.AliveAt.UTC(), r.StartedAt.UTC(), r.Since.UTC(), r.Leader.Since.UTC()
	return cluster, r, err
}

const unobservedQuery = `
SELECT row_to_json(t)
FROM (
  SELECT *
  FROM evictrail.gaps
  WHERE cluster = @cluster
    AND opened_at < coalesce(@to::timestamptz, 'infinity')
    AND coalesce(closed_at, 'infinity') > coalesce(@from::timestamptz, '-infinity')
  ORDER BY opened_at DESC
  LIMIT @most
) AS t
ORDER BY opened_at DESC`

// Unobserved reads the gaps of a cluster that overlap a time, the newest first, at most so many. A zero time is no bound.
func (s *Reader) Unobserved(ctx context.Context, cluster string, from, to time.Time, most int) ([]trail.Gap, error) {
	cluster, within := s.scope.Cluster(cluster)
	if !within || cluster == "" {
		return nil, nil
	}
	var out []trail.Gap
	err := s.runReadOnly(ctx, "read gaps", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, unobservedQuery, pgx.StrictNamedArgs{"cluster": cluster, "from": pg.NullTime(from), "to": pg.NullTime(to), "most": most})
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[trail.Gap])
		return err
	})
	return s.scope.Gaps(out), err
}

// The opening fact of a gap has its key.
const openGapsQuery = `
SELECT g.source, e.detail ->> 'key', g.opened_at, g.cause, coalesce(g.detail, '')
FROM evictrail.gaps AS g
JOIN evictrail.events AS e ON e.cluster = g.cluster AND e.subject = g.subject AND e.occurred_at = g.opened_at AND e.id = g.gap_id
WHERE g.cluster = @cluster
  AND g.closed_at IS NULL`

// OpenGaps reads the gaps of a cluster that are not over, as the collector reports them.
func (s *Reader) OpenGaps(ctx context.Context, cluster string) ([]trail.GapReport, error) {
	const doing = "read open gaps"
	rows, err := s.db.Query(ctx, openGapsQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, pg.Explain(doing, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g trail.GapReport, err error) {
		err = row.Scan(&g.Source, &g.Key, &g.OpenedAt, &g.Cause, &g.Detail)
		g.OpenedAt = g.OpenedAt.UTC()
		return g, err
	})
	return out, pg.Explain(doing, err)
}
