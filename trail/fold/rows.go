package fold

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// table says what a Fold has to know of the rows of one derived table.
type table[R trail.Row] struct {
	name  string
	key   func(*R) string
	begun func(*R) time.Time

	outcome func(*R) string                         // how it ended; empty while it goes on. Nil: rows of this table have no outcome
	judged  func(*R) bool                           // what came of it is final. Nil: nothing is
	renamed bool                                    // the same may get another key later: a request that the audit log names was only known by its mark
	changes func(*trail.News) *[]trail.RowChange[R] // nil: changes of this table are not counted
	rows    func(*trail.Derived) *[]R
}

var (
	requestTable = table[trail.EvictionRequest]{
		name:    "eviction_requests",
		key:     func(r *trail.EvictionRequest) string { return r.ID.String() },
		begun:   func(r *trail.EvictionRequest) time.Time { return r.RequestedAt },
		renamed: true,
		changes: func(n *trail.News) *[]trail.RowChange[trail.EvictionRequest] { return &n.Requests },
		rows:    func(d *trail.Derived) *[]trail.EvictionRequest { return &d.Requests },
	}
	evacuationTable = table[trail.Evacuation]{
		name:    "evacuations",
		key:     func(e *trail.Evacuation) string { return e.ID.String() },
		begun:   func(e *trail.Evacuation) time.Time { return e.MarkedAt },
		outcome: func(e *trail.Evacuation) string { return string(e.Outcome) },
		judged:  func(e *trail.Evacuation) bool { return e.ObjectiveMet != nil },
		renamed: true,
		changes: func(n *trail.News) *[]trail.RowChange[trail.Evacuation] { return &n.Evacuations },
		rows:    func(d *trail.Derived) *[]trail.Evacuation { return &d.Evacuations },
	}
	migrationTable = table[trail.Migration]{
		name:    "migrations",
		key:     func(m *trail.Migration) string { return m.UID },
		begun:   func(m *trail.Migration) time.Time { return m.CreatedAt },
		outcome: func(m *trail.Migration) string { return string(m.Outcome) },
		judged:  func(m *trail.Migration) bool { return m.BenefitFinal },
		changes: func(n *trail.News) *[]trail.RowChange[trail.Migration] { return &n.Migrations },
		rows:    func(d *trail.Derived) *[]trail.Migration { return &d.Migrations },
	}
	placementTable = table[trail.Placement]{
		name:    "placements",
		key:     func(p *trail.Placement) string { return p.ID.String() },
		begun:   func(p *trail.Placement) time.Time { return p.FromAt },
		outcome: func(p *trail.Placement) string { return string(p.EndedBy) },
		changes: func(n *trail.News) *[]trail.RowChange[trail.Placement] { return &n.Placements },
		rows:    func(d *trail.Derived) *[]trail.Placement { return &d.Placements },
	}
	decisionTable = table[trail.Decision]{
		name:    "cooldown_decisions",
		key:     func(x *trail.Decision) string { return x.ID.String() },
		begun:   func(x *trail.Decision) time.Time { return x.DecidedAt },
		changes: func(n *trail.News) *[]trail.RowChange[trail.Decision] { return &n.Decisions },
		rows:    func(d *trail.Derived) *[]trail.Decision { return &d.Decisions },
	}
	loopTable = table[trail.Loop]{
		name:    "loops",
		key:     func(l *trail.Loop) string { return l.ID.String() },
		begun:   func(l *trail.Loop) time.Time { return l.OpenedAt },
		outcome: func(l *trail.Loop) string { return string(l.ClosedBy) },
		changes: func(n *trail.News) *[]trail.RowChange[trail.Loop] { return &n.Loops },
		rows:    func(d *trail.Derived) *[]trail.Loop { return &d.Loops },
	}
	drainTable = table[trail.Drain]{
		name:  "drains",
		key:   func(d *trail.Drain) string { return d.ID.String() },
		begun: func(d *trail.Drain) time.Time { return d.StartedAt },
		rows:  func(d *trail.Derived) *[]trail.Drain { return &d.Drains },
	}
	blockerTable = table[trail.DrainBlocker]{
		name:  "drain_blockers",
		key:   func(b *trail.DrainBlocker) string { return b.VMIUID },
		begun: func(b *trail.DrainBlocker) time.Time { return b.WaitingSince },
		rows:  func(d *trail.Derived) *[]trail.DrainBlocker { return &d.Blockers },
	}
	consequenceTable = table[trail.Consequence]{
		name:  "consequences",
		key:   func(c *trail.Consequence) string { return c.ID.String() },
		begun: func(c *trail.Consequence) time.Time { return c.At },
		rows:  func(d *trail.Derived) *[]trail.Consequence { return &d.Consequences },
	}
	outageTable = table[trail.Outage]{
		name:  "outages",
		key:   func(o *trail.Outage) string { return o.ID.String() },
		begun: func(o *trail.Outage) time.Time { return o.BeganAt },
		rows:  func(d *trail.Derived) *[]trail.Outage { return &d.Outages },
	}
	gapTable = table[trail.Gap]{
		name:  "gaps",
		key:   func(g *trail.Gap) string { return g.ID.String() },
		begun: func(g *trail.Gap) time.Time { return g.OpenedAt },
		rows:  func(d *trail.Derived) *[]trail.Gap { return &d.Gaps },
	}
	lineTable = table[trail.Line]{
		name:  "timeline",
		key:   func(l *trail.Line) string { return l.EventID.String() },
		begun: func(l *trail.Line) time.Time { return l.At },
		rows:  func(d *trail.Derived) *[]trail.Line { return &d.Timeline },
	}
)

func maxTime(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
