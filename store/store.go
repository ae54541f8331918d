package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// Store is one database, and reads all of it. It is safe for concurrent use.
type Store struct {
	Reader
	DB *pg.DB // the connections of all rooms
	// Underived is called for each subject that cannot be derived, when that fails for the first time; nil calls nobody. It is set before anything is written.
	Underived func(DeriveFailure)

	grown  atomic.Int64 // facts since rows were counted
	mu     sync.Mutex
	tools  map[string]*deriver // by cluster, see deriveByHand
	months map[time.Time]bool  // whether a partition that was asked for exists, or could not help; false: we may not make it. By the first instant of the month
}

// Open connects to a database (pg.Connect) that answers.
func Open(ctx context.Context, url, passwordFile string) (*Store, error) {
	s, err := OpenLater(ctx, url, passwordFile)
	if err != nil {
		return nil, err
	}
	if err := s.DB.Pool.Ping(ctx); err != nil {
		s.Close()
		return nil, pg.Explain("open database", err)
	}
	return s, nil
}

// OpenLater is Open for a database that need not be there yet: nothing is asked of it.
func OpenLater(ctx context.Context, url, passwordFile string) (*Store, error) {
	db, err := pg.Connect(ctx, url, passwordFile, nil)
	if err != nil {
		return nil, err
	}
	return New(db), nil
}

// New returns the store on a database. Whoever closes the store closes the connections.
func New(db *pg.DB) *Store {
	return &Store{Reader: Reader{db: db, scope: trail.Everything(), own: &ownSigns{}}, DB: db, months: map[time.Time]bool{}, tools: map[string]*deriver{}}
}

// OverlaySigns has readers replace what the recorder of this process reported last by what it knows now, which is newer and does not depend
// on a database that takes writes.
func (s *Store) OverlaySigns(overlay Overlay) { s.own.overlay.Store(&overlay) }

// Close closes the connections.
func (s *Store) Close() { s.DB.Close() }

const aliveQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at)
VALUES (@cluster, @at)
ON CONFLICT (cluster) DO UPDATE SET alive_at = greatest(clusters.alive_at, excluded.alive_at)`

// appendedQuery is aliveQuery with the time of the newest event.
const appendedQuery = `
INSERT INTO evictrail.clusters (cluster, alive_at, last_event_at)
VALUES (@cluster, @at, @event)
ON CONFLICT (cluster) DO UPDATE SET
    alive_at = greatest(clusters.alive_at, excluded.alive_at),
    last_event_at = greatest(clusters.last_event_at, excluded.last_event_at)`

// Alive notes that everything that a cluster's collector saw until at is stored.
func (s *Store) Alive(ctx context.Context, cluster string, at time.Time) error {
	_, err := s.DB.Exec(ctx, aliveQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": at})
	return pg.Explain("note that we are alive", err)
}

// LastAlive gives the time of the last Alive or Append of a cluster; zero where there was none.
func (s *Reader) LastAlive(ctx context.Context, cluster string) (time.Time, error) {
	const query = `
SELECT alive_at
FROM evictrail.clusters
WHERE cluster = @cluster`
	var at time.Time
	err := s.db.QueryRow(ctx, query, pgx.StrictNamedArgs{"cluster": cluster}).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) || at.Unix() == 0 { // only its thresholds are known
		return time.Time{}, nil
	}
	return at.UTC(), pg.Explain("read when we were last alive", err)
}

const clustersQuery = `
SELECT cluster
FROM evictrail.clusters
ORDER BY cluster`

// Clusters names the clusters that are recorded, sorted.
func (s *Reader) Clusters(ctx context.Context) ([]string, error) {
	rows, err := s.db.Query(ctx, clustersQuery)
	if err != nil {
		return nil, pg.Explain("list clusters", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Explain("list clusters", err)
}
