package read

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// History derives what was known at a moment of a VM or a node, and of the VMs around it: from the facts whose time is not
// after it. It is trail.ErrNotFound when there are none. As of when the cluster was last seen, or later, what is around is what
// is stored of it: the same rows, as they were derived of the same facts.
func (s Whole) History(ctx context.Context, cluster string, of trail.Subject, at time.Time) (*trail.Cluster, error) {
	c, err := s.loadHistory(ctx, trail.Question{Cluster: cluster, Of: of, At: at})
	if err != nil {
		return nil, err
	}
	return c.SeenBy(s.scope), nil
}

// loadHistory answers a question of which the cluster and the moment are known.
func (s *Reader) loadHistory(ctx context.Context, asked trail.Question) (*trail.Cluster, error) {
	var h *trail.Cluster
	of, cluster := asked.Of, asked.Cluster
	err := s.readFacts(ctx, "read the history of "+of.Name, func(tx pgx.Tx) error {
		q := &inquiry{db: s.db, tx: tx, cluster: cluster, of: of, since: pg.EarlierTime(asked.Since, asked.From), move: asked.Move, recordedNow: !asked.From.IsZero(), at: asked.At}
		err := q.loadCommon(ctx)
		switch {
		case err != nil:
			return err
		case q.settled != nil && q.at.Before(*q.settled) && !q.recordedNow:
			return q.droppedError()
		case !q.recordedNow && q.at.Before(q.alive):
			h, err = q.answerHistorical(ctx)
		case of.Kind == trail.SubjectNode:
			h, err = q.answerNode(ctx)
		default:
			h, err = q.answerVM(ctx)
		}
		if err == nil && h == nil { // rows that are behind
			h, err = q.answerHistorical(ctx)
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
	db          *pg.DB
	tx          pgx.Tx
	cluster     string
	of          trail.Subject
	since       time.Time // from when on everything is wanted; zero: from where the answer begins
	move        string    // UID of a migration since whose creation everything is wanted, too
	recordedNow bool      // the question is what is recorded now of the time until the moment, not what was known then
	at          time.Time

	alive      time.Time        // when the cluster was last seen
	settled    *time.Time       // what was over before is settled; nil: nothing is
	thresholds trail.Thresholds // in force
	seen       trail.Coverage
	common     []trail.Fact // of the rules in force and of gaps, up to the time

	noteFacts func([]trail.Fact) // is called with all facts that are read; nil: nobody wants them
}

const factsUntilQuery = `
SELECT ` + tables.FactColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND subject = ANY(@subjects)
  AND occurred_at <= @at`

// loadCommon reads what each answer needs.
func (q *inquiry) loadCommon(ctx context.Context) error {
	q.thresholds = trail.DefaultThresholds()
	args := pgx.StrictNamedArgs{"cluster": q.cluster}
	var batch pgx.Batch
	batch.Queue(tables.ClusterQuery, args).Query(pg.EachRow(func(row pgx.CollectableRow) error {
		var stated *trail.Thresholds
		err := row.Scan(&q.alive, &stated, &q.settled)
		if stated != nil {
			q.thresholds = *stated
		}
		return err
	}))
	batch.Queue(coverageQuery, args).QueryRow(func(row pgx.Row) error { return row.Scan(&q.seen.Audit, &q.seen.Observer) })
	q.queueFacts(&batch, &q.common, trail.EnvSubjects(nil))
	return q.tx.SendBatch(ctx, &batch).Close()
}

func (q *inquiry) notFoundError() error {
	return fmt.Errorf("history of %s in cluster %s: %w", q.of.Name, q.cluster, trail.ErrNotFound)
}

func (q *inquiry) droppedError() error {
	return fmt.Errorf("what was known of %s at %s: %w: facts from before %s were dropped: ask for a later time, or list what is recorded of that time, as with `evictrail timeline --until %s`",
		q.of.Name, q.at.Format(time.RFC3339), trail.ErrNotFound, q.settled.UTC().Format(time.RFC3339), q.at.Format(time.RFC3339))
}

// queueFacts queues a question for the facts of subjects up to the time, in no order.
func (q *inquiry) queueFacts(batch *pgx.Batch, into *[]trail.Fact, subjects []trail.Subject) {
	q.factsBy(batch, into, factsUntilQuery, pgx.StrictNamedArgs{"cluster": q.cluster, "subjects": tables.SubjectTexts(subjects), "at": q.at})
}

func (q *inquiry) factsBy(batch *pgx.Batch, into *[]trail.Fact, query string, args pgx.StrictNamedArgs) {
	batch.Queue(query, args).Query(func(rows pgx.Rows) error {
		facts, err := tables.CollectFacts(rows, q.cluster)
		q.noteRead(facts)
		*into = append(*into, facts...)
		return err
	})
}

// noteRead passes facts on where it is asked what an answer rests on.
func (q *inquiry) noteRead(facts []trail.Fact) {
	if q.noteFacts != nil {
		q.noteFacts(facts)
	}
}
