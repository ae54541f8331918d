package trail

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rowsSince leaves out what the store does not read of what was over before a time.
func rowsSince(r Rows, at, before time.Time) Rows {
	not := func(over, than time.Time) bool { return !over.IsZero() && over.Before(than) }
	return Rows{
		Since:       at,
		Placements:  slices.DeleteFunc(slices.Clone(r.Placements), func(p *Placement) bool { return not(p.ToAt, before) }),
		Evacuations: slices.DeleteFunc(slices.Clone(r.Evacuations), func(e *Evacuation) bool { return not(e.EndedAt, at) }),
		Requests:    slices.DeleteFunc(slices.Clone(r.Requests), func(q *EvictionRequest) bool { return not(q.RequestedAt, at) }),
		Migrations:  slices.DeleteFunc(slices.Clone(r.Migrations), func(m *Migration) bool { return not(m.FinishedAt, before) }),
		Arrivals:    slices.DeleteFunc(slices.Clone(r.Arrivals), func(m *Migration) bool { return not(m.FinishedAt, before) }),
		Decisions:   slices.DeleteFunc(slices.Clone(r.Decisions), func(x *Decision) bool { return not(later(x.DecidedAt, x.Until), before) }),
	}
}

// derivedSince leaves what was not over before a time.
func derivedSince(d Derived, at time.Time) Derived {
	d = d.Unsettled(at, nil)
	return Derived{
		Decisions: slices.Concat(d.Decisions), Loops: slices.Concat(d.Loops), Drains: slices.Concat(d.Drains), Blockers: d.Blockers, Timeline: slices.Concat(d.Timeline),
		Outages:      slices.Concat(d.Outages),
		Consequences: slices.Concat(slices.DeleteFunc(slices.Clone(d.Consequences), func(x Consequence) bool { return x.At.Before(at) })),
	}
}

// isQuiet reports whether nothing that belongs to a node, or to the cluster, was open around a time.
func isQuiet(d Derived, evacuations []*Evacuation, at time.Time) bool {
	open := func(from, to time.Time) bool {
		return !from.After(at.Add(time.Second)) && (to.IsZero() || !later(from, to).Before(at.Add(-time.Second)))
	}
	return !slices.ContainsFunc(evacuations, func(e *Evacuation) bool { return open(e.MarkedAt, e.EndedAt) }) &&
		!slices.ContainsFunc(d.Loops, func(l Loop) bool { return open(l.OpenedAt, l.ClosedAt) }) &&
		!slices.ContainsFunc(d.Drains, func(x Drain) bool { return open(x.StartedAt, x.EndedAt) })
}

// TestNodesSince derives nodes, and the cluster, of what was not over before a time at which nothing was open there: what is told since then is what is
// told of everything. Whose moves they were, how needless and how harmful is made up, as these histories have no loads.
func TestNodesSince(t *testing.T) {
	t.Parallel()
	left, told := 0, map[string]int{}
	for seed := range uint64(4 * randomHistories) {
		c := newChance(seed)
		for range 40 + c.IntN(120) {
			c.step()
		}
		now := day.Add(c.now)
		all := DeriveAll(c.facts, hurried(), now)
		around := map[Subject]Rows{}
		for _, s := range slices.SortedFunc(maps.Keys(all.Rows), func(a, b Subject) int { return strings.Compare(a.String(), b.String()) }) {
			d := all.Rows[s]
			for i := range d.Migrations {
				m := &d.Migrations[i]
				m.Trigger, m.Attempt = TriggerDescheduler, 1
				m.Need, m.Benefit = pick(c, NotNeeded, Needed, NeedUnknown), pick(c, Harmed, Helped, BenefitUnknown)
			}
			if s.Kind != SubjectVMI {
				continue
			}
			for at, rows := range d.Around() {
				its := around[at]
				its.Add(rows)
				around[at] = its
			}
		}
		for s, rows := range around {
			of := func(rows Rows) Derived {
				all.Env().Around(s, rows)
				return Derive(s, all.Facts(s), all.Env(), now)
			}
			whole := of(rows)
			for range 20 {
				at := day.Add(time.Duration(c.Int64N(int64(c.now))))
				evacuations := rows.Evacuations
				if s == ClusterSubject {
					evacuations = nil
				}
				if !isQuiet(whole, evacuations, at) {
					continue
				}
				some := rowsSince(rows, at, BlocksSince(all.Facts(s), at).Add(-time.Hour))
				if s == ClusterSubject {
					some.Evacuations = rowsSince(rows, at, at).Evacuations
				}
				left += len(rows.Placements) - len(some.Placements)
				got, want := derivedSince(of(some), at), derivedSince(whole, at)
				if len(want.Drains) == 0 { // what is left of the one before stays
					want.Blockers = got.Blockers
				}
				requireSame(t, want, got, fmt.Sprintf("seed %d: %s since %s", seed, s, short(at)))
				told["loops"] += len(want.Loops)
				told["drains"] += len(want.Drains)
				told["blockers"] += len(want.Blockers)
				told["consequences"] += len(want.Consequences)
				told["blocks"] += len(want.Decisions)
			}
		}
	}
	t.Log(left, told)
	require.Positive(t, left)
	for _, what := range []string{"loops", "drains", "blockers", "consequences", "blocks"} {
		require.Greater(t, told[what], 100, what)
	}
}
