package rewind

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Replay goes through a History from its beginning to its end.
type Replay struct {
	history *History
	env     *trail.Env
	moments []moment // in the order of their times
	next    int      // the first of them that has not come
	at      time.Time
	news    trail.News

	// What is open at the time.
	evacuations map[*trail.Evacuation]*progress
	migrations  map[*trail.Migration]bool
	guests      map[string]*trail.Placement          // by UID of the VMI
	onNode      map[string]map[*trail.Placement]bool // the same, by node
	cooling     map[string]*trail.Decision           // by UID of the VMI
	loops       map[*trail.Loop]bool
	drains      map[*trail.Drain]bool
	outages     map[*trail.Outage]bool
	ended       []*trail.Migration // within MovesReach, in the order of their ends
}

// moment is a time at which something changes. Without an act only time itself does: a window has passed.
type moment struct {
	at  time.Time
	act func()
}

// progress is what has become of an open evacuation.
type progress struct {
	failed      int // attempts
	firstFailed time.Time
	lastClass   trail.FailureClass
	lastReason  trail.FailureReason
	inProgress  string    // trail.Evacuation.InProgress
	lostAt      time.Time // trail.Evacuation.InProgressLostAt
}

// New returns a Replay that stands before the History: call Advance.
func New(h *History) *Replay {
	r := &Replay{
		history: h, env: trail.NewEnv(h.Rules), evacuations: map[*trail.Evacuation]*progress{},
		migrations: map[*trail.Migration]bool{},
		guests:     map[string]*trail.Placement{}, onNode: map[string]map[*trail.Placement]bool{},
		cooling: map[string]*trail.Decision{},
		loops:   map[*trail.Loop]bool{}, drains: map[*trail.Drain]bool{}, outages: map[*trail.Outage]bool{},
	}
	r.env.Judge(h.Thresholds)
	r.planPlacements()
	byID := r.planEvacuations()
	r.planMigrations(byID)
	r.planAnnotations(byID)
	r.planDecisions()
	r.planRest()
	slices.SortStableFunc(r.moments, func(a, b moment) int { return a.at.Compare(b.at) })
	return r
}

// plan has something happen at a time; a zero time never comes.
func (r *Replay) plan(at time.Time, act func()) {
	if !at.IsZero() {
		r.moments = append(r.moments, moment{at, act})
	}
}

// Next returns when something changes next; zero where nothing does.
func (r *Replay) Next() time.Time {
	if r.next == len(r.moments) {
		return time.Time{}
	}
	return r.moments[r.next].at
}

// Advance goes on to a time and returns what happened since the one before.
func (r *Replay) Advance(at time.Time) trail.News {
	r.at, r.news = at, trail.News{}
	for ; r.next < len(r.moments) && !r.moments[r.next].at.After(at); r.next++ {
		if act := r.moments[r.next].act; act != nil {
			act()
		}
	}
	for len(r.ended) > 0 && !r.ended[0].FinishedAt.After(at.Add(-MovesReach)) {
		r.ended = r.ended[1:]
	}
	return r.news
}

func (r *Replay) planPlacements() {
	for i := range r.history.Placements {
		p := &r.history.Placements[i]
		r.plan(p.FromAt, func() {
			r.guests[p.VMIUID] = p
			if r.onNode[p.Node] == nil {
				r.onNode[p.Node] = map[*trail.Placement]bool{}
			}
			r.onNode[p.Node][p] = true
		})
		r.plan(p.NotMigratableSince, nil)
		r.plan(p.ToAt, func() {
			if r.guests[p.VMIUID] == p {
				delete(r.guests, p.VMIUID)
			}
			delete(r.onNode[p.Node], p)
			r.addPlacementEnd(p)
		})
	}
}

// planEvacuations returns the evacuations by ID.
func (r *Replay) planEvacuations() map[trail.FactID]*trail.Evacuation {
	byID := make(map[trail.FactID]*trail.Evacuation, len(r.history.Evacuations))
	for i := range r.history.Evacuations {
		e := &r.history.Evacuations[i]
		byID[e.ID] = e
		r.plan(e.MarkedAt, func() {
			r.ensureProgress(e)
			r.addMark(e)
		})
		r.plan(e.EndedAt, func() {
			delete(r.evacuations, e)
			r.addEnd(e)
		})
		r.plan(e.JudgedAt(), func() { r.addJudgement(e) })
	}
	return byID
}

// ensureProgress returns what became of an evacuation that is open.
func (r *Replay) ensureProgress(e *trail.Evacuation) *progress {
	p := r.evacuations[e]
	if p == nil {
		p = &progress{}
		r.evacuations[e] = p
	}
	return p
}

// windows are the times after a migration after which gauges count it no more.
var windows = []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour, MovesReach}

// knownAfter is how long after its end it is known for good what a move brought.
const knownAfter = 15 * time.Minute

func (r *Replay) planMigrations(byID map[trail.FactID]*trail.Evacuation) {
	for i := range r.history.Migrations {
		m := &r.history.Migrations[i]
		var of *trail.Evacuation
		if m.EvacuationID != nil {
			of = byID[*m.EvacuationID]
		}
		if of != nil {
			m.AskedBy = of.RequesterClass
		}
		r.plan(m.CreatedAt, func() { r.migrations[m] = true })
		r.plan(m.SchedulingAt, nil)
		r.plan(m.FinishedAt, func() {
			delete(r.migrations, m)
			r.ended = append(r.ended, m)
			if p := r.evacuations[of]; p != nil && m.Outcome == trail.OutcomeFailed {
				p.addFailure(m)
			}
			r.addMigrationEnd(m)
		})
		if m.FinishedAt.IsZero() {
			continue
		}
		for _, w := range windows {
			r.plan(m.FinishedAt.Add(w), nil)
		}
		r.plan(m.FinishedAt.Add(knownAfter), func() { r.addBenefit(m) })
	}
}

// addFailure takes in a failed attempt.
func (p *progress) addFailure(m *trail.Migration) {
	if p.failed++; p.firstFailed.IsZero() {
		p.firstFailed = m.FinishedAt
	}
	p.lastClass, p.lastReason = m.FailureClass, m.FailureReason
}

// planAnnotations follows the annotation eviction-in-progress, as setting it for an evacuation does: the watch of pods
// may show it before the mark is seen.
func (r *Replay) planAnnotations(byID map[trail.FactID]*trail.Evacuation) {
	type guest struct{ uid, node string }
	of := map[guest][]*trail.Evacuation{}
	for _, e := range byID {
		key := guest{e.VMIUID, e.Node}
		of[key] = append(of[key], e)
	}
	for i := range r.history.Annotations {
		f := &r.history.Annotations[i]
		for _, e := range of[guest{f.VMIUID, f.Node}] {
			at := f.OccurredAt
			switch {
			case !e.EndedAt.IsZero() && !at.Before(e.EndedAt), f.Reason != trail.ReasonEvictionInProgress:
				continue
			case at.Before(e.MarkedAt):
				at = e.MarkedAt
			}
			r.plan(at, func() { r.ensureProgress(e).setAnnotation(f, e) })
		}
	}
}

// setAnnotation takes in that the annotation was set or cleared.
func (p *progress) setAnnotation(f *trail.Fact, e *trail.Evacuation) {
	switch {
	case f.Kind == trail.KindAnnotationSet:
		p.inProgress, p.lostAt = e.InProgress, time.Time{}
	case f.OccurredAt.Before(e.MarkedAt):
		p.inProgress = ""
	default:
		p.lostAt = f.OccurredAt
	}
}

func (r *Replay) planDecisions() {
	for i := range r.history.Decisions {
		d := &r.history.Decisions[i]
		r.plan(d.DecidedAt, func() {
			switch {
			case d.Layer != trail.LayerCooldown:
			case d.Verdict == trail.VerdictHolds && d.Until.After(d.DecidedAt):
				r.cooling[d.VMIUID] = d
			case d.Verdict == trail.VerdictReleased:
				delete(r.cooling, d.VMIUID)
			}
			r.addDecision(d)
		})
		if d.Layer == trail.LayerCooldown && d.Verdict == trail.VerdictHolds {
			r.plan(d.Until, func() {
				if r.cooling[d.VMIUID] == d {
					delete(r.cooling, d.VMIUID)
				}
			})
		}
	}
}

func (r *Replay) planRest() {
	for i := range r.history.Loops {
		l := &r.history.Loops[i]
		r.plan(l.OpenedAt, func() {
			r.loops[l] = true
			r.addLoop(l)
		})
		r.plan(l.ClosedAt, func() { delete(r.loops, l) })
	}
	for i := range r.history.Drains {
		d := &r.history.Drains[i]
		r.plan(d.StartedAt, func() { r.drains[d] = true })
		r.plan(d.EndedAt, func() { delete(r.drains, d) })
	}
	for i := range r.history.Outages {
		o := &r.history.Outages[i]
		r.plan(o.BeganAt, func() { r.outages[o] = true })
		r.plan(o.EndedAt, func() { delete(r.outages, o) })
	}
	for i := range r.history.Requests {
		q := &r.history.Requests[i]
		r.plan(q.RequestedAt, func() { r.addRequest(q) })
	}
	for i := range r.history.Blocks {
		f := &r.history.Blocks[i]
		r.plan(f.OccurredAt, func() { r.news.Facts = append(r.news.Facts, *f) })
	}
	for i := range r.history.Rules {
		r.plan(r.history.Rules[i].OccurredAt, nil)
	}
}
