package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/evictrail/evictrail/trail"
)

// Simulated histories last hours: with this the facts of neighbours begin within them, and so do those that are kept of what was dropped.
func init() {
	neighboursBefore = func(trail.Thresholds) time.Duration { return 5 * time.Minute }
	aroundSlack = 16 * time.Minute
	reachOf = func([]trail.Fact, trail.Thresholds) time.Duration { return Reach }
	derive = func(s trail.Subject, facts []trail.Fact, env *trail.Env, now time.Time) trail.Derived {
		if strings.HasSuffix(s.Name, "/buggy") && !BugFixed.Load() {
			panic("a bug")
		}
		return trail.Derive(s, facts, env, now)
	}
	leaderStill = 10 * time.Millisecond
	keptTogether, lockTries, lockPause = 20, 4, 50*time.Millisecond
}

// BugFixed is whether VMs of the name "buggy" can be derived.
var BugFixed atomic.Bool

// OpenFailing opens a database of which a statement fails before it is sent where fail says so.
func OpenFailing(ctx context.Context, url string, fail func(sql string) bool) (*Store, error) {
	config, err := (&link{url: url}).config()
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = failing(fail)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &Store{Reader: Reader{pool: pool, scope: trail.Everything(), own: &ownSigns{}}, months: map[time.Time]bool{}, tools: map[string]*deriver{}}, err
}

type failing func(sql string) bool

func (f failing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return f.end(ctx, q.SQL)
}
func (f failing) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (f failing) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	return f.end(ctx, b.Batch.QueuedQueries[0].SQL)
}
func (f failing) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (f failing) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (f failing) end(ctx context.Context, sql string) context.Context {
	if f(sql) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return ended
	}
	return ctx
}

// Traffic counts what is sent to a database.
type Traffic struct{ Statements, RoundTrips []string }

// OpenCounting opens a database, and counts what is sent to it.
func OpenCounting(ctx context.Context, url string, of *Traffic) (*Store, error) {
	config, err := (&link{url: url}).config()
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = of
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &Store{Reader: Reader{pool: pool, scope: trail.Everything(), own: &ownSigns{}}, months: map[time.Time]bool{}, tools: map[string]*deriver{}}, err
}

// TraceQueryStart counts a statement that is sent by itself.
func (c *Traffic) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.Statements, c.RoundTrips = append(c.Statements, q.SQL), append(c.RoundTrips, q.SQL)
	return ctx
}

// TraceQueryEnd counts nothing.
func (c *Traffic) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts statements that are sent together.
func (c *Traffic) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		c.Statements = append(c.Statements, q.SQL)
	}
	c.RoundTrips = append(c.RoundTrips, "batch")
	return ctx
}

// TraceBatchQuery counts nothing.
func (c *Traffic) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd counts nothing.
func (c *Traffic) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Reach is how far back facts are kept in tests: as long as the longest threshold of theirs.
var Reach = 20 * time.Minute

// Pool lets tests look at the tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Explain lets tests look at every code.
func Explain(doing string, err error) error { return explain(doing, err) }

// Read lets tests look at the transactions of readers.
func (s *Store) Read(ctx context.Context, run func(pgx.Tx) error) error {
	return s.read(ctx, "look", run)
}

// DerivedColumns gives the columns of each derived table that are written.
func DerivedColumns() map[string][]string {
	out := map[string][]string{}
	for _, of := range derivedTables {
		out[of.name] = of.columns
	}
	return out
}

// DerivedKeys returns the key column of each derived table, by which the rows of a subject differ.
func DerivedKeys() map[string]string {
	out := map[string]string{}
	for _, of := range derivedTables {
		out[of.name] = of.key
	}
	return out
}

// Unmarshal lets tests read as facts are read.
func Unmarshal(raw []byte, to any) error { return unmarshal(raw, to) }

// StateBefore reads the facts of subjects from before a time that say how they stood then.
func (s *Store) StateBefore(ctx context.Context, cluster string, subjects []trail.Subject, since time.Time) ([]trail.Fact, error) {
	args := pgx.StrictNamedArgs{"cluster": cluster, "subjects": names(subjects), "from": slices.Repeat([]time.Time{since}, len(subjects))}
	facts, err := factsBy(ctx, s.pool, cluster, factsThatMatterQuery, args)
	return slices.DeleteFunc(facts, func(f trail.Fact) bool { return !f.OccurredAt.Before(since) }), err
}

// Kept reads what would be kept of the facts of subjects before a boundary: what matters since a time, and how they stood then.
func (s *Store) Kept(ctx context.Context, cluster string, subjects []trail.Subject, since, boundary time.Time) (facts []trail.Fact, err error) {
	undo := errors.New("undo")
	err = s.inTx(ctx, "keep facts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING ALL)"); err != nil {
			return err
		}
		args := pgx.StrictNamedArgs{
			"cluster": cluster, "boundary": boundary, "subjects": names(subjects), "since": slices.Repeat([]time.Time{since}, len(subjects)),
		}
		if _, err := tx.Exec(ctx, keepFactsQuery, args); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT "+factColumns+" FROM evictrail.events_next")
		if err != nil {
			return err
		}
		if facts, err = collectFacts(rows, cluster); err != nil {
			return err
		}
		return undo
	})
	if errors.Is(err, undo) {
		err = nil
	}
	return facts, err
}

// Neighbours reads the facts of the VMs that were on a node at a moment, as they matter to what happened since a time.
func (s *Store) Neighbours(ctx context.Context, cluster, node string, since, at time.Time) ([]trail.Fact, error) {
	return factsBy(ctx, s.pool, cluster, neighboursQuery, pgx.StrictNamedArgs{
		"cluster": cluster, "but": "", "nodes": []string{node}, "from": []time.Time{since}, "to": []time.Time{at}, "began": []time.Time{since}, "ended": []time.Time{at},
		"guests": []bool{true}, "at": at, "everywhere": false, "before": time.Duration(0), "slack": tellingSlack,
	})
}
