package read

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// What is open in a cluster, and what moved and failed in the last hours. Each reads an index that holds little more than
// what it returns.
const (
	guestsQuery = `
SELECT node, count(*)
FROM evictrail.placements
WHERE cluster = @cluster
  AND to_at IS NULL
GROUP BY node`
	openEvacuationsQuery = `
SELECT row_to_json(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND ended_at IS NULL`
	openMigrationsQuery = `
SELECT row_to_json(t)
FROM evictrail.migrations AS t
WHERE cluster = @cluster
  AND finished_at IS NULL`
	movedQuery = `
SELECT row_to_json(t)
FROM evictrail.migrations AS t
WHERE cluster = @cluster
  AND finished_at > @now::timestamptz - interval '12 hours'
  AND finished_at <= @now
  AND outcome = 'succeeded'
  AND (namespace, vmi) IN (
    SELECT namespace, vmi
    FROM evictrail.migrations
    WHERE cluster = @cluster
      AND finished_at > @now::timestamptz - interval '12 hours'
      AND outcome = 'succeeded'
      AND trigger = 'descheduler'
    GROUP BY namespace, vmi
    HAVING count(*) > 1
  )`
	movesQuery = `
SELECT namespace, vmi, trigger, count(*)
FROM evictrail.migrations
WHERE cluster = @cluster
  AND finished_at > @now::timestamptz - interval '24 hours'
  AND finished_at <= @now
  AND outcome = 'succeeded'
GROUP BY namespace, vmi, trigger
HAVING count(*) >= 3`
	failingQuery = `
SELECT
    coalesce(failure_class, 'unknown'),
    count(DISTINCT subject) FILTER (WHERE finished_at > @now::timestamptz - interval '1 hour'),
    count(DISTINCT subject)
FROM evictrail.migrations
WHERE cluster = @cluster
  AND finished_at > @now::timestamptz - interval '24 hours'
  AND finished_at <= @now
  AND outcome = 'failed'
GROUP BY 1`
	coolingQuery = `
SELECT DISTINCT ON (d.subject, d.vmi_uid) d.namespace, d.vmi, p.node, coalesce(d.base_seconds, 0), coalesce(d.effective_seconds, 0), d.until
FROM evictrail.cooldown_decisions AS d
JOIN evictrail.placements AS p ON p.cluster = d.cluster AND p.subject = d.subject AND p.vmi_uid = d.vmi_uid AND p.to_at IS NULL
WHERE d.cluster = @cluster
  AND d.verdict = 'holds'
  AND d.layer = 'descheduler_cooldown'
  AND d.until > @now
  AND d.decided_at <= @now
  AND NOT EXISTS (
    SELECT 1 FROM evictrail.cooldown_decisions AS r
    WHERE r.cluster = d.cluster
      AND r.subject = d.subject
      AND r.layer = d.layer
      AND r.vmi_uid = d.vmi_uid
      AND r.verdict = 'released'
      AND r.decided_at BETWEEN d.decided_at AND @now
  )
ORDER BY d.subject, d.vmi_uid, d.decided_at DESC`
	openLoopsQuery = `
SELECT kind, coalesce(node, ''), count(*)
FROM evictrail.loops
WHERE cluster = @cluster
  AND closed_at IS NULL
GROUP BY 1, 2`
	// Each of these counts one thing only.
	repeatedQuery = `
SELECT namespace, vmi, kind, coalesce(counts ->> 'moves', counts ->> 'failures')::integer
FROM evictrail.loops
WHERE cluster = @cluster
  AND closed_at IS NULL
  AND kind IN ('frequent_moves', 'repeated_failures')`
	openDrainsQuery = `
SELECT row_to_json(t)
FROM evictrail.drains AS t
WHERE cluster = @cluster
  AND ended_at IS NULL`
	drainBlockedQuery = `
SELECT b.namespace, b.vmi, b.node, b.blocker, coalesce(p.not_migratable, '')
FROM evictrail.drains AS d
JOIN evictrail.drain_blockers AS b ON b.cluster = d.cluster AND b.subject = d.subject AND b.drain_id = d.drain_id
LEFT JOIN evictrail.placements AS p ON p.cluster = b.cluster AND p.node = b.node AND p.vmi_uid = b.vmi_uid AND p.to_at IS NULL
WHERE d.cluster = @cluster
  AND d.ended_at IS NULL`
)

// State reads how it stands with a cluster at a time not long before now: what is open now counts as open then.
func (s Whole) State(ctx context.Context, cluster string, now time.Time) (trail.State, error) {
	var rules []trail.Fact
	var thresholds trail.Thresholds
	rows := trail.StateRows{
		Guests: map[string]int{}, Loops: map[trail.LoopPlace]int{}, FailingHour: map[trail.FailureClass]int{}, FailingDay: map[trail.FailureClass]int{},
	}
	args := pgx.StrictNamedArgs{"cluster": cluster}
	timed := pgx.StrictNamedArgs{"cluster": cluster, "now": now}
	var batch pgx.Batch
	batch.Queue(tables.FactsOfSubjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "subjects": tables.SubjectTexts(trail.RuleSubjects())}).Query(func(rows pgx.Rows) (err error) {
		rules, err = tables.CollectFacts(rows, cluster)
		return err
	})
	batch.Queue(tables.ThresholdsQuery, args).Query(func(rows pgx.Rows) (err error) {
		thresholds, err = tables.CollectThresholds(rows)
		return err
	})
	batch.Queue(guestsQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var node string
		var n int
		err := row.Scan(&node, &n)
		rows.Guests[node] = n
		return err
	}))
	batch.Queue(openEvacuationsQuery, args).Query(pg.CollectJSON(&rows.Evacuations))
	batch.Queue(openMigrationsQuery, args).Query(pg.CollectJSON(&rows.Migrations))
	batch.Queue(movedQuery, timed).Query(pg.CollectJSON(&rows.Moved))
	batch.Queue(movesQuery, timed).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var c trail.VMCount
		err := row.Scan(&c.Namespace, &c.VMI, &c.Trigger, &c.Count)
		rows.Moves = append(rows.Moves, c)
		return err
	}))
	batch.Queue(failingQuery, timed).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var class trail.FailureClass
		var hour, day int
		err := row.Scan(&class, &hour, &day)
		rows.FailingHour[class], rows.FailingDay[class] = hour, day
		return err
	}))
	batch.Queue(coolingQuery, timed).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var c trail.Cooling
		var base, effective float64
		err := row.Scan(&c.Namespace, &c.VMI, &c.Node, &base, &effective, &c.Until)
		c.Base, c.Effective = secondsToDuration(base), secondsToDuration(effective)
		rows.Cooling = append(rows.Cooling, c)
		return err
	}))
	batch.Queue(openLoopsQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var at trail.LoopPlace
		var n int
		err := row.Scan(&at.Kind, &at.Node, &n)
		rows.Loops[at] = n
		return err
	}))
	batch.Queue(repeatedQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var c trail.LoopCount
		err := row.Scan(&c.Namespace, &c.VMI, &c.Kind, &c.Count)
		rows.Repeated = append(rows.Repeated, c)
		return err
	}))
	batch.Queue(openDrainsQuery, args).Query(pg.CollectJSON(&rows.Drains))
	batch.Queue(drainBlockedQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var b trail.DrainBlocked
		err := row.Scan(&b.Namespace, &b.VMI, &b.Node, &b.Blocker, &b.NotMigratable)
		rows.Blocked = append(rows.Blocked, b)
		return err
	}))
	err := s.runReadOnly(ctx, "read the state of the cluster", func(tx pgx.Tx) error { return tx.SendBatch(ctx, &batch).Close() })
	if err != nil {
		return trail.State{}, err
	}
	env := trail.NewEnv(rules)
	env.Judge(thresholds)
	return trail.NewState(rows, env, now), nil
}

func secondsToDuration(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
