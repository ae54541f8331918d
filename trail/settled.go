package trail

import (
	"slices"
	"time"
)

// leastReach is how far what happens may depend on what had happened before, whatever the rules in force say: the cooldown of a descheduler counts the
// migrations of two days.
const leastReach = DefaultCooldownWindow

// Reach returns how far what happens may depend on what was over before: by the thresholds of loops, and by the policies among facts about the rules.
func Reach(rules []Fact, t Thresholds) time.Duration {
	reach := max(leastReach, t.SwingReach())
	for _, x := range t.listThresholds() {
		if x.duration != nil {
			reach = max(reach, *x.duration)
		}
	}
	for _, f := range rules {
		if d, ok := f.Detail.(*ConfigDetail); ok && d.Descheduler != nil && d.Descheduler.Cooldown != nil {
			c := d.Descheduler.Cooldown
			reach = max(reach, c.Base, c.Max, c.Window)
		}
	}
	return reach
}

// Settled is what is settled of VMs before a time: some facts from before it are not there, and what was over by then stays as it is recorded.
// Bounces counts the loops of a kind around a VMI that are settled, those that were refuted left out: those to come are numbered after them.
type Settled struct {
	Before  map[Subject]time.Time // of VMs; nothing is settled of one that is not in it
	Bounces map[Bounce]int
}

// Bounce is a kind of loops around one VMI, or around the VMIs of one name.
type Bounce struct {
	Of   string // UID of the VMI; "namespace/name" where the loop goes over several of one name
	Kind LoopKind
}

// Settle passes the Env what is settled. Without it nothing is.
func (e *Env) Settle(s Settled) { e.settled = s }

// numberLoops returns loops of one kind around what Bounce.Of names, in their order, their identities: they are numbered, after those that are settled. Those among them that
// are settled themselves have other numbers than they were recorded under, as facts are missing: what is derived of them counts for nothing.
func (s Settled) numberLoops(vm Subject, of string, kind LoopKind, loops []Loop) []Loop {
	n := s.Bounces[Bounce{of, kind}]
	for i := range loops {
		if EndedBefore(loops[i], s.Before[vm]) {
			loops[i].ID = hashID("settled loop", string(kind), of, formatTime(loops[i].OpenedAt))
			continue
		}
		loops[i].ID = loopID(kind, of, n)
		n++
	}
	return loops
}

// Unsettled returns the rows that were open at a time or began later, and those that are recorded as open then: goesOn has the names of the views
// that show such rows, each followed by a space and the key of the row. Blockers and consequences stay: what a drain left is shown until there is
// another drain.
func (d Derived) Unsettled(before time.Time, goesOn map[string]bool) Derived {
	u := unsettling{before, goesOn}
	d.Requests = selectUnsettled(u, "eviction_requests ", d.Requests, func(r EvictionRequest) string { return r.ID.String() })
	d.Evacuations = selectUnsettled(u, "evacuations ", d.Evacuations, func(e Evacuation) string { return e.ID.String() })
	d.Migrations = selectUnsettled(u, "migrations ", d.Migrations, func(m Migration) string { return m.UID })
	d.Placements = selectUnsettled(u, "placements ", d.Placements, func(p Placement) string { return p.ID.String() })
	d.Decisions = selectUnsettled(u, "cooldown_decisions ", d.Decisions, func(x Decision) string { return x.ID.String() })
	d.Loops = selectUnsettled(u, "loops ", d.Loops, func(l Loop) string { return l.ID.String() })
	d.Drains = selectUnsettled(u, "drains ", d.Drains, func(x Drain) string { return x.ID.String() })
	d.Outages = selectUnsettled(u, "outages ", d.Outages, func(o Outage) string { return o.ID.String() })
	d.Gaps = selectUnsettled(u, "gaps ", d.Gaps, func(g Gap) string { return g.ID.String() })
	d.Timeline = selectUnsettled(u, "timeline ", d.Timeline, func(l Line) string { return l.EventID.String() })
	return d
}

// unsettling is before when what had ended is settled, but for rows that are recorded as open.
type unsettling struct {
	before time.Time
	goesOn map[string]bool
}

// selectUnsettled returns the rows of a view that are not settled.
func selectUnsettled[R Row](u unsettling, view string, rows []R, key func(R) string) []R {
	return slices.DeleteFunc(slices.Clone(rows), func(r R) bool {
		return EndedBefore(r, u.before) && (len(u.goesOn) == 0 || !u.goesOn[view+key(r)])
	})
}

// After puts rows that are settled among others, which are not, each sort in the order of its times.
func (d Derived) After(settled Derived) Derived {
	for i := range settled.Migrations {
		settled.Migrations[i].restorePhases()
	}
	d.Requests = mergeByTime(settled.Requests, d.Requests, func(r EvictionRequest) time.Time { return r.RequestedAt })
	d.Evacuations = mergeByTime(settled.Evacuations, d.Evacuations, func(e Evacuation) time.Time { return e.MarkedAt })
	d.Migrations = mergeByTime(settled.Migrations, d.Migrations, func(m Migration) time.Time { return m.CreatedAt })
	d.Placements = mergeByTime(settled.Placements, d.Placements, func(p Placement) time.Time { return p.FromAt })
	d.Decisions = mergeByTime(settled.Decisions, d.Decisions, func(x Decision) time.Time { return x.DecidedAt })
	d.Loops = mergeByTime(settled.Loops, d.Loops, func(l Loop) time.Time { return l.OpenedAt })
	d.Drains = mergeByTime(settled.Drains, d.Drains, func(x Drain) time.Time { return x.StartedAt })
	d.Outages = mergeByTime(settled.Outages, d.Outages, func(o Outage) time.Time { return o.BeganAt })
	d.Gaps = mergeByTime(settled.Gaps, d.Gaps, func(g Gap) time.Time { return g.OpenedAt })
	d.Timeline = mergeByTime(settled.Timeline, d.Timeline, func(l Line) time.Time { return l.At })
	return d
}

// mergeByTime puts rows among others, in the order of their times.
func mergeByTime[R any](rows, others []R, at func(R) time.Time) []R {
	out := slices.Concat(rows, others)
	slices.SortStableFunc(out, func(a, b R) int { return at(a).Compare(at(b)) })
	return out
}
