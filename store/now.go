package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// vm answers about a VM as of now: the VM is derived of its facts, in which order and wording what is told of it needs; of what is
// around it the loops that tell of it, its node's drain and the evacuations that are open are read. Nil where those are behind.
func (q *inquiry) vm(ctx context.Context) (*trail.Cluster, error) {
	rows, err := q.derive(ctx, map[trail.Subject][]trail.Fact{q.of: q.own})
	if err != nil {
		return nil, err
	}
	var nodes []trail.Subject
	for _, n := range nodesNamed(q.own) {
		nodes = append(nodes, trail.Subject{Kind: trail.SubjectNode, Name: n})
	}
	namespace, vmi := q.of.VM()
	var batch pgx.Batch
	behind := q.behind(&batch, append(nodes, trail.ClusterSubject))
	args := pgx.StrictNamedArgs{"cluster": q.cluster, "namespace": namespace, "vmi": vmi, "name": q.of.Name, "subjects": names(append(nodes, trail.ClusterSubject))}
	batch.Queue(loopsOfVMQuery, args).Query(collectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	if p := rows[q.of].Placements; len(p) > 0 {
		ask := q.asking(&batch, []trail.Subject{{Kind: trail.SubjectNode, Name: p[len(p)-1].Node}})
		ask("drains", "started_at", "drain_id", collectOf(rows, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
		ask("drain_blockers", "waiting_since", "vmi_uid", collectOf(rows, func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers }))
	}
	if q.from.IsZero() {
		q.openEvacuations(&batch, rows, []string{q.of.String()})
	}
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if *behind > 0 {
		return nil, nil
	}
	return trail.NewCluster(rows, append(annotations(q.own), q.common...), q.at), nil
}

// node answers about a node as of now: its own rows are read, and those of the VMs that it holds or that had to do with it lately.
// VMs whose rows are behind are derived. Nil where those of the node are.
func (q *inquiry) node(ctx context.Context) (*trail.Cluster, error) {
	lately := stay{q.of.Name, q.at.Add(-lookBack), q.at}
	if !q.from.IsZero() {
		lately.from = q.from
	}
	if err := q.stretch(ctx, &lately); err != nil {
		return nil, err
	}
	var vms, late []trail.Subject
	rows := map[trail.Subject]trail.Derived{}
	var batch pgx.Batch
	behind := q.behind(&batch, []trail.Subject{q.of})
	q.rowsOf(&batch, rows)
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if *behind > 0 {
		return nil, nil
	}
	batch = pgx.Batch{}
	batch.Queue(onNodeQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "node": q.of.Name, "at": q.at, "since": lately.from}).Query(each(func(row pgx.CollectableRow) error {
		var text string
		var isLate bool
		if err := row.Scan(&text, &isLate); err != nil {
			return err
		}
		vm, err := trail.ParseSubject(text)
		if isLate {
			late = append(late, vm)
		} else {
			vms = append(vms, vm)
		}
		return err
	}))
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	facts := q.common
	batch = pgx.Batch{}
	q.rowsNear(&batch, rows, vms, lately.from)
	if q.from.IsZero() {
		q.openEvacuations(&batch, rows, names(append(vms, late...)))
	}
	q.factsBy(&batch, &facts, annotationsQuery, pgx.StrictNamedArgs{
		"cluster": q.cluster, "subjects": names(append(vms, late...)), "since": lately.from.Add(-time.Minute), "at": q.at,
	})
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if len(late) > 0 {
		if err := q.deriveInto(ctx, rows, late); err != nil {
			return nil, err
		}
	}
	return trail.NewCluster(rows, facts, q.at), nil
}

// annotations gives those among facts that tell of annotations.
func annotations(facts []trail.Fact) []trail.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool {
		return f.Kind != trail.KindAnnotationSet && f.Kind != trail.KindAnnotationCleared
	})
}

const (
	rowsOfQuery = `
SELECT subject, to_jsonb(t)
FROM evictrail.%[1]s AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
ORDER BY %[2]s, %[3]s`
	requestsNearQuery = `
SELECT subject, to_jsonb(t)
FROM evictrail.eviction_requests AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND (repeat_of IS NULL OR salient AND requested_at >= @since)
  AND requested_at <= @at
ORDER BY requested_at, request_id`
	migrationsNearQuery = `
SELECT t.subject, to_jsonb(t)
FROM evictrail.migrations AS t
JOIN (
  SELECT subject, max(created_at) AS at
  FROM evictrail.migrations
  WHERE cluster = @cluster
    AND subject = ANY(@subjects)
    AND created_at <= @at
  GROUP BY subject
) AS last ON last.subject = t.subject
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND (t.finished_at IS NULL OR t.finished_at >= @since OR t.created_at = last.at)
  AND t.created_at <= @at
ORDER BY t.created_at, t.migration_uid`
	decisionsNearQuery = `
SELECT subject, to_jsonb(t)
FROM evictrail.cooldown_decisions AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND (
    decided_at >= @since
    OR decision_id IN (
      SELECT DISTINCT ON (subject, layer) decision_id
      FROM evictrail.cooldown_decisions
      WHERE cluster = @cluster
        AND subject = ANY(@subjects)
        AND decided_at < @since
        AND verdict <> 'blocked'
      ORDER BY subject, layer, decided_at DESC, decision_id DESC
    )
  )
  AND decided_at <= @at
ORDER BY decided_at, decision_id`
	loopsOfVMQuery = `
SELECT subject, to_jsonb(t)
FROM evictrail.loops AS t
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND (namespace = @namespace AND vmi = @vmi OR evidence @> jsonb_build_array(jsonb_build_object('vmi', @name::text)))
ORDER BY opened_at, loop_id`
	openEvacuationsOfQuery = `
SELECT subject, to_jsonb(t)
FROM evictrail.evacuations AS t
WHERE cluster = @cluster
  AND ended_at IS NULL
  AND NOT subject = ANY(@but)`
	behindQuery = `
SELECT count(*)
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND (stale_since IS NOT NULL OR next_at <= @at)`
	onNodeQuery = `
SELECT s.subject, s.stale_since IS NOT NULL OR coalesce(s.next_at <= @at, false)
FROM (
  SELECT subject
  FROM evictrail.placements
  WHERE cluster = @cluster
    AND node = @node
    AND from_at <= @at
    AND (to_at IS NULL OR to_at >= @since)
  UNION
  SELECT subject
  FROM evictrail.evacuations
  WHERE cluster = @cluster
    AND node = @node
    AND marked_at <= @at
    AND (ended_at IS NULL OR ended_at >= @since)
) AS n
JOIN evictrail.subjects AS s ON s.cluster = @cluster AND s.subject = n.subject
ORDER BY s.subject`
	annotationsQuery = `
SELECT ` + factColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND kind IN ('annotation_set', 'annotation_cleared')
  AND occurred_at BETWEEN @since AND @at`
)

// behind queues the question how many of some subjects are to be derived again.
func (q *inquiry) behind(batch *pgx.Batch, subjects []trail.Subject) *int {
	var n int
	batch.Queue(behindQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": names(subjects), "at": q.at}).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	return &n
}

// openEvacuations queues the question for the evacuations that are open in the cluster, but for those of some VMs.
func (q *inquiry) openEvacuations(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, but []string) {
	batch.Queue(openEvacuationsOfQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "but": but}).
		Query(collectOf(rows, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
}

// rowsOf queues the questions for the rows of the node.
func (q *inquiry) rowsOf(batch *pgx.Batch, rows map[trail.Subject]trail.Derived) {
	ask := q.asking(batch, []trail.Subject{q.of})
	ask("cooldown_decisions", "decided_at", "decision_id", collectOf(rows, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
	ask("loops", "opened_at", "loop_id", collectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	ask("drains", "started_at", "drain_id", collectOf(rows, func(d *trail.Derived) *[]trail.Drain { return &d.Drains }))
	ask("drain_blockers", "waiting_since", "vmi_uid", collectOf(rows, func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers }))
	ask("timeline", "at", "event_id", collectOf(rows, func(d *trail.Derived) *[]trail.Line { return &d.Timeline }))
}

// rowsNear queues the questions for the rows of VMs as far as they bear on their node since a time: without their timelines; what is
// older only where it still tells how a VM stands: requests that repeat none, the last migration, the last decision of each layer.
func (q *inquiry) rowsNear(batch *pgx.Batch, rows map[trail.Subject]trail.Derived, vms []trail.Subject, since time.Time) {
	ask := q.asking(batch, vms)
	ask("loops", "opened_at", "loop_id", collectOf(rows, func(d *trail.Derived) *[]trail.Loop { return &d.Loops }))
	ask("evacuations", "marked_at", "evacuation_id", collectOf(rows, func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations }))
	ask("placements", "from_at", "placement_id", collectOf(rows, func(d *trail.Derived) *[]trail.Placement { return &d.Placements }))
	args := pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": names(vms), "since": since, "at": q.at}
	batch.Queue(decisionsNearQuery, args).Query(collectOf(rows, func(d *trail.Derived) *[]trail.Decision { return &d.Decisions }))
	batch.Queue(requestsNearQuery, args).Query(collectOf(rows, func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests }))
	batch.Queue(migrationsNearQuery, args).Query(collectOf(rows, func(d *trail.Derived) *[]trail.Migration { return &d.Migrations }))
}

// asking gives what queues the question for the rows of subjects in a table, in the order of a time and of their keys.
func (q *inquiry) asking(batch *pgx.Batch, subjects []trail.Subject) func(table, at, key string, collect func(pgx.Rows) error) {
	args := pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": names(subjects)}
	return func(table, at, key string, collect func(pgx.Rows) error) {
		batch.Queue(fmt.Sprintf(rowsOfQuery, table, at, key), args).Query(collect)
	}
}

// collectOf reads rows of a subject and a JSON object each into what is derived of the subjects, after what is there.
func collectOf[R any](rows map[trail.Subject]trail.Derived, into func(*trail.Derived) *[]R) func(pgx.Rows) error {
	return each(func(row pgx.CollectableRow) error {
		var text string
		var r R
		if err := row.Scan(&text, &r); err != nil {
			return err
		}
		s, err := trail.ParseSubject(text)
		d := rows[s]
		list := into(&d)
		*list = append(*list, r)
		rows[s] = d
		return err
	})
}
