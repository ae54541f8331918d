package metrics

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evictrail/evictrail/trail"
)

// settleAfter is how long what was stored waits before it is counted: an API server sends audit events up to 30 s late, and
// the object that says why a migration failed may follow the one that says that it did. A counter cannot be put right.
const settleAfter = 40 * time.Second

// judgedAfter is how long after a move is known for good what came of it: one that was made before evictrail came is counted where that is known later.
const judgedAfter = 15 * time.Minute

// forgetAfter is how long the series of a node that is gone stay: what ended with it is counted and scraped during that time.
const forgetAfter = 5 * time.Minute

// ledger holds what was stored and is not counted yet.
type ledger struct {
	mu      sync.Mutex
	since   time.Time // what happened before is history, and not counted
	entries map[string]entry
	gone    map[string]time.Time // nodes that are gone, and when their series go
}

// entry is one thing to count, as it was last reported.
type entry struct {
	due   time.Time
	count func()
}

func newLedger() *ledger { return &ledger{entries: map[string]entry{}, gone: map[string]time.Time{}} }

// CountSince says from when on things are counted: since evictrail last saw the cluster, or since now where it never did.
// What an initial list shows of earlier days then makes no counter jump.
func (m *Metrics) CountSince(t time.Time) {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.since = t
}

// Count takes in what was newly stored, and counts what has settled by now.
func (m *Metrics) Count(n trail.News, now time.Time) {
	l := m.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	m.countFacts(n, now)
	for _, t := range n.Requests {
		r := t.Row
		updateLedger(l, "request ", t, t.Began(), !r.DryRun, r.RequestedAt, now, func() { m.countRequest(r) })
	}
	for _, t := range n.Evacuations {
		e := t.Row
		updateLedger(l, "marked ", t, t.Began(), true, e.MarkedAt, now, func() { m.countMark(e) })
		updateLedger(l, "ended ", t, t.Ended(string(e.Outcome)), e.Outcome != "", e.EndedAt, now, func() { m.countEvacuation(e) })
		updateLedger(l, "judged ", t, !t.Judged, e.ObjectiveMet != nil, e.JudgedAt(), now, func() { m.countObjective(e) })
	}
	for _, t := range n.Migrations {
		x := t.Row
		updateLedger(l, "migration ", t, t.Ended(string(x.Outcome)), x.Outcome != "", x.FinishedAt, now, func() { m.countMigration(x) })
		updateLedger(l, "move ", t, !t.Judged, x.BenefitFinal && x.Benefit != "", x.FinishedAt.Add(judgedAfter), now, func() { m.moves.WithLabelValues(string(x.AskedBy), string(x.Benefit)).Inc() })
	}
	for _, t := range n.Placements {
		p := t.Row
		isNew := t.Change != trail.ChangeGone && !trail.Ending(t.Was).ByPlatform() // what was known of the end before may have been less
		updateLedger(l, "guest ", t, isNew, p.EndedBy.ByPlatform(), p.ToAt, now, func() { m.guestEnded(p) })
	}
	for _, t := range n.Decisions {
		d := t.Row
		updateLedger(l, "decision ", t, t.Began(), true, d.DecidedAt, now, func() { m.countDecision(d) })
	}
	for _, t := range n.Loops {
		k := t.Row.Kind
		updateLedger(l, "loop ", t, t.Began(), true, t.Row.OpenedAt, now, func() { m.loops.WithLabelValues(string(k)).Inc() })
	}
	l.countDue(now)
	for node, due := range l.gone {
		if !due.After(now) {
			m.removeNodeSeries(node)
			delete(l.gone, node)
		}
	}
}

// CountRest counts what waits: nothing more will be reported.
func (m *Metrics) CountRest() {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.countDue(time.Time{})
}

// updateLedger notes a thing to count where it is new, puts right what was noted of it, also under another ID before, and forgets it
// where its row is gone or it holds no more: an evacuation that ended may turn out to go on. What was reported under another ID and is
// not noted here was counted, or another replica will.
func updateLedger[R any](l *ledger, what string, t trail.RowChange[R], isNew, holds bool, at, now time.Time, count func()) {
	key := what + t.ID
	if e, noted := l.entries[what+t.Instead]; noted && t.Instead != "" {
		delete(l.entries, what+t.Instead)
		l.entries[key] = e
	}
	e, noted := l.entries[key]
	switch {
	case t.Change == trail.ChangeGone, noted && !holds:
		delete(l.entries, key)
	case noted:
		l.entries[key] = entry{e.due, count}
	case isNew && holds && !at.Before(l.since):
		l.entries[key] = entry{now.Add(settleAfter), count}
	}
}

// countDue counts what is due, or everything where no time is given.
func (l *ledger) countDue(now time.Time) {
	for key, e := range l.entries {
		if now.IsZero() || !e.due.After(now) {
			e.count()
			delete(l.entries, key)
		}
	}
}

// countFacts counts the facts that were new, and the phases that migrations reached.
func (m *Metrics) countFacts(n trail.News, now time.Time) {
	triggers := map[string]trail.Trigger{}
	for _, t := range n.Migrations {
		triggers[t.Row.UID] = t.Row.Trigger
	}
	for _, f := range n.Facts {
		kind := string(f.Kind)
		m.Facts.WithLabelValues(kind, StageCommitted).Inc()
		if f.OccurredAt.Before(n.Settled) {
			m.Facts.WithLabelValues(kind, StageSettled).Inc()
		}
		observeWithExemplar(m.commitLag.WithLabelValues(kind), max(now.Sub(f.ObservedAt), 0), f.ID.String())
		if f.Late && !f.OccurredAt.Before(m.ledger.since) {
			m.recovered.WithLabelValues(string(f.Object.Kind)).Inc()
		}
		if f.Reason == trail.ReasonDeletedUnseen {
			m.unrecoverable.WithLabelValues(string(f.Object.Kind)).Inc()
		}
		switch d := f.Detail.(type) {
		case *trail.BlocksDetail:
			m.blocks.WithLabelValues(string(f.Reason), f.Node, f.Namespace).Add(float64(d.Increase))
		case *trail.EndDetail:
			if f.Kind == trail.KindMigrationGone && f.Reason == trail.ReasonDeletedUnseen && !d.Final {
				m.Lost.WithLabelValues(string(f.Object.Kind), LostGCBeforeSeen).Inc()
			}
		}
		if f.Kind == trail.KindNodeGone {
			m.ledger.gone[f.Node] = now.Add(forgetAfter)
		}
		if f.Kind == trail.KindMigrationPhase {
			m.phases.WithLabelValues(phaseLabel(f.Value), string(cmp.Or(triggers[f.MigrationUID], trail.TriggerUnknown))).Inc()
		}
	}
}

func (m *Metrics) countRequest(r trail.EvictionRequest) {
	m.requests.WithLabelValues(string(r.RequesterClass), string(r.Answer)).Inc()
}

func (m *Metrics) countMark(e trail.Evacuation) {
	m.started.WithLabelValues(e.Node, string(e.RequesterClass)).Inc()
}

func (m *Metrics) countEvacuation(e trail.Evacuation) {
	m.ended.WithLabelValues(e.Node, string(e.Outcome)).Inc()
	observeWithExemplar(m.evacuationTime.WithLabelValues(string(e.RequesterClass), string(e.Outcome)), e.EndedAt.Sub(e.MarkedAt), e.ID.String())
}

func (m *Metrics) guestEnded(p trail.Placement) {
	m.guestsEnded.WithLabelValues(string(p.EndedBy), string(cmp.Or(p.EndedRequesterClass, trail.RequesterUnknown))).Inc()
}

func (m *Metrics) countObjective(e trail.Evacuation) {
	result := ObjectiveMissed
	if *e.ObjectiveMet {
		result = ObjectiveMet
	}
	m.objectives.WithLabelValues(string(e.RequesterClass), result).Inc()
}

func (m *Metrics) countMigration(x trail.Migration) {
	event := eventID(x.EndEvent)
	class := cmp.Or(string(x.FailureClass), ClassNone)
	if x.Outcome == trail.OutcomeAborted {
		class = string(trail.FailureAborted)
	}
	c := m.migrations.WithLabelValues(string(x.Outcome), class, string(x.Trigger))
	if adder, ok := c.(prometheus.ExemplarAdder); ok && event != "" && x.Outcome == trail.OutcomeFailed {
		adder.AddWithExemplar(1, eventExemplar(event))
	} else {
		c.Inc()
	}
	if x.FailureClass == trail.FailurePostCopy {
		m.postCopy.WithLabelValues(x.SourceNode).Inc()
	}
	observeWithExemplar(m.migrationTime.WithLabelValues(string(x.Outcome), string(x.Trigger)), x.FinishedAt.Sub(x.CreatedAt), event)
	if !x.SchedulingAt.IsZero() {
		observeWithExemplar(m.queueWait.WithLabelValues(string(x.Trigger)), x.SchedulingAt.Sub(x.CreatedAt), event)
	}
	for i := range x.Phases {
		if i+1 < len(x.Phases) {
			observeWithExemplar(m.phaseTime.WithLabelValues(phaseLabel(x.Phases[i].Phase)), x.Phases[i+1].At.Sub(x.Phases[i].At), event)
		}
	}
}

// countDecision counts what an act met, and cooldowns as they begin. What the counters of the descheduler say comes as facts, too;
// where they are not read, the blocks that were derived stand for them.
func (m *Metrics) countDecision(d trail.Decision) {
	switch {
	case d.Verdict == trail.VerdictHolds && d.Layer == trail.LayerCooldown && d.Reason == trail.DecidedCompleted:
		observeWithExemplar(m.cooldowns.WithLabelValues(d.Origin), time.Duration(d.Effective), eventID(d.EventID))
	case d.Verdict != trail.VerdictBlocked:
	case d.Origin == trail.OriginObserved:
		m.decisions.WithLabelValues(string(trail.BlockReason(d.Inputs.ObservedReason)), d.Origin).Add(float64(d.Count))
	default:
		m.decisions.WithLabelValues(d.Reason, d.Origin).Inc()
		if !m.countsBlocks.Load() {
			m.blocks.WithLabelValues(d.Reason, d.Node, d.Namespace).Inc()
		}
	}
}

// phaseLabel keeps the label closed: a phase that KubeVirt may have one day is other.
func phaseLabel(phase string) string {
	if slices.Contains(trail.Phases(), phase) {
		return phase
	}
	return labelOther
}

const labelOther = string(trail.ReasonOther)

// eventID is for exemplars; empty where there is no fact to look at.
func eventID(of *trail.FactID) string {
	if of == nil {
		return ""
	}
	return of.String()
}

// observeWithExemplar observes a time, with the fact to look at where there is one. Clocks of the cluster may be apart: no time is
// less than zero.
func observeWithExemplar(o prometheus.Observer, d time.Duration, event string) {
	seconds := max(d, 0).Seconds()
	if e, ok := o.(prometheus.ExemplarObserver); ok && event != "" {
		e.ObserveWithExemplar(seconds, eventExemplar(event))
		return
	}
	o.Observe(seconds)
}

func eventExemplar(event string) prometheus.Labels { return prometheus.Labels{"event_id": event} }
