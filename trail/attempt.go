package trail

import (
	"cmp"
	"slices"
	"time"
)

// assignAttempts assigns to each evacuation migration the evacuation that was open when it was created, opens evacuations
// that no mark announced, and numbers the attempts.
func assignAttempts(lives []*life, migrations []*migration, env *Env) {
	for _, m := range migrations {
		l := lifeOf(lives, m.VMIUID)
		if l == nil || !m.spec.Evacuation || m.spec.SendTo != "" || m.spec.Receive != "" {
			continue
		}
		e := l.openFor(m)
		if e == nil {
			e = l.unmarkedEvacuation(m, migrations, env)
		}
		if e == nil {
			continue
		}
		m.evacuation = e
		e.running, e.triedUntil = e.running || m.FinishedAt.IsZero(), maxTime(e.triedUntil, m.FinishedAt)
	}
	for _, l := range lives {
		slices.SortStableFunc(l.evacuations, func(a, b *evacuation) int { return a.MarkedAt.Compare(b.MarkedAt) })
		closeUnmarked(l, migrations)
	}
	count := map[*evacuation]int{}
	for _, m := range migrations {
		if e := m.evacuation; e != nil {
			count[e]++
			m.Attempt, m.EvacuationID = count[e], new(e.ID)
		}
		l := lifeOf(lives, m.VMIUID)
		if m.SourceNode == "" && l != nil {
			m.SourceNode = l.nodeAt(m.CreatedAt)
		}
	}
}

// retriedWithin is how long after the last attempt that is over KubeVirt makes the next one of an evacuation, for all that is seen of it. It makes it at once where
// there is a slot, and what holds that back ends after 320 s; anyone who is marked for longer is seen to be marked. A migration that comes later is for another
// evacuation, whose mark was not seen either.
const retriedWithin = 10 * time.Minute

// openFor finds the evacuation from the migration's node that was open when the migration was created, the latest if
// several were. Two live sights are compared on our own clock, which saw both; otherwise the cluster's times must do.
// Watches have no common order and times a resolution of 1 s, hence the slack. A mark that a list showed is older than
// its sight: it may be as old as the end of the evacuation before it.
func (l *life) openFor(m *migration) *evacuation {
	const slack = 2 * time.Second
	var found *evacuation
	before := time.Time{}
	for _, e := range l.evacuations {
		at, from, to := m.CreatedAt, e.MarkedAt, e.EndedAt
		switch {
		case e.late:
			from = before
		case !m.listed:
			at, from, to = m.seenAt, e.openAt, e.closeAt
		}
		before = e.EndedAt
		if e.Node != m.spec.EvacuationNode && m.spec.EvacuationNode != "" ||
			from.After(at.Add(slack)) || !to.IsZero() && to.Before(at.Add(-slack)) ||
			!e.untainted.IsZero() && e.untainted.Before(m.CreatedAt.Add(-slack)) ||
			e.MarkedBy == MarkedByMigration && !e.running && e.triedUntil.Before(m.CreatedAt.Add(-retriedWithin)) {
			continue
		}
		found = e
	}
	if found != nil && found.late && m.CreatedAt.Before(found.MarkedAt) {
		found.MarkedAt = m.CreatedAt
	}
	return found
}

// unmarkedEvacuation opens an evacuation by its first attempt: under a drain taint KubeVirt marks no VMI, and a mark
// that came and went in a gap was never seen. Without either, the annotation alone proves nothing: users can write it.
func (l *life) unmarkedEvacuation(m *migration, migrations []*migration, env *Env) *evacuation {
	e := &evacuation{late: m.listed, openAt: m.seenAt}
	e.Evacuation = Evacuation{
		ID: hashID("evacuation", m.UID), Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid, Node: m.spec.EvacuationNode,
		MarkedAt: m.CreatedAt, RequesterClass: RequesterUnknown, SeenLate: m.listed, Strategy: l.lastStrategy(),
	}
	switch {
	case env.drainTainted(e.Node, m.CreatedAt):
		e.MarkedBy, e.Trigger, e.Confidence = MarkedByTaint, TriggerDrainTaint, ConfidenceAsserted
		e.untainted = env.untaintedAfter(e.Node, m.CreatedAt)
		e.Evidence = "node " + e.Node + " bore the drain taint and the VMI no mark"
		if who := env.drainTaintedBy(e.Node, m.CreatedAt); who != nil {
			e.Requester, e.Impersonator = who.User, who.Impersonator // no eviction was requested, so that the class stays unknown
			e.Evidence += "; " + env.formatRequester(who) + " set the taint"
		}
	case m.listed || env.hasGapAt(m.CreatedAt) || m.spec.Priority == priorityCritical || m.spec.Priority == priorityMaintenance:
		e.MarkedBy = MarkedByMigration
		a := attributeMark(Fact{Node: e.Node, OccurredAt: m.CreatedAt}, m.markDetail(), env)
		e.Trigger, e.RequesterClass, e.Confidence, e.Evidence = a.trigger, a.class, ConfidenceInferred, a.evidence+"; the mark itself was not seen"
	default:
		return nil
	}
	e.closeUnmarkedAt(l, m, migrations)
	l.evacuations = append(l.evacuations, e)
	return e
}

// markDetail is what the priority, which only virt-controller may write, says about a mark that was not seen.
func (m *migration) markDetail() *MarkDetail {
	if m.spec.Priority == priorityMaintenance {
		return &MarkDetail{Source: "descheduler"}
	}
	return &MarkDetail{}
}

// lastStrategy returns the eviction strategy that the VMI last showed; empty where it showed none.
func (l *life) lastStrategy() string {
	s := ""
	for _, f := range l.facts {
		switch d := f.Detail.(type) {
		case *MarkDetail:
			s = cmp.Or(d.Strategy, s)
		case *VMIDetail:
			s = cmp.Or(d.Strategy, s)
		}
	}
	return s
}

// closeUnmarkedAt ends an evacuation that no mark announced where the guest left the node or ended.
func (e *evacuation) closeUnmarkedAt(l *life, m *migration, migrations []*migration) {
	for _, p := range l.placements {
		if p.FromAt.After(m.CreatedAt.Add(-time.Second)) && p.Node != e.Node {
			e.EndedAt, e.closeAt, e.Outcome, e.FulfilledBy = p.FromAt, p.FromAt, OutcomeMigrated, p.arrivalMigrationUID()
			return
		}
	}
	for _, x := range migrations {
		if x.Outcome == OutcomeSucceeded && x.VMIUID == l.uid && !x.FinishedAt.Before(m.CreatedAt) {
			e.EndedAt, e.closeAt, e.Outcome, e.FulfilledBy = x.FinishedAt, x.FinishedAt, OutcomeMigrated, x.UID
			return
		}
	}
	if !l.endedAt.IsZero() {
		e.EndedAt, e.closeAt, e.Outcome = l.endedAt, l.endSeen, OutcomeVMIGone
	}
}

// endSlack is how long after nobody called for more attempts a move or the VMI's end may still be what ended an evacuation.
const endSlack = time.Minute

// closeUnmarked ends the evacuations that no mark announced and that nothing else ended before: when the drain taint went
// away, or, where no taint was, when the last attempt is over and no mark calls for another. What moved the guest long
// afterwards was not theirs.
func closeUnmarked(l *life, migrations []*migration) {
	for _, e := range l.evacuations {
		if e.MarkedBy == MarkedByMark || e.running || e.MarkedBy == MarkedByTaint && e.untainted.IsZero() {
			continue
		}
		last := maxTime(e.triedUntil, e.untainted)
		fulfilled := slices.ContainsFunc(migrations, func(m *migration) bool { return m.evacuation == e && m.UID == e.FulfilledBy })
		if e.Outcome == "" || !fulfilled && last.Add(endSlack).Before(e.EndedAt) {
			e.EndedAt, e.closeAt, e.Outcome, e.FulfilledBy = last, last, OutcomeCancelled, ""
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
