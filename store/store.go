package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
)

// Store is one database, and reads all of it. It is safe for concurrent use.
type Store struct {
	read.Whole
	DB *pg.DB // the connections of all rooms
	// Underived is called for each subject that cannot be derived, when that fails for the first time; nil calls nobody. It is set before anything is written.
	Underived func(DeriveFailure)
	// WindowMemory is how many bytes of history anyone who derives a cluster holds in memory, about; 0: DefaultWindowMemory. It is set before anything is written.
	WindowMemory int

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

// New returns the store on a database. Anyone who closes the store closes the connections.
func New(db *pg.DB) *Store {
	return &Store{Whole: read.New(db), DB: db, months: map[time.Time]bool{}, tools: map[string]*deriver{}}
}

// Close closes the connections.
func (s *Store) Close() { s.DB.Close() }
