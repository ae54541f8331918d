package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// History derives what was known at a moment of a VM or a node, and of the VMs around it: from the facts whose time is not
// after it. It is ErrNotFound when there are none. As of when the cluster was last seen, or later, what is around is what
// is stored of it: the same rows, as they were derived of the same facts.
func (s *Store) History(ctx context.Context, cluster string, of trail.Subject, at time.Time) (*trail.Cluster, error) {
	return s.history(ctx, cluster, of, time.Time{}, at)
}

// history is History or, from a time on, what is told now of that time until the moment.
func (s *Reader) history(ctx context.Context, cluster string, of trail.Subject, from, at time.Time) (*trail.Cluster, error) {
	var h *trail.Cluster
	err := s.read(ctx, "read the history of "+of.Name, func(tx pgx.Tx) error {
		q := &inquiry{tx: tx, cluster: cluster, of: of, from: from, at: at}
		err := q.begin(ctx)
		switch {
		case err != nil:
			return err
		case from.IsZero() && at.Before(q.alive):
			h, err = q.past(ctx)
		case of.Kind == trail.SubjectNode:
			h, err = q.node(ctx)
		default:
			h, err = q.vm(ctx)
		}
		if err == nil && h == nil { // rows that are behind
			h, err = q.past(ctx)
		}
		if err == nil {
			h.Name, h.Seen = cluster, q.seen
		}
		return err
	})
	return h, err
}

// inquiry is one question about a VM or a node as of a time, and what all its answers need.
type inquiry struct {
	tx      pgx.Tx
	cluster string
	of      trail.Subject
	from    time.Time // what is told now of the time from then on is asked; else zero
	at      time.Time

	alive      time.Time        // when the cluster was last seen
	thresholds trail.Thresholds // in force
	seen       trail.Coverage
	own        []trail.Fact // of the subject itself, up to the time
	common     []trail.Fact // of the rules in force and of gaps, up to the time
}

const factsUntilQuery = `
SELECT ` + factColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND occurred_at <= @at`

// begin reads what each answer needs.
func (q *inquiry) begin(ctx context.Context) error {
	q.thresholds = trail.DefaultThresholds()
	args := pgx.StrictNamedArgs{"cluster": q.cluster}
	var batch pgx.Batch
	batch.Queue(clusterQuery, args).Query(each(func(row pgx.CollectableRow) error {
		var stated *trail.Thresholds
		err := row.Scan(&q.alive, &stated)
		if stated != nil {
			q.thresholds = *stated
		}
		return err
	}))
	batch.Queue(coverageQuery, args).QueryRow(func(row pgx.Row) error { return row.Scan(&q.seen.Audit, &q.seen.Observer) })
	q.facts(&batch, &q.own, []trail.Subject{q.of})
	q.facts(&batch, &q.common, trail.EnvSubjects(nil))
	if err := q.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if len(q.own) == 0 && q.of.Kind == trail.SubjectVMI {
		return fmt.Errorf("history of %s in cluster %s: %w", q.of.Name, q.cluster, ErrNotFound)
	}
	return nil
}

// facts queues a question for the facts of subjects up to the time, in no order.
func (q *inquiry) facts(batch *pgx.Batch, into *[]trail.Fact, subjects []trail.Subject) {
	q.factsBy(batch, into, factsUntilQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": names(subjects), "at": q.at})
}

func (q *inquiry) factsBy(batch *pgx.Batch, into *[]trail.Fact, query string, args pgx.StrictNamedArgs) {
	batch.Queue(query, args).Query(func(rows pgx.Rows) error {
		facts, err := collectFacts(rows, q.cluster)
		*into = append(*into, facts...)
		return err
	})
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
