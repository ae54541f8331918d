package read

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// lookBack is how far back the VMs that touched a node may bear on what is said of it, beyond evacuations that are open.
const lookBack = 24 * time.Hour

// What was going on at a node: whether a loop or a drain that was recorded lasted at some time of a stay.
const goingOnQuery = `
SELECT EXISTS (
  SELECT 1
  FROM evictrail.loops
  WHERE cluster = @cluster
    AND node = @node
    AND opened_at <= @until
    AND open_until >= @since
), EXISTS (
  SELECT 1
  FROM evictrail.drains
  WHERE cluster = @cluster
    AND subject = @subject
    AND started_at <= @until
    AND open_until >= @since
)`

// The VMs that were on nodes, were to leave them or were asked to, within some times and, where that matters, those in the whole cluster whose
// evacuations were open at the time. What is stored says which they are; what they were like at the time is derived.
const (
	stretchQuery = `
SELECT least(@since::timestamptz, min(began)), greatest(@until::timestamptz, max(least(ended_at, @at)), CASE WHEN bool_or(ended_at IS NULL) THEN @at END)
FROM (
  SELECT marked_at AS began, ended_at
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND node = @node
    AND marked_at <= @until
    AND open_until >= @since
  UNION ALL
  SELECT opened_at - @swung::interval, closed_at
  FROM evictrail.loops
  WHERE cluster = @cluster
    AND subject = @subject
    AND kind = 'oscillation'
    AND opened_at <= @until
    AND open_until >= @since
) AS r`
	loopsAboutQuery   = loopTimes + isAboutVM + "\nORDER BY opened_at, loop_id"
	loopsThroughQuery = loopTimes + "node <> @node AND nodes @> to_jsonb(@node::text)\nORDER BY opened_at, loop_id"
	loopTimes         = `
SELECT node, greatest(opened_at, @since), least(closed_at, @at)
FROM evictrail.loops
WHERE cluster = @cluster
  AND node IS NOT NULL
  AND opened_at <= @at
  AND open_until >= @since
  AND `
	// In the times that matter everything is read of a neighbour. From before them more and less is read than by StateBefore: of VMIs everything, also of those
	// that were gone, as cooldowns count completions however old they are; of pods the same; of migrations, whether they are there or not, how they
	// ended since it may bear on the times: not how they went, as no answer says so of a neighbour. OFFSET is there for what FactsOfSubjectsQuery has it for.
	neighboursQuery = `
WITH w AS (
  SELECT *
  FROM unnest(@nodes::text[], @from::timestamptz[], @to::timestamptz[], @began::timestamptz[], @ended::timestamptz[], @guests::boolean[])
    AS w(node, since, until, began, ended, guests)
), n AS (
  SELECT p.subject, w.since, w.until, w.began
  FROM w
  JOIN evictrail.placements AS p ON p.cluster = @cluster AND p.node = w.node
  WHERE w.guests
    AND p.from_at <= w.ended
    AND p.open_until >= w.began
  UNION
  SELECT e.subject, w.since, w.until, least(w.began, e.marked_at - @slack::interval)
  FROM w
  JOIN evictrail.evacuations AS e ON e.cluster = @cluster AND e.node = w.node
  WHERE e.marked_at <= w.ended
    AND e.open_until >= w.began
  UNION
  SELECT r.subject, w.since, w.until, w.began
  FROM w
  JOIN evictrail.eviction_requests AS r ON r.cluster = @cluster AND r.node = w.node
  WHERE r.salient
    AND r.requested_at BETWEEN w.began AND w.ended
    AND r.subject LIKE 'vmi:%'
  UNION
  SELECT subject, @at::timestamptz, @at, marked_at - @slack::interval
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND @everywhere
    AND marked_at <= @at + @slack::interval
    AND open_until >= @at - @slack::interval
), s AS (
  SELECT subject, range_agg(tstzrange(least(n.since, m.created_at - @slack::interval), n.until, '[]')) AS times, min(began) - @before::interval AS began
  FROM (
    SELECT subject, since - @before::interval AS since, until, began
    FROM n
    UNION ALL
    SELECT DISTINCT subject, @at - @before::interval, @at, @at
    FROM n
  ) AS n
  CROSS JOIN LATERAL (
    SELECT min(created_at) AS created_at
    FROM evictrail.migrations AS m
    WHERE m.cluster = @cluster
      AND m.subject = n.subject
      AND m.created_at < n.since
      AND m.open_until >= n.since
  ) AS m
  WHERE subject <> @but
  GROUP BY subject
), gone AS MATERIALIZED (
  SELECT f.object_uid
  FROM s
  CROSS JOIN LATERAL (
    SELECT object_uid
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.subject
      AND occurred_at < lower(s.times)
      AND kind = 'launcher_pod'
      AND what = 'gone'
    OFFSET 0
  ) AS f
)
SELECT f.*
FROM s
CROSS JOIN LATERAL (
  SELECT ` + tables.FactColumns + `
  FROM evictrail.events AS e
  WHERE cluster = @cluster
    AND e.subject = s.subject
    AND occurred_at <= @at
    AND (
      occurred_at <@ s.times
      OR CASE
        WHEN kind IN ('migration_phase', 'migration_result') THEN occurred_at >= s.began AND (what IN ('phase/Succeeded', 'phase/Failed') OR detail ? 'ended_at')
        WHEN kind = 'launcher_pod' THEN object_uid NOT IN (SELECT object_uid FROM gone)
        WHEN object_kind IN ('VirtualMachineInstanceMigration', 'NodeLoad') THEN occurred_at >= s.began
        ELSE object_kind <> 'Event'
      END
    )
  OFFSET 0
) AS f`
)

// storedSlack is by how much the times of stored rows may differ from what was known at a moment: what is seen later may have them more exactly.
const tellingSlack = time.Minute

// neighboursBefore is how long before the time that matters the facts of neighbours begin: twice the time in which what happens on a node belongs
// together. The completions that cooldowns count are read however old they are.
var neighboursBefore = func(t trail.Thresholds) time.Duration {
	return 2 * max(t.Quiet, t.FailureRecent, t.PinnedAfter, t.Unanswered)
}

// answerHistorical derives everything of facts: what is stored is about later times.
func (q *inquiry) answerHistorical(ctx context.Context) (*trail.Cluster, error) {
	rows := map[trail.Subject]trail.Derived{}
	var own []trail.Fact
	if err := q.loadFacts(ctx, &own, []trail.Subject{q.of}); err != nil {
		return nil, err
	}
	if q.of.Kind == trail.SubjectVMI {
		if len(own) == 0 {
			return nil, q.notFoundError()
		}
		var err error
		if rows, err = q.deriveVMs(ctx, map[trail.Subject][]trail.Fact{q.of: own}, matchesAlways); err != nil {
			return nil, err
		}
	}
	stays, err := q.findStays(ctx, rows[q.of])
	if err != nil {
		return nil, err
	}
	var nodes []trail.Subject
	for _, s := range stays {
		if node := (trail.Subject{Kind: trail.SubjectNode, Name: s.node}); node != q.of && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	facts, err := q.loadNeighbourFacts(ctx, stays)
	if err != nil {
		return nil, err
	}
	var batch pgx.Batch
	q.queueFacts(&batch, &facts, nodes)
	q.queueNodeLabels(&batch, &facts, rows[q.of])
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	beside := slices.Clone(q.common)
	for _, its := range [][]trail.Fact{own, facts} {
		for i := range its {
			if f := &its[i]; f.Subject.Kind != trail.SubjectVMI || f.Object.Kind == trail.ObjectPod { // of VMs what is around them needs their pods
				beside = append(beside, *f)
			}
		}
	}
	of := trail.BySubject(facts)
	maps.DeleteFunc(of, func(s trail.Subject, _ []trail.Fact) bool { return s.Kind != trail.SubjectVMI })
	others, err := q.deriveVMs(ctx, of, func(from, to time.Time) bool {
		return !to.Before(q.at) || slices.ContainsFunc(stays, func(s stay) bool { return !from.After(s.to) && !to.Before(s.from) })
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(rows, others)
	c := trail.Surround(rows, beside, q.thresholds, q.at)
	around := maps.Clone(c.Rows)
	maps.DeleteFunc(around, func(s trail.Subject, _ trail.Derived) bool { return s.Kind == trail.SubjectVMI }) // they are
	err = q.restoreFrozenRows(ctx, around)
	maps.Copy(c.Rows, around)
	return c, err
}

// stay is a time in which what happened on a node matters.
type stay struct {
	node         string
	from, to     time.Time
	began, ended time.Time // of whatever was going on then: anyone who had to do with the node between them matters
	guests       bool      // anyone who was there matters, not only those that were to leave
}

// findStays returns those that matter to the answer: the node that is asked about or on which the VM is, lately, and that which the VM was to
// leave last, during that time.
func (q *inquiry) findStays(ctx context.Context, own trail.Derived) ([]stay, error) {
	lately := stay{node: q.of.Name, from: q.at.Add(-lookBack), to: q.at, guests: true}
	if q.of.Kind == trail.SubjectNode {
		if err := q.loadStretch(ctx, &lately); err != nil {
			return nil, err
		}
		out, err := q.loadStays(ctx, loopsThroughQuery, pgx.StrictNamedArgs{"node": q.of.Name, "since": lately.began})
		for i := range out {
			if err == nil {
				err = q.narrowStay(ctx, &out[i])
			}
		}
		return append(out, lately), err
	}
	var out []stay
	if n := len(own.Placements); n > 0 {
		lately.node = own.Placements[n-1].Node
		out = append(out, lately)
	}
	if n := len(own.Evacuations); n > 0 {
		e := own.Evacuations[n-1]
		last := stay{node: e.Node, from: e.MarkedAt.Add(-tellingSlack), to: e.EndedAt, guests: true}
		if last.to.IsZero() {
			last.to = q.at
		}
		out = append(out, last)
	}
	loops, err := q.loadLoopsAbout(ctx, own.StoryFrom())
	out = append(out, loops...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if err := q.narrowStay(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loadLoopsAbout returns the times of the loops that name the VM since a time, wherever they are: the descheduler may have asked to evict the target pod
// of its migration from another node.
func (q *inquiry) loadLoopsAbout(ctx context.Context, since time.Time) ([]stay, error) {
	namespace, vmi := q.of.VM()
	return q.loadStays(ctx, loopsAboutQuery, pgx.StrictNamedArgs{"namespace": namespace, "vmi": vmi, "name": q.of.Name, "since": since})
}

// loadStays returns the times of the loops that a query asks for.
func (q *inquiry) loadStays(ctx context.Context, query string, args pgx.StrictNamedArgs) ([]stay, error) {
	args["cluster"], args["at"] = q.cluster, q.at
	rows, err := q.tx.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (stay, error) {
		var s stay
		err := row.Scan(&s.node, &s.from, &s.to)
		return s, err
	})
}

// narrowStay leaves of a stay what matters to a VM: all of it, and what goes beyond, where a loop or a drain was recorded of the node; anyone who was there only
// to a drain; else who held a slot of the descheduler at the moment.
func (q *inquiry) narrowStay(ctx context.Context, s *stay) error {
	var loops bool
	err := q.tx.QueryRow(ctx, goingOnQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "node": s.node, "subject": subjectOfNode(s.node), "since": s.from, "until": s.to,
	}).Scan(&loops, &s.guests)
	if err != nil {
		return err
	}
	if !loops && !s.guests {
		s.from, s.to, s.began, s.ended = q.at, q.at, q.at, q.at
		return nil
	}
	return q.loadStretch(ctx, s)
}

func subjectOfNode(node string) string {
	return pg.CleanText(trail.Subject{Kind: trail.SubjectNode, Name: node}.String())
}

// loadStretch finds how long lasted what was going on at a stay: the evacuations from the node that fall into it, and the loops that these make, may have
// begun before, and go on after.
func (q *inquiry) loadStretch(ctx context.Context, s *stay) error {
	return q.tx.QueryRow(ctx, stretchQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "node": s.node, "subject": subjectOfNode(s.node), "since": s.from, "until": s.to, "at": q.at, "swung": q.thresholds.SwingReach(),
	}).Scan(&s.began, &s.ended)
}

// loadFacts reads facts of subjects.
func (q *inquiry) loadFacts(ctx context.Context, into *[]trail.Fact, subjects []trail.Subject) error {
	var batch pgx.Batch
	q.queueFacts(&batch, into, subjects)
	return q.tx.SendBatch(ctx, &batch).Close()
}

// loadNeighbourFacts reads the facts of the VMs that matter beside the one that is asked about.
func (q *inquiry) loadNeighbourFacts(ctx context.Context, stays []stay) ([]trail.Fact, error) {
	var nodes []string
	var from, to, began, ended []time.Time
	var guests []bool
	for _, s := range stays {
		nodes, from, to, guests = append(nodes, s.node), append(from, s.from), append(to, s.to), append(guests, s.guests)
		began, ended = append(began, s.began), append(ended, s.ended)
	}
	facts, err := tables.FactsBy(ctx, q.tx, q.cluster, neighboursQuery, pg.Planned, pgx.StrictNamedArgs{
		"cluster": q.cluster, "but": pg.CleanText(q.of.String()), "nodes": nodes, "from": from, "to": to, "began": began, "ended": ended, "guests": guests, "at": q.at,
		"everywhere": trail.LimitsTotal(q.common), "before": neighboursBefore(q.thresholds), "slack": tellingSlack,
	})
	q.noteRead(facts)
	return facts, err
}
