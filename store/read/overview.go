package read

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// isLost holds for the column of how a guest ended where nobody wanted that (trail.PlatformEndings, and failed), word for word as index placements_lost has it.
const isLost = `ended_by IN ('evicted', 'taint_manager', 'preempted', 'node_pressure', 'pod_gc', 'post_copy', 'hand_over', 'failed')`

const summariesQuery = `
SELECT
    c.cluster,
    c.alive_at,
    (SELECT count(*) FROM evictrail.loops AS l WHERE l.cluster = c.cluster AND l.closed_at IS NULL AND (@everyone OR ` + loopSeen + `)),
    (SELECT count(*) FROM evictrail.loops AS l WHERE l.cluster = c.cluster AND l.closed_at > c.alive_at - interval '1 day' AND l.closed_by <> 'refuted' AND (@everyone OR ` + loopSeen + `)),
    (SELECT count(*) FROM evictrail.evacuations AS e WHERE e.cluster = c.cluster AND e.ended_at IS NULL AND e.failed_attempts > 0 AND (@everyone OR namespace = ANY(@seen))),
    (SELECT count(*) FROM evictrail.drains WHERE drains.cluster = c.cluster AND ended_at IS NULL AND (@everyone OR ` + drainSeen + `)),
    EXISTS (SELECT 1 FROM evictrail.outages AS node_outages WHERE node_outages.cluster = c.cluster AND ended_at IS NULL AND (@everyone OR ` + outageSeen + `))
    OR EXISTS (
      SELECT 1
      FROM evictrail.placements AS p
      WHERE p.cluster = c.cluster
        AND p.to_at > c.alive_at - interval '1 hour'
        AND p.` + isLost + `
        AND (@everyone OR p.namespace = ANY(@seen))
    )
    OR EXISTS (
      SELECT 1
      FROM evictrail.evacuations AS e
      WHERE e.cluster = c.cluster
        AND e.ended_at > c.alive_at - interval '1 hour'
        AND e.outcome IN ('cancelled', 'vmi_gone')
        AND (@everyone OR e.namespace = ANY(@seen))
    )
    OR EXISTS (
      SELECT 1
      FROM evictrail.migrations AS m
      WHERE m.cluster = c.cluster
        AND m.finished_at > c.alive_at - interval '1 hour'
        AND m.outcome = 'failed'
        AND (@everyone OR m.namespace = ANY(@seen))
    )
    OR EXISTS (
      SELECT 1
      FROM evictrail.migrations AS m
      WHERE m.cluster = c.cluster
        AND m.finished_at > c.alive_at - interval '1 hour'
        AND m.benefit = 'harmed'
        AND (@everyone OR m.namespace = ANY(@seen))
    )
FROM evictrail.clusters AS c
WHERE @cluster = '' OR c.cluster = @cluster
ORDER BY c.cluster`

// Summaries returns each cluster that is recorded, in the order of their names.
func (s *Reader) Summaries(ctx context.Context) ([]trail.ClusterSummary, error) {
	cluster, within := s.scope.Cluster("")
	if !within {
		return nil, nil
	}
	var out []trail.ClusterSummary
	err := s.runReadOnly(ctx, "list clusters", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, summariesQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": cluster}))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c trail.ClusterSummary, err error) {
			err = row.Scan(&c.Name, &c.LastSeenAt, &c.Loops, &c.Closed, &c.Stuck, &c.Drains, &c.Marred)
			if c.LastSeenAt.Unix() == 0 { // only its thresholds are known
				c.LastSeenAt = time.Time{}
			}
			return c, err
		})
		return err
	})
	return out, err
}

// What the overview of a cluster shows, in addition to what its State reads.
const (
	loopsNowQuery = `
SELECT row_to_json(t)
FROM evictrail.loops AS t
WHERE cluster = @cluster
  AND closed_at IS NULL
  AND (@everyone OR ` + loopSeen + `)
ORDER BY opened_at
LIMIT 100`
	// Only loops that are shown are made into JSON: their evidence is long.
	loopsClosedQuery = `
SELECT row_to_json(t)
FROM (
  SELECT *
  FROM evictrail.loops
  WHERE cluster = @cluster
    AND opened_at > @from::timestamptz - interval '7 days'
    AND closed_at > @from
    AND closed_at <= @at
    AND closed_by <> 'refuted'
    AND (@everyone OR ` + loopSeen + `)
  ORDER BY closed_at DESC
  LIMIT 50
) AS t
ORDER BY closed_at DESC`
	stuckNowQuery = `
SELECT row_to_json(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND ended_at IS NULL
  AND failed_attempts > 0
  AND (@everyone OR namespace = ANY(@seen))
ORDER BY marked_at
LIMIT 100`
	drainsNowQuery = `
SELECT row_to_json(drains)
FROM evictrail.drains
WHERE cluster = @cluster
  AND ended_at IS NULL
  AND (@everyone OR ` + drainSeen + `)
ORDER BY started_at
LIMIT 50`
	// The view is computed only where a guest is outdated.
	waveNowQuery = `
SELECT row_to_json(w)
FROM evictrail_v1.upgrade_waves AS w
WHERE w.cluster = @cluster
  AND w.ended_at IS NULL
  AND @everyone
  AND EXISTS (SELECT 1 FROM evictrail.placements AS p WHERE p.cluster = @cluster AND p.outdated_since IS NOT NULL AND p.to_at IS NULL)
ORDER BY w.started_at DESC
LIMIT 1`
	blockersNowQuery = `
SELECT row_to_json(b)
FROM evictrail.drains AS d
JOIN evictrail.drain_blockers AS b ON b.cluster = d.cluster AND b.subject = d.subject AND b.drain_id = d.drain_id
WHERE d.cluster = @cluster
  AND d.ended_at IS NULL
  AND (@everyone OR b.namespace = ANY(@seen))
ORDER BY b.waiting_since
LIMIT 200`
	heldNowQuery = `
SELECT namespace, vmi, coalesce(node, ''), layer, coalesce(extract(epoch FROM effective), 0)::float8, until, count(*) OVER ()
FROM evictrail_v1.cooldowns_now
WHERE cluster = @cluster
  AND (@everyone OR namespace = ANY(@seen))
ORDER BY until DESC
LIMIT @most`
	gapsNowQuery = `
SELECT row_to_json(t)
FROM evictrail.gaps AS t
WHERE cluster = @cluster
  AND opened_at <= @at
  AND (closed_at IS NULL OR opened_at > @from OR closed_at > @at)
ORDER BY opened_at DESC
LIMIT 20`
	movesSinceQuery = `
SELECT date_bin(make_interval(secs => @step), finished_at, @from), trigger, outcome, count(*)
FROM evictrail.migrations
WHERE cluster = @cluster
  AND finished_at >= @from
  AND finished_at <= @at
  AND outcome IS NOT NULL
  AND (@everyone OR namespace = ANY(@seen))
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3`
	waitingNowQuery = `
SELECT row_to_json(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND ended_at IS NULL
  AND attempts = 0
  AND marked_at <= @until
  AND (@everyone OR namespace = ANY(@seen))
ORDER BY marked_at
LIMIT 100`
	recentQuery = `
SELECT row_to_json(t)
FROM evictrail.migrations AS t
WHERE cluster = @cluster
  AND finished_at > @from
  AND finished_at <= @at
  AND outcome IS NOT NULL
  AND (@everyone OR namespace = ANY(@seen))
ORDER BY finished_at DESC, migration_uid
LIMIT 200`
	unmovedQuery = `
SELECT row_to_json(t)
FROM (
  SELECT e.*, n.started_at, n.started_on
  FROM evictrail.evacuations AS e
  LEFT JOIN LATERAL (
    SELECT from_at AS started_at, node AS started_on
    FROM evictrail.placements AS n
    WHERE n.cluster = e.cluster
      AND n.subject = e.subject
      AND n.vmi_uid <> e.vmi_uid
      AND n.from_at >= date_trunc('second', e.ended_at)
      AND n.from_at <= @at
    ORDER BY n.from_at
    LIMIT 1
  ) AS n ON e.outcome = 'vmi_gone'
  WHERE e.cluster = @cluster
    AND e.ended_at > @from
    AND e.ended_at <= @at
    AND e.outcome IN ('cancelled', 'vmi_gone')
    AND (@everyone OR e.namespace = ANY(@seen))
  ORDER BY e.ended_at DESC, e.evacuation_id
  LIMIT 50
) AS t`
	drainsEndedQuery = `
SELECT row_to_json(drains)
FROM evictrail.drains
WHERE cluster = @cluster
  AND started_at > @from::timestamptz - interval '7 days'
  AND ended_at > @from
  AND ended_at <= @at
  AND (@everyone OR ` + drainSeen + `)
ORDER BY ended_at DESC
LIMIT 50`
	lostQuery = `
SELECT row_to_json(t)
FROM (
  SELECT p.*, n.started_at, n.started_on
  FROM evictrail.placements AS p
  LEFT JOIN LATERAL (
    SELECT from_at AS started_at, node AS started_on
    FROM evictrail.placements AS n
    WHERE n.cluster = p.cluster
      AND n.subject = p.subject
      AND n.from_at >= p.to_at
      AND n.from_at <= @at
      AND n.placement_id <> p.placement_id
    ORDER BY n.from_at
    LIMIT 1
  ) AS n ON true
  WHERE p.cluster = @cluster
    AND p.to_at > @from
    AND p.to_at <= @at
    AND p.` + isLost + `
    AND (@everyone OR p.namespace = ANY(@seen))
  ORDER BY p.to_at DESC, p.placement_id
  LIMIT 50
) AS t`
	outagesSinceQuery = `
SELECT to_jsonb(node_outages) || CASE WHEN ended_at > @at THEN '{"ended_at": null, "ended_by": null}'::jsonb ELSE '{}' END
FROM evictrail.outages AS node_outages
WHERE cluster = @cluster
  AND began_at > @from::timestamptz - interval '7 days'
  AND began_at <= @at
  AND (ended_at IS NULL OR ended_at > @from)
  AND (@everyone OR ` + outageSeen + `)
ORDER BY began_at DESC
LIMIT 50`
	recordedSinceQuery = `
SELECT observed_at
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'config_seen'
ORDER BY occurred_at
LIMIT 1`
	settingsChangedQuery = `
SELECT EXISTS (
  SELECT 1 FROM evictrail.events
  WHERE cluster = @cluster
    AND kind = 'config_seen'
    AND occurred_at > @from
    AND occurred_at <= @at
)`
)

// heldShown bounds how many VMs that are held back an overview names.
const heldShown = 50

// Overview reads how it stands with a cluster as of when it was last seen, or stood at a moment before, and what happened in a time before, counted in
// steps. A zero moment is now. Of a moment before it does not say what held VMs back, what drains waited for, and who had acknowledged something.
func (s *Reader) Overview(ctx context.Context, cluster string, at time.Time, back, step time.Duration) (trail.Overview, error) {
	o := trail.Overview{Cluster: cluster, Step: step}
	var err error
	if _, within := s.scope.Cluster(cluster); !within || cluster == "" {
		return o, fmt.Errorf("cluster %s: %w", cluster, trail.ErrNotFound)
	}
	if o.At, err = s.LastSeen(ctx, cluster, s.asOf()); err != nil {
		return o, err
	}
	if o.Past = !at.IsZero() && at.Before(o.At); o.Past {
		o.At = at
	}
	o.From = o.At.Add(-back)
	if o.Seen, err = s.loadCoverage(ctx, cluster); err != nil {
		return o, err
	}
	err = s.runReadOnly(ctx, "read the overview of the cluster", func(tx pgx.Tx) error {
		batch := s.overviewBatch(&o)
		s.queueRecent(batch, &o)
		changed := false
		batch.Queue(settingsChangedQuery, pgx.StrictNamedArgs{"cluster": cluster, "from": o.From, "at": o.At}).QueryRow(func(row pgx.Row) error { return row.Scan(&changed) })
		if err := tx.SendBatch(ctx, batch).Close(); err != nil || !changed && len(o.Stuck)+len(o.Waiting) == 0 {
			return err
		}
		history, err := loadSettings(ctx, tx, cluster)
		history = trail.SelectSettingsUntil(history, o.At)
		if n := len(history); n > 0 && history[n-1].KubeVirt != nil {
			o.KubeVirt = *history[n-1].KubeVirt // by which advice is chosen
		}
		if !s.scope.Limited() {
			o.Settings = trail.SelectSettingsSince(history, o.From)
		}
		return err
	})
	o.Loops, o.Closed, o.Drains, o.Gaps = s.scope.Loops(o.Loops), s.scope.Loops(o.Closed), s.scope.Drains(o.Drains), s.scope.Gaps(o.Gaps)
	o.DrainsEnded = s.scope.Drains(o.DrainsEnded)
	return o, err
}

// queueRecent queues the questions what happened of late, and which evacuations have not begun.
func (s *Reader) queueRecent(batch *pgx.Batch, o *trail.Overview) {
	since := s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "from": o.From, "at": o.At})
	batch.Queue(recentQuery, since).Query(pg.CollectJSON(&o.Recent))
	batch.Queue(unmovedQuery, since).Query(pg.CollectJSON(&o.Unmoved))
	batch.Queue(drainsEndedQuery, since).Query(pg.CollectJSON(&o.DrainsEnded))
	batch.Queue(lostQuery, since).Query(pg.CollectJSON(&o.Lost))
	batch.Queue(outagesSinceQuery, since).Query(pg.CollectJSON(&o.Outages))
	batch.Queue(recordedSinceQuery, pgx.StrictNamedArgs{"cluster": o.Cluster}).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		return row.Scan(&o.RecordedSince)
	}))
}

// overviewBatch are the questions of an overview.
func (s *Reader) overviewBatch(o *trail.Overview) *pgx.Batch {
	var batch pgx.Batch
	if o.Past {
		s.queueOpenThen(&batch, o)
	} else {
		s.queueOpenNow(&batch, o)
	}
	batch.Queue(loopsClosedQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "from": o.From, "at": o.At})).Query(pg.CollectJSON(&o.Closed))
	batch.Queue(gapsNowQuery, pgx.StrictNamedArgs{"cluster": o.Cluster, "from": o.From, "at": o.At}).Query(pg.CollectJSON(&o.Gaps))
	batch.Queue(movesSinceQuery, s.addScopeArgs(pgx.StrictNamedArgs{
		"cluster": o.Cluster, "from": o.From, "at": o.At, "step": o.Step.Seconds(),
	})).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var m trail.MoveCount
		err := row.Scan(&m.At, &m.Trigger, &m.Outcome, &m.Count)
		o.Moves = append(o.Moves, m)
		return err
	}))
	return &batch
}

// queueOpenNow queues the questions what is open now.
func (s *Reader) queueOpenNow(batch *pgx.Batch, o *trail.Overview) {
	args := s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster})
	batch.Queue(loopsNowQuery, args).Query(pg.CollectJSON(&o.Loops))
	batch.Queue(stuckNowQuery, args).Query(pg.CollectJSON(&o.Stuck))
	batch.Queue(waitingNowQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "until": o.At.Add(-trail.WaitingAfter)})).Query(pg.CollectJSON(&o.Waiting))
	batch.Queue(drainsNowQuery, args).Query(pg.CollectJSON(&o.Drains))
	batch.Queue(waveNowQuery, pgx.StrictNamedArgs{"cluster": o.Cluster, "everyone": !s.scope.Limited()}).Query(func(rows pgx.Rows) error {
		var waves []trail.UpgradeWave
		err := pg.CollectJSON(&waves)(rows)
		if len(waves) > 0 {
			o.Wave = &waves[0]
		}
		return err
	})
	batch.Queue(blockersNowQuery, args).Query(pg.CollectJSON(&o.Blockers))
	batch.Queue(acknowledgedNowQuery, args).Query(pg.CollectJSON(&o.Acknowledged))
	batch.Queue(heldNowQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "most": heldShown})).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var h trail.Hold
		var effective float64
		var all int
		err := row.Scan(&h.Namespace, &h.VMI, &h.Node, &h.Layer, &effective, &h.Until, &all)
		h.Effective = secondsToDuration(effective)
		o.Held, o.HeldMore = append(o.Held, h), max(all-heldShown, 0)
		return err
	}))
}

// queueOpenThen queues the questions what was open at a moment of the past.
func (s *Reader) queueOpenThen(batch *pgx.Batch, o *trail.Overview) {
	at := func(until time.Time) pgx.StrictNamedArgs {
		return s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "at": o.At, "until": until})
	}
	args := s.addScopeArgs(pgx.StrictNamedArgs{"cluster": o.Cluster, "at": o.At})
	batch.Queue(loopsThenQuery, args).Query(pg.CollectJSON(&o.Loops))
	batch.Queue(stuckThenQuery, at(o.At)).Query(pg.CollectJSON(&o.Stuck))
	batch.Queue(waitingThenQuery, at(o.At.Add(-trail.WaitingAfter))).Query(pg.CollectJSON(&o.Waiting))
	batch.Queue(drainsThenQuery, args).Query(pg.CollectJSON(&o.Drains))
}
