package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// Simulated histories last hours: with this the facts that are kept of what was dropped begin within them.
func init() {
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

// Reach is how far back facts are kept in tests: as long as the longest threshold of theirs.
var Reach = 20 * time.Minute

// DerivedColumns gives the columns of each derived table that are written.
func DerivedColumns() map[string][]string {
	out := map[string][]string{}
	for _, of := range tables.Derived {
		out[of.Name] = of.Columns
	}
	return out
}

// DerivedKeys returns the key column of each derived table, by which the rows of a subject differ.
func DerivedKeys() map[string]string {
	out := map[string]string{}
	for _, of := range tables.Derived {
		out[of.Name] = of.Key
	}
	return out
}

// StateBefore reads the facts of subjects from before a time that say how they stood then.
func (s *Store) StateBefore(ctx context.Context, cluster string, subjects []trail.Subject, since time.Time) ([]trail.Fact, error) {
	args := pgx.StrictNamedArgs{"cluster": cluster, "subjects": tables.SubjectTexts(subjects), "from": slices.Repeat([]time.Time{since}, len(subjects))}
	facts, err := tables.FactsBy(ctx, s.DB, cluster, factsThatMatterQuery, args)
	return slices.DeleteFunc(facts, func(f trail.Fact) bool { return !f.OccurredAt.Before(since) }), err
}

// Kept reads what would be kept of the facts of subjects before a boundary: what matters since a time, and how they stood then.
func (s *Store) Kept(ctx context.Context, cluster string, subjects []trail.Subject, since, boundary time.Time) (facts []trail.Fact, err error) {
	undo := errors.New("undo")
	err = s.DB.InTx(ctx, "keep facts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE evictrail.events_next (LIKE evictrail.events INCLUDING ALL)"); err != nil {
			return err
		}
		args := pgx.StrictNamedArgs{
			"cluster": cluster, "boundary": boundary, "subjects": tables.SubjectTexts(subjects), "since": slices.Repeat([]time.Time{since}, len(subjects)),
		}
		if _, err := tx.Exec(ctx, keepFactsQuery, args); err != nil {
			return err
		}
		var err error
		if facts, err = tables.FactsBy(ctx, tx, cluster, "SELECT "+tables.FactColumns+" FROM evictrail.events_next", nil); err != nil {
			return err
		}
		return undo
	})
	if errors.Is(err, undo) {
		err = nil
	}
	return facts, err
}
