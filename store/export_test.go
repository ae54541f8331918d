package store

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

func init() {
	derive = func(s trail.Subject, facts []trail.Fact, env *trail.Env, now time.Time) trail.Derived {
		if strings.HasSuffix(s.Name, "/buggy") && !BugFixed.Load() {
			panic("a bug")
		}
		return trail.Derive(s, facts, env, now)
	}
	leaderStill = 10 * time.Millisecond
}

// BugFixed is whether VMs of the name "buggy" can be derived.
var BugFixed atomic.Bool

// FactsThatMatter reads what is read to derive subjects since a time: all facts since then, and those from before it that say how they stood.
func (s *Store) FactsThatMatter(ctx context.Context, cluster string, subjects []trail.Subject, since time.Time) ([]trail.Fact, error) {
	args := pgx.StrictNamedArgs{"cluster": cluster, "subjects": tables.SubjectTexts(subjects), "from": slices.Repeat([]time.Time{since}, len(subjects))}
	return tables.FactsBy(ctx, s.DB, cluster, factsThatMatterQuery, args)
}
