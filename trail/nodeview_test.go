package trail_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// rowsSince leaves out what the store does not read of what was over before a time.
func rowsSince(r trail.Rows, at, before time.Time) trail.Rows {
	not := func(over, than time.Time) bool { return !over.IsZero() && over.Before(than) }
	return trail.Rows{
		Since:       at,
		Placements:  slices.DeleteFunc(slices.Clone(r.Placements), func(p *trail.Placement) bool { return not(p.ToAt, before) }),
		Evacuations: slices.DeleteFunc(slices.Clone(r.Evacuations), func(e *trail.Evacuation) bool { return not(e.EndedAt, at) }),
		Requests:    slices.DeleteFunc(slices.Clone(r.Requests), func(q *trail.EvictionRequest) bool { return not(q.RequestedAt, at) }),
		Migrations:  slices.DeleteFunc(slices.Clone(r.Migrations), func(m *trail.Migration) bool { return not(m.FinishedAt, before) }),
		Arrivals:    slices.DeleteFunc(slices.Clone(r.Arrivals), func(m *trail.Migration) bool { return not(m.FinishedAt, before) }),
		Swings: slices.DeleteFunc(slices.Clone(r.Swings), func(m *trail.Migration) bool {
			return not(m.FinishedAt, before.Add(-trail.DefaultThresholds().SwingReach()))
		}),
		Decisions: slices.DeleteFunc(slices.Clone(r.Decisions), func(x *trail.Decision) bool { return not(trail.Later(x.DecidedAt, x.Until), before) }),
	}
}

// derivedSince leaves what was not over before a time.
func derivedSince(d trail.Derived, at time.Time) trail.Derived {
	d = d.Unsettled(at, nil)
	return trail.Derived{
		Decisions: slices.Concat(d.Decisions), Loops: slices.Concat(d.Loops), Drains: slices.Concat(d.Drains), Blockers: d.Blockers, Timeline: slices.Concat(d.Timeline),
		Outages:      slices.Concat(d.Outages),
		Consequences: slices.Concat(slices.DeleteFunc(slices.Clone(d.Consequences), func(x trail.Consequence) bool { return x.At.Before(at) })),
	}
}

// isQuiet reports whether nothing that belongs to a node, or to the cluster, was open around a time.
func isQuiet(d trail.Derived, evacuations []*trail.Evacuation, at time.Time) bool {
	open := func(from, to time.Time) bool {
		return !from.After(at.Add(time.Second)) && (to.IsZero() || !trail.Later(from, to).Before(at.Add(-time.Second)))
	}
	return !slices.ContainsFunc(evacuations, func(e *trail.Evacuation) bool { return open(e.MarkedAt, e.EndedAt) }) &&
		!slices.ContainsFunc(d.Loops, func(l trail.Loop) bool { return open(l.OpenedAt, l.ClosedAt) }) &&
		!slices.ContainsFunc(d.Drains, func(x trail.Drain) bool { return open(x.StartedAt, x.EndedAt) })
}

// TestNodesSince derives nodes, and the cluster, of what was not over before a time at which nothing was open there: the rows since then are those that
// are derived from everything. Whose moves they were, how needless and how harmful is made up, as these histories have no loads.
func TestNodesSince(t *testing.T) {
	t.Parallel()
	left, compared := 0, map[string]int{}
	for seed := range uint64(4 * randomHistories()) {
		c := newChance(seed)
		for range 40 + c.IntN(120) {
			c.runStep()
		}
		now := day.Add(c.now)
		all := trail.DeriveAll(c.facts, newTightThresholds(), now)
		around := map[trail.Subject]trail.Rows{}
		for _, s := range slices.SortedFunc(maps.Keys(all.Rows), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }) {
			d := all.Rows[s]
			for i := range d.Migrations {
				m := &d.Migrations[i]
				m.Trigger, m.Attempt = trail.TriggerDescheduler, 1
				m.Need, m.Benefit = pickOne(c, trail.NotNeeded, trail.Needed, trail.NeedUnknown), pickOne(c, trail.Harmed, trail.Helped, trail.BenefitUnknown)
			}
			if s.Kind != trail.SubjectVMI {
				continue
			}
			for at, rows := range d.Around() {
				its := around[at]
				its.Add(rows)
				around[at] = its
			}
		}
		for s, rows := range around {
			of := func(rows trail.Rows) trail.Derived {
				all.Env().Around(s, rows)
				return trail.Derive(s, all.Facts(s), all.Env(), now)
			}
			whole := of(rows)
			for range 20 {
				at := day.Add(time.Duration(c.Int64N(int64(c.now))))
				evacuations := rows.Evacuations
				if s == trail.ClusterSubject {
					evacuations = nil
				}
				if !isQuiet(whole, evacuations, at) {
					continue
				}
				some := rowsSince(rows, at, trail.BlocksSince(all.Facts(s), at).Add(-time.Hour))
				if s == trail.ClusterSubject {
					some.Evacuations = rowsSince(rows, at, at).Evacuations
				}
				left += len(rows.Placements) - len(some.Placements)
				got, want := derivedSince(of(some), at), derivedSince(whole, at)
				if len(want.Drains) == 0 { // what is left of the one before stays
					want.Blockers = got.Blockers
				}
				requireSame(t, want, got, fmt.Sprintf("seed %d: %s since %s", seed, s, formatShortTime(at)))
				compared["loops"] += len(want.Loops)
				compared["drains"] += len(want.Drains)
				compared["blockers"] += len(want.Blockers)
				compared["consequences"] += len(want.Consequences)
				compared["blocks"] += len(want.Decisions)
			}
		}
	}
	t.Log(left, compared)
	require.Positive(t, left)
	for _, what := range []string{"loops", "drains", "blockers", "consequences", "blocks"} {
		require.Greater(t, compared[what], 100*randomHistories()/150, what)
	}
}
