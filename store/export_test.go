package store

import "github.com/jackc/pgx/v5/pgxpool"

// Pool lets tests look at the tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Explain lets tests look at every code.
func Explain(doing string, err error) error { return explain(doing, err) }
