package store

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool lets tests look at the tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Explain lets tests look at every code.
func Explain(doing string, err error) error { return explain(doing, err) }

// DownTo takes the schema back to a version.
func (s *Store) DownTo(ctx context.Context, version int64) error {
	p, done, err := s.provider()
	if err != nil {
		return err
	}
	defer done()
	_, err = p.DownTo(ctx, version)
	return err
}
