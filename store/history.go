package store

import (
	"context"
	"fmt"
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

// History derives what was known at a moment of a VM or a node, and of the VMs around it: from the facts whose time is not
// after it. It is ErrNotFound when there are none.
func (s *Store) History(ctx context.Context, cluster string, of trail.Subject, at time.Time) (*trail.Cluster, error) {
	own, err := factsOf(ctx, s.pool, cluster, []trail.Subject{of})
	if err != nil {
		return nil, err
	}
	own = upToTime(own, at)
	if len(own) == 0 && of.Kind == trail.SubjectVMI {
		return nil, fmt.Errorf("history of %s in cluster %s: %w", of.Name, cluster, ErrNotFound)
	}
	nodes := []string{of.Name}
	if of.Kind == trail.SubjectVMI {
		nodes = nodesNamed(own)
	}
	vms, err := s.neighbours(ctx, cluster, nodes, at)
	if err != nil {
		return nil, err
	}
	if of.Kind == trail.SubjectVMI && !slices.Contains(vms, of) {
		vms = append(vms, of)
	}
	facts, err := factsOf(ctx, s.pool, cluster, vms)
	if err != nil {
		return nil, err
	}
	around := trail.EnvSubjects(facts)
	for _, n := range nodes {
		if node := (trail.Subject{Kind: trail.SubjectNode, Name: n}); !slices.Contains(around, node) {
			around = append(around, node)
		}
	}
	more, err := factsOf(ctx, s.pool, cluster, around)
	if err != nil {
		return nil, err
	}
	thresholds, err := s.Thresholds(ctx, cluster)
	if err != nil {
		return nil, err
	}
	h := trail.DeriveAll(upToTime(append(facts, more...), at), thresholds, at)
	h.Name = cluster
	h.Seen, err = s.coverage(ctx, cluster)
	return h, err
}

// upToTime drops the facts that happened after a moment.
func upToTime(facts []trail.Fact, at time.Time) []trail.Fact {
	return slices.DeleteFunc(facts, func(f trail.Fact) bool { return f.OccurredAt.After(at) })
}

// nodesNamed gives the nodes that a VM was to leave, and those that it ran on.
func nodesNamed(facts []trail.Fact) []string {
	seen := map[string]bool{}
	var out []string
	for _, f := range facts {
		if f.Node != "" && !seen[f.Node] && (f.Kind == trail.KindEvacuationMarked || f.Kind == trail.KindVMIPlaced || f.Kind == trail.KindMigrationSeen) {
			seen[f.Node] = true
			out = append(out, f.Node)
		}
	}
	return out
}

// neighbours finds the VMs that have to do with nodes at a time.
func (s *Store) neighbours(ctx context.Context, cluster string, nodes []string, at time.Time) ([]trail.Subject, error) {
	args := pgx.StrictNamedArgs{"cluster": cluster, "nodes": nodes, "at": at, "since": at.Add(-lookBack)}
	var since time.Time
	if err := s.pool.QueryRow(ctx, lookSinceQuery, args).Scan(&since); err != nil {
		return nil, explain("look for VMs around", err)
	}
	args["since"] = since
	rows, err := s.pool.Query(ctx, neighboursQuery, args)
	if err != nil {
		return nil, explain("look for VMs around", err)
	}
	return collectVMs(rows)
}

const thresholdsQuery = `
SELECT thresholds
FROM evictrail.clusters
WHERE cluster = @cluster
  AND thresholds IS NOT NULL`

// Thresholds gives the thresholds of loops that are in force for a cluster.
func (s *Store) Thresholds(ctx context.Context, cluster string) (trail.Thresholds, error) {
	rows, err := s.pool.Query(ctx, thresholdsQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return trail.Thresholds{}, explain("read thresholds", err)
	}
	t, err := collectThresholds(rows)
	return t, explain("read thresholds", err)
}

// collectThresholds reads the thresholds that were stated, else gives the default ones.
func collectThresholds(rows pgx.Rows) (trail.Thresholds, error) {
	stated, err := pgx.CollectRows(rows, pgx.RowTo[trail.Thresholds])
	if err != nil || len(stated) == 0 {
		return trail.DefaultThresholds(), err
	}
	return stated[0], nil
}

const judgeQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, thresholds)
VALUES (@cluster, to_timestamp(0), @thresholds)
ON CONFLICT (cluster) DO UPDATE SET thresholds = excluded.thresholds`

// Judge sets the thresholds of loops for a cluster. Where they are others than before, everything is to be derived anew:
// DeriveStale does that.
func (s *Store) Judge(ctx context.Context, cluster string, t trail.Thresholds) error {
	before, err := s.Thresholds(ctx, cluster)
	if err != nil || before == t {
		return err
	}
	return s.inTx(ctx, "set thresholds", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, judgeQuery, pgx.StrictNamedArgs{"cluster": cluster, "thresholds": t}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, makeStaleQuery, pgx.StrictNamedArgs{"cluster": cluster, "since": everything})
		return err
	})
}
