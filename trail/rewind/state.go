package rewind

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// State returns how it stood with the cluster at the time up to which Advance went.
func (r *Replay) State() trail.State {
	rows := trail.StateRows{
		Guests: map[string]int{}, Loops: map[trail.LoopPlace]int{},
		FailingHour: map[trail.FailureClass]int{}, FailingDay: map[trail.FailureClass]int{},
	}
	for node, guests := range r.onNode {
		rows.Guests[node] = len(guests)
	}
	for e, p := range r.evacuations {
		rows.Evacuations = append(rows.Evacuations, p.apply(*e))
	}
	for m := range r.migrations {
		rows.Migrations = append(rows.Migrations, r.unfinish(*m))
	}
	r.countEnded(&rows)
	for _, d := range r.cooling {
		if p := r.guests[d.VMIUID]; p != nil && d.Until.After(r.at) {
			rows.Cooling = append(rows.Cooling, trail.Cooling{
				Namespace: d.Namespace, VMI: d.VMI, Node: p.Node, Base: time.Duration(d.Base),
				Effective: time.Duration(d.Effective), Until: d.Until,
			})
		}
	}
	for l := range r.loops {
		rows.Loops[trail.LoopPlace{Kind: l.Kind, Node: l.Node}]++
		if n, repeated := l.Repetitions(); repeated {
			rows.Repeated = append(rows.Repeated, trail.LoopCount{Namespace: l.Namespace, VMI: l.VMI, Kind: l.Kind,
				Count: n})
		}
	}
	for d := range r.drains {
		row := *d
		row.EndedAt, row.Outcome = time.Time{}, ""
		rows.Drains = append(rows.Drains, row)
		for p := range r.onNode[d.Node] {
			rows.Blocked = append(rows.Blocked, r.findBlocker(p))
		}
	}
	return trail.NewState(rows, r.env, r.at)
}

// apply returns an evacuation as it stood.
func (p *progress) apply(e trail.Evacuation) trail.Evacuation {
	e.EndedAt, e.Outcome, e.NextRetryAt, e.ObjectiveMet = time.Time{}, "", time.Time{}, nil
	e.FailedAttempts, e.FirstFailedAt = p.failed, p.firstFailed
	e.LastFailureClass, e.LastFailureReason = p.lastClass, p.lastReason
	e.InProgress, e.InProgressLostAt = p.inProgress, p.lostAt
	return e
}

// unfinish returns a migration as it stood while it went on.
func (r *Replay) unfinish(m trail.Migration) trail.Migration {
	m.FinishedAt, m.Outcome = time.Time{}, ""
	if m.SchedulingAt.After(r.at) {
		m.SchedulingAt = time.Time{}
	}
	return m
}

// leastMoves is from how many moves on a VM has a gauge of them.
const leastMoves = 3

// countEnded counts the migrations that ended not long ago.
func (r *Replay) countEnded(rows *trail.StateRows) {
	type vm struct{ namespace, name string }
	type moves struct {
		vm
		trigger trail.Trigger
	}
	type failing struct {
		vm
		class trail.FailureClass
	}
	counts, hour, day := map[moves]int{}, map[failing]bool{}, map[failing]bool{}
	moved, rebalanced := map[vm][]trail.Migration{}, map[vm]int{}
	for _, m := range r.ended {
		of, age := vm{m.Namespace, m.VMI}, r.at.Sub(m.FinishedAt)
		switch m.Outcome { //nolint:exhaustive // the others are counted nowhere
		case trail.OutcomeSucceeded:
			counts[moves{of, m.Trigger}]++
			if age < 12*time.Hour {
				moved[of] = append(moved[of], *m)
				if m.Trigger == trail.TriggerDescheduler {
					rebalanced[of]++
				}
			}
		case trail.OutcomeFailed:
			class := m.FailureClass
			if class == "" {
				class = trail.FailureUnknown
			}
			day[failing{of, class}] = true
			if age < time.Hour {
				hour[failing{of, class}] = true
			}
		}
	}
	for of, n := range counts {
		if n >= leastMoves {
			rows.Moves = append(rows.Moves, trail.VMCount{Namespace: of.namespace, VMI: of.name,
				Trigger: of.trigger, Count: n})
		}
	}
	for of, n := range rebalanced {
		if n > 1 {
			rows.Moved = append(rows.Moved, moved[of]...)
		}
	}
	for of := range hour {
		rows.FailingHour[of.class]++
	}
	for of := range day {
		rows.FailingDay[of.class]++
	}
}

// findBlocker says of a guest of a node that is being drained why it is still there, as far as its rows show: what was
// answered to those who asked is not among them.
func (r *Replay) findBlocker(p *trail.Placement) trail.DrainBlocked {
	b := trail.DrainBlocked{Namespace: p.Namespace, VMI: p.VMI, Node: p.Node, Blocker: trail.BlockerQueued}
	if !p.NotMigratableSince.IsZero() && !p.NotMigratableSince.After(r.at) {
		b.NotMigratable = p.NotMigratable
	}
	marked, failed := r.findEvacuation(p)
	switch {
	case r.isSilent(p.Node):
		b.Blocker = trail.BlockerNodeNotReady
	case p.Strategy == trail.StrategyExternal:
		b.Blocker = trail.BlockerExternal
	case marked && r.isMoving(p):
		b.Blocker = trail.BlockerMigrating
	case failed:
		b.Blocker = trail.BlockerFailing
	case b.NotMigratable != "" && (marked || trail.AsksToBeMoved(p.Strategy)):
		b.Blocker = trail.BlockerNotMigratable
	case !marked && !trail.AsksToBeMoved(p.Strategy):
		b.Blocker = trail.BlockerOptedOut
	}
	return b
}

// findEvacuation reports whether a guest is to leave its node, and whether an attempt failed.
func (r *Replay) findEvacuation(p *trail.Placement) (marked, failed bool) {
	for e, its := range r.evacuations {
		if e.VMIUID == p.VMIUID && e.Node == p.Node {
			marked, failed = true, failed || its.failed > 0
		}
	}
	return marked, failed
}

// isMoving reports whether a migration of a guest has its target pod.
func (r *Replay) isMoving(p *trail.Placement) bool {
	for m := range r.migrations {
		if m.VMIUID == p.VMIUID && !m.SchedulingAt.IsZero() && !m.SchedulingAt.After(r.at) {
			return true
		}
	}
	return false
}

// isSilent reports whether the kubelet of a node does not answer.
func (r *Replay) isSilent(node string) bool {
	for o := range r.outages {
		if o.Node == node && o.Cause == trail.OutageSilent {
			return true
		}
	}
	return false
}
