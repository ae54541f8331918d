package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// lookBack is how far back the VMs that touched a node may bear on what is said of it, beyond evacuations that are open.
const lookBack = 24 * time.Hour

// What was going on at a node: whether a loop or a drain that was told lasted at some time of a stay.
const goingOnQuery = `
SELECT EXISTS (
  SELECT
  FROM evictrail.loops
  WHERE cluster = @cluster
    AND node = @node
    AND opened_at <= @until
    AND (closed_at IS NULL OR closed_at >= @since)
), EXISTS (
  SELECT
  FROM evictrail.drains
  WHERE cluster = @cluster
    AND subject = @subject
    AND started_at <= @until
    AND (ended_at IS NULL OR ended_at >= @since)
)`

// The VMs that were on nodes, were to leave them or were asked to, within some times and, where that matters, those in the whole cluster whose
// evacuations were open at the time. What is stored says which they are; what they were like at the time is derived.
const (
	stretchQuery = `
SELECT least(@since::timestamptz, min(marked_at)), greatest(@until::timestamptz, max(least(ended_at, @at)), CASE WHEN bool_or(ended_at IS NULL) THEN @at END)
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND node = @node
  AND marked_at <= @until
  AND (ended_at IS NULL OR ended_at >= @since)`
	neighboursQuery = `
WITH w AS (
  SELECT *
  FROM unnest(@nodes::text[], @from::timestamptz[], @to::timestamptz[], @guests::boolean[]) AS w(node, since, until, guests)
), n AS (
  SELECT p.subject, w.since
  FROM w
  JOIN evictrail.placements AS p ON p.cluster = @cluster AND p.node = w.node
  WHERE w.guests
    AND p.from_at <= w.until
    AND (p.to_at IS NULL OR p.to_at >= w.since)
  UNION ALL
  SELECT e.subject, w.since
  FROM w
  JOIN evictrail.evacuations AS e ON e.cluster = @cluster AND e.node = w.node
  WHERE e.marked_at <= w.until
    AND (e.ended_at IS NULL OR e.ended_at >= w.since)
  UNION ALL
  SELECT r.subject, w.since
  FROM w
  JOIN evictrail.eviction_requests AS r ON r.cluster = @cluster AND r.node = w.node
  WHERE r.salient
    AND r.requested_at BETWEEN w.since AND w.until
    AND r.subject LIKE 'vmi:%'
  UNION ALL
  SELECT subject, @at
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND @everywhere
    AND marked_at <= @at
    AND (ended_at IS NULL OR ended_at >= @at)
), s AS (
  SELECT subject, min(since) - @before::interval AS since
  FROM n
  WHERE subject <> @but
  GROUP BY subject
)
SELECT s.subject, least(s.since, e.marked_at - interval '1 minute', m.created_at - interval '1 minute')
FROM s
CROSS JOIN LATERAL (
  SELECT min(marked_at) AS marked_at
  FROM evictrail.evacuations AS e
  WHERE e.cluster = @cluster
    AND e.subject = s.subject
    AND e.marked_at < s.since
    AND (e.ended_at IS NULL OR e.ended_at >= s.since)
) AS e
CROSS JOIN LATERAL (
  SELECT min(created_at) AS created_at
  FROM evictrail.migrations AS m
  WHERE m.cluster = @cluster
    AND m.subject = s.subject
    AND m.created_at < s.since
    AND (m.finished_at IS NULL OR m.finished_at >= s.since)
) AS m
ORDER BY s.subject`
	// Of neighbours it matters what they were doing meanwhile, and where and how they stood by then: not how they moved before.
	factsSinceQuery = `
SELECT ` + factColumns + `
FROM unnest(@subjects::text[], @since::timestamptz[]) AS w(of, since)
JOIN evictrail.events AS e ON e.cluster = @cluster AND e.subject = w.of
WHERE e.occurred_at <= @at
  AND (e.occurred_at >= w.since OR NOT (e.object_kind IN ('VirtualMachineInstanceMigration', 'Event') OR e.kind = 'migration_result'))`
)

// neighboursBefore is how long before the time that matters the facts of neighbours begin, in which it shows what held them back: the
// descheduler's cooldown counts the migrations of two days.
var neighboursBefore = 48 * time.Hour

// past derives everything of facts: what is stored tells of later times.
func (q *inquiry) past(ctx context.Context) (*trail.Cluster, error) {
	rows := map[trail.Subject]trail.Derived{}
	var own []trail.Fact
	if err := q.read(ctx, &own, []trail.Subject{q.of}); err != nil {
		return nil, err
	}
	if q.of.Kind == trail.SubjectVMI {
		if len(own) == 0 {
			return nil, q.unknown()
		}
		var err error
		if rows, err = q.derive(ctx, map[trail.Subject][]trail.Fact{q.of: own}); err != nil {
			return nil, err
		}
	}
	stays, err := q.stays(ctx, rows[q.of])
	if err != nil {
		return nil, err
	}
	var nodes []trail.Subject
	for _, s := range stays {
		if node := (trail.Subject{Kind: trail.SubjectNode, Name: s.node}); node != q.of && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	vms, since, err := q.neighbours(ctx, stays)
	if err != nil {
		return nil, err
	}
	var facts []trail.Fact
	var batch pgx.Batch
	q.facts(&batch, &facts, nodes)
	q.factsBy(&batch, &facts, factsSinceQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": vms, "since": since, "at": q.at})
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
	others, err := q.derive(ctx, of)
	if err != nil {
		return nil, err
	}
	maps.Copy(rows, others)
	return trail.Surround(rows, beside, q.thresholds, q.at), nil
}

// stay is a time in which what happened on a node matters.
type stay struct {
	node     string
	from, to time.Time
	guests   bool // whoever was there matters, not only those that were to leave
}

// stays gives those that matter to the answer: the node that is asked about or on which the VM is, lately, and that which the VM was to
// leave last, meanwhile.
func (q *inquiry) stays(ctx context.Context, own trail.Derived) ([]stay, error) {
	lately := stay{q.of.Name, q.at.Add(-lookBack), q.at, true}
	if q.of.Kind == trail.SubjectNode {
		err := q.stretch(ctx, &lately)
		return []stay{lately}, err
	}
	var out []stay
	if n := len(own.Placements); n > 0 {
		lately.node = own.Placements[n-1].Node
		out = append(out, lately)
	}
	if n := len(own.Evacuations); n > 0 {
		e := own.Evacuations[n-1]
		last := stay{e.Node, e.MarkedAt.Add(-time.Minute), e.EndedAt, true}
		if last.to.IsZero() {
			last.to = q.at
		}
		out = append(out, last)
	}
	for i := range out {
		if err := q.narrow(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// narrow leaves of a stay what matters to a VM: all of it, and longer, where a loop or a drain was told of the node; whoever was there only
// to a drain; else who held a slot of the descheduler at the moment.
func (q *inquiry) narrow(ctx context.Context, s *stay) error {
	var loops bool
	err := q.tx.QueryRow(ctx, goingOnQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "node": s.node, "subject": clean(trail.Subject{Kind: trail.SubjectNode, Name: s.node}.String()), "since": s.from, "until": s.to,
	}).Scan(&loops, &s.guests)
	if err != nil {
		return err
	}
	if !loops && !s.guests {
		s.from, s.to = q.at, q.at
		return nil
	}
	return q.stretch(ctx, s)
}

// stretch makes a stay as long as the evacuations from the node that fall into it: the loops that these make may have begun before, and
// go on after.
func (q *inquiry) stretch(ctx context.Context, s *stay) error {
	return q.tx.QueryRow(ctx, stretchQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "node": s.node, "since": s.from, "until": s.to, "at": q.at,
	}).Scan(&s.from, &s.to)
}

// read reads facts of subjects.
func (q *inquiry) read(ctx context.Context, into *[]trail.Fact, subjects []trail.Subject) error {
	var batch pgx.Batch
	q.facts(&batch, into, subjects)
	return q.tx.SendBatch(ctx, &batch).Close()
}

// neighbours finds the VMs that matter beside the one that is asked about, and from when on.
func (q *inquiry) neighbours(ctx context.Context, stays []stay) (vms []string, since []time.Time, err error) {
	var nodes []string
	var from, to []time.Time
	var guests []bool
	for _, s := range stays {
		nodes, from, to, guests = append(nodes, s.node), append(from, s.from), append(to, s.to), append(guests, s.guests)
	}
	rows, err := q.tx.Query(ctx, neighboursQuery, planned, pgx.StrictNamedArgs{
		"cluster": q.cluster, "but": clean(q.of.String()), "nodes": nodes, "from": from, "to": to, "guests": guests, "at": q.at,
		"everywhere": trail.LimitsTotal(q.common), "before": neighboursBefore,
	})
	if err != nil {
		return nil, nil, err
	}
	type neighbour struct {
		VM    string
		Since time.Time
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[neighbour])
	for _, n := range all {
		vms, since = append(vms, n.VM), append(since, n.Since)
	}
	return vms, since, err
}
