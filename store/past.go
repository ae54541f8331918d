package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// lookBack is how far back the VMs that touched a node may bear on what is said of it, beyond evacuations that are open.
const lookBack = 24 * time.Hour

// The VMs that have to do with nodes at a time, and those whose migrations or evacuations take slots of the cluster then.
// What is stored says which they are; what they were like at the time is derived.
const (
	lookSinceQuery = `
SELECT least(@since::timestamptz, min(marked_at))
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND node = ANY(@nodes)
  AND marked_at <= @at
  AND (ended_at IS NULL OR ended_at >= @since)`
	neighboursQuery = `
SELECT subject
FROM evictrail.placements
WHERE cluster = @cluster
  AND node = ANY(@nodes)
  AND from_at <= @at
  AND (to_at IS NULL OR to_at >= @since)
UNION
SELECT subject
FROM evictrail.evacuations
WHERE cluster = @cluster
  AND marked_at <= @at
  AND (ended_at IS NULL OR ended_at >= @at OR node = ANY(@nodes) AND ended_at >= @since)
UNION
SELECT subject
FROM evictrail.migrations
WHERE cluster = @cluster
  AND created_at <= @at
  AND (finished_at IS NULL OR finished_at >= @at)
ORDER BY subject`
)

// past derives everything of facts: what is stored tells of later times.
func (q *inquiry) past(ctx context.Context) (*trail.Cluster, error) {
	nodes := []string{q.of.Name}
	if q.of.Kind == trail.SubjectVMI {
		nodes = nodesNamed(q.own)
	}
	vms, err := q.neighbours(ctx, nodes)
	if err != nil {
		return nil, err
	}
	vms = slices.DeleteFunc(vms, func(s trail.Subject) bool { return s == q.of })
	facts := slices.Concat(q.own, q.common)
	if err := q.read(ctx, &facts, vms); err != nil {
		return nil, err
	}
	around := trail.EnvSubjects(facts)
	for _, n := range nodes {
		if node := (trail.Subject{Kind: trail.SubjectNode, Name: n}); !slices.Contains(around, node) {
			around = append(around, node)
		}
	}
	known := append(trail.EnvSubjects(nil), q.of)
	around = slices.DeleteFunc(around, func(s trail.Subject) bool { return slices.Contains(known, s) })
	if err := q.read(ctx, &facts, around); err != nil {
		return nil, err
	}
	return trail.DeriveAll(facts, q.thresholds, q.at), nil
}

// read reads facts of subjects.
func (q *inquiry) read(ctx context.Context, into *[]trail.Fact, subjects []trail.Subject) error {
	var batch pgx.Batch
	q.facts(&batch, into, subjects)
	return q.tx.SendBatch(ctx, &batch).Close()
}

// neighbours finds the VMs that have to do with nodes at the time.
func (q *inquiry) neighbours(ctx context.Context, nodes []string) ([]trail.Subject, error) {
	args := pgx.StrictNamedArgs{"cluster": q.cluster, "nodes": nodes, "at": q.at, "since": q.at.Add(-lookBack)}
	var since time.Time
	if err := q.tx.QueryRow(ctx, lookSinceQuery, args).Scan(&since); err != nil {
		return nil, err
	}
	args["since"] = since
	rows, err := q.tx.Query(ctx, neighboursQuery, args)
	if err != nil {
		return nil, err
	}
	return collectVMs(rows)
}
