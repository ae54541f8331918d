package store

import (
	"context"

	"github.com/evictrail/evictrail/store/pg"
)

// countEvery is after how many facts it is looked whether a table has grown so much that Postgres plans with what is long past.
const countEvery = 500

// countGrown has Postgres count what has grown by some facts. Whom it denies that waits for autovacuum.
func (s *Store) countGrown(ctx context.Context, added int) error {
	if s.grown.Add(int64(added)) < countEvery {
		return nil
	}
	s.grown.Store(0)
	_, err := s.DB.Exec(ctx, "SELECT evictrail.count_grown()")
	if pg.IsDenied(err) {
		return nil
	}
	return pg.Explain("count rows", err)
}
