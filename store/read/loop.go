package read

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

const loopQuery = `
SELECT cluster, row_to_json(t)
FROM evictrail.loops AS t
WHERE loop_id = @id
  AND (@cluster = '' OR cluster = @cluster)
  AND (@everyone OR ` + loopSeen + `)`

// Loop returns one loop, and the cluster that it is in. Errors: trail.ErrNotFound where there is none, *trail.AmbiguousError where
// several clusters have it, as when a recording is played into two.
func (s *Reader) Loop(ctx context.Context, cluster string, id trail.FactID) (string, trail.Loop, error) {
	type found struct {
		Cluster string
		Loop    trail.Loop
	}
	var all []found
	cluster, within := s.scope.Cluster(cluster)
	if !within {
		return "", trail.Loop{}, unknownLoop(id)
	}
	err := s.runReadOnly(ctx, "look for a loop", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, loopQuery, s.addScopeArgs(pgx.StrictNamedArgs{"cluster": cluster, "id": id.String()}))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[found])
		return err
	})
	switch {
	case err != nil:
		return "", trail.Loop{}, err
	case len(all) == 0:
		return "", trail.Loop{}, unknownLoop(id)
	case len(all) > 1:
		several := &trail.AmbiguousError{Name: "loop " + id.String()}
		for _, f := range all {
			several.Clusters = append(several.Clusters, f.Cluster)
		}
		return "", trail.Loop{}, several
	}
	l, _ := s.scope.Loop(all[0].Loop)
	return all[0].Cluster, l, nil
}

func unknownLoop(id trail.FactID) error {
	return fmt.Errorf("loop %s: %w: `evictrail loops` lists those that are known", id, trail.ErrNotFound)
}
