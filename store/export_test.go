package store

import (
	"context"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/trail"
)

// Simulated histories last hours: with this the facts of neighbours begin within them.
func init() { neighboursBefore = func(trail.Thresholds) time.Duration { return 5 * time.Minute } }

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

// Read lets tests look at the transactions of readers.
func (s *Store) Read(ctx context.Context, run func(pgx.Tx) error) error {
	return s.read(ctx, "look", run)
}

// DerivedColumns gives the columns of each derived table that are written.
func DerivedColumns() map[string][]string {
	out := map[string][]string{}
	for _, of := range derivedTables {
		out[of.name] = jsonKeys(reflect.TypeOf(of.row))
	}
	return out
}

// Unmarshal lets tests read as facts are read.
func Unmarshal(raw []byte, to any) error { return unmarshal(raw, to) }
