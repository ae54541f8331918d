package trail

import "time"

// backoffFirst is how long KubeVirt waits after the first failure; each further one that it still sees doubles it. It
// sees five: 320 s is the most.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, handleMigrationBackoff.
const backoffFirst = 20 * time.Second

// BackoffAfter returns how long KubeVirt waits after so many failures in a row that it still sees.
func BackoffAfter(failed int) time.Duration {
	if failed <= 0 {
		return 0
	}
	return backoffFirst << (min(failed, FinishedKept) - 1)
}

// BackoffModel names whose rules a backoff follows.
const BackoffModel = "kubevirt"

// backoffAfter returns what KubeVirt waits after an attempt that failed: it walks the migrations of its controllers that
// still exist, from the newest back to a success, and leaves out those that are being deleted. Failed are those that
// count, the newest first.
func backoffAfter(m *migration, migrations []*migration) (wait time.Duration, failed []string, survivors int) {
	kept := finishedAt(migrations, m.FinishedAt)
	for _, x := range kept {
		switch {
		case !x.backsOff():
			continue
		case x.Outcome == OutcomeSucceeded:
			return BackoffAfter(len(failed)), failed, len(kept)
		case x.deletion != nil && !x.deletion.Final || x.Outcome != OutcomeFailed:
			continue
		}
		failed = append(failed, x.Name)
	}
	return BackoffAfter(len(failed)), failed, len(kept)
}

// backsOff returns the migrations that KubeVirt's controllers make: those of users are never held back.
func (m *migration) backsOff() bool { return m.spec.Evacuation || m.spec.WorkloadUpdate }

// decideBackoffs returns the decisions of KubeVirt's backoff about one VMI, whose migrations they are.
func decideBackoffs(l *life, mine []*migration, env *Env, now *moment) []Decision {
	var out []Decision
	for i, m := range mine {
		if m.Outcome != OutcomeFailed || !m.backsOff() || m.spec.WorkloadUpdate && !m.spec.Evacuation && !env.kubevirtSettingsAt(m.FinishedAt).delaysUpdates() {
			continue
		}
		wait, failed, survivors := backoffAfter(m, mine)
		if wait == 0 {
			continue
		}
		m.retryAt = m.FinishedAt.Add(wait) // also for an attempt of the next evacuation
		if !l.triesAgain(m) {
			continue
		}
		d := Decision{
			ID: hashID("backoff", m.UID), Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid, Node: m.SourceNode, DecidedAt: m.FinishedAt,
			Layer: LayerBackoff, Verdict: VerdictHolds, Reason: DecidedFailed, Base: Span(backoffFirst), Count: len(failed),
			Effective: Span(wait), Until: m.retryAt, Cap: Span(BackoffAfter(FinishedKept)),
			Capped: len(failed) == FinishedKept && failedInARow(mine[:i+1]) > FinishedKept, Model: BackoffModel, Origin: OriginDerived, EventID: m.EndEvent, toldAt: m.EndSeenAt,
			Inputs: Inputs{Migration: m.Name, MigrationUID: m.UID, EndedAt: m.FinishedAt, Failed: failed, Survivors: survivors},
		}
		out = append(out, d)
		over := l.findAttemptsEnd(m)
		switch superseded := i+1 < len(mine) && mine[i+1].Outcome == OutcomeFailed && mine[i+1].FinishedAt.Before(d.Until); {
		case superseded:
		case !over.IsZero() && over.Before(d.Until):
			out = append(out, d.newRelease(DecidedOver, over, m.UID))
		case now.hasReached(d.Until):
			out = append(out, d.newRelease(DecidedExpired, d.Until, m.UID))
		}
	}
	return out
}

// failedInARow counts the failures that ended in the last of some migrations, whether they still exist or not.
func failedInARow(migrations []*migration) int {
	n := 0
	for i := len(migrations) - 1; i >= 0; i-- {
		m := migrations[i]
		if m.backsOff() && m.Outcome == OutcomeSucceeded {
			break
		}
		if m.backsOff() && m.Outcome == OutcomeFailed {
			n++
		}
	}
	return n
}

// delaysUpdates reports whether KubeVirt of this version waits after a failed workload update, too: since v1.4.
func (s KubeVirtSettings) delaysUpdates() bool {
	major, minor, known := majorMinor(s.Version)
	return !known || major > 1 || minor >= 4
}

// triesAgain reports whether KubeVirt makes another attempt after one that failed: while the evacuation is open, or, for a
// workload update, while the VMI lives.
func (l *life) triesAgain(m *migration) bool {
	if m.evacuation == nil && !m.spec.WorkloadUpdate {
		return false
	}
	over := l.findAttemptsEnd(m)
	return over.IsZero() || over.After(m.FinishedAt)
}

// findAttemptsEnd returns the time from which on KubeVirt makes no more attempts of this sort; zero while it does. A VMI that is being deleted it
// leaves alone.
func (l *life) findAttemptsEnd(m *migration) time.Time {
	over := l.endedAt
	if m.evacuation != nil {
		over = m.evacuation.EndedAt
	}
	if !l.deletedAt.IsZero() && (over.IsZero() || l.deletedAt.Before(over)) {
		return l.deletedAt
	}
	return over
}
