package read

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// FactsBehind returns the facts of which the answer about a VM or a node as of a moment is derived: its own, those of the VMs around it, of their nodes,
// and of the rules in force, each once, in the order in which they were seen. A database that has only these derives the same answer, but for what other VMs
// of the cluster held of the slots for migrations. Errors are those of Ask, and trail.ErrNotFound where facts of that time were dropped.
func (s Whole) FactsBehind(ctx context.Context, asked trail.Question) ([]trail.Fact, error) {
	asked, err := s.settleQuestion(ctx, asked)
	if err != nil {
		return nil, err
	}
	read := map[trail.FactID]trail.Fact{}
	err = s.readFacts(ctx, "read the facts about "+asked.Of.Name, func(tx pgx.Tx) error {
		q := &inquiry{db: s.db, tx: tx, cluster: asked.Cluster, of: asked.Of, at: asked.At, noteFacts: func(facts []trail.Fact) {
			for _, f := range facts {
				read[f.ID] = f
			}
		}}
		if err := q.loadCommon(ctx); err != nil {
			return err
		}
		if q.settled != nil && q.at.Before(*q.settled) {
			return q.droppedError()
		}
		_, err := q.answerHistorical(ctx)
		return err
	})
	return slices.SortedFunc(maps.Values(read), func(a, b trail.Fact) int {
		return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), a.OccurredAt.Compare(b.OccurredAt), slices.Compare(a.ID[:], b.ID[:]))
	}), err
}
