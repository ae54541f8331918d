package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// findRepeatedFailures finds the times in which all that was asked for failed to move one VMI, no matter who asked. Of
// an evacuation the first attempt counts: what KubeVirt tries after that is an endless retry or a dual retry. It is
// over when the guest moves.
func findRepeatedFailures(l *life, moves []move, own []*migration, env *Env, now *moment) []Loop {
	var failures []*Migration
	for _, m := range own {
		if m.Outcome == OutcomeFailed && m.Attempt <= 1 {
			failures = append(failures, &m.Migration)
		}
	}
	slices.SortStableFunc(failures, func(a, b *Migration) int { return a.EndSeenAt.Compare(b.EndSeenAt) })
	var loops []Loop
	for _, row := range splitAtMoves(failures, moves) {
		at := func(m *Migration) time.Time { return m.EndSeenAt }
		for _, b := range findBursts(row.of, at, env.thresholds.AllFailures, env.thresholds.FailedWithin) {
			loop := l.newFailureLoop(b)
			if loop.closeQuietly(l, b.quiet, now); !row.until.IsZero() && row.until.Before(b.quiet) {
				loop.close(row.until, LoopMigrated)
			}
			loop.Advice = loop.selectTense(adviceFailures(b.of[len(b.of)-1]), adviceOver(loop))
			loops = append(loops, loop)
		}
	}
	return env.settled.numberLoops(VMISubject(l.namespace, l.vmi), l.uid, LoopRepeatedFailures, loops)
}

// failureRow is failures without a move of the guest between them.
type failureRow struct {
	of    []*Migration
	until time.Time // when the guest moved; zero: it did not
}

// splitAtMoves splits failures at the moves of the guest, each in the order of times.
func splitAtMoves(failures []*Migration, moves []move) []failureRow {
	var out []failureRow
	for _, m := range moves {
		n := 0
		for n < len(failures) && failures[n].EndSeenAt.Before(m.at) {
			n++
		}
		out, failures = append(out, failureRow{failures[:n], m.at}), failures[n:]
	}
	return append(out, failureRow{of: failures})
}

// newFailureLoop makes the loop of a burst of failures.
func (l *life) newFailureLoop(b burst[*Migration]) Loop {
	loop := Loop{
		Kind: LoopRepeatedFailures, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid,
		OpenedAt: b.opened, Counts: map[string]int{countFailures: len(b.of)},
	}
	var proof []Exhibit
	for _, m := range b.of {
		x := m.newExhibit()
		x.Text += fmt.Sprintf(" (for: %s)", m.Trigger.Label())
		proof = append(proof, x)
	}
	loop.setEvidence(proof)
	last := b.of[len(b.of)-1]
	took := formatSpan(last.EndSeenAt.Sub(b.of[0].EndSeenAt))
	asked := countTriggers(b.of, func(m *Migration) Trigger { return m.Trigger })
	loop.Summary = fmt.Sprintf("%s/%s failed to move %d times in a row in %s (%s); the last failure: %s.",
		l.namespace, l.vmi, len(b.of), took, asked, last.whyShort())
	return loop
}

// countTriggers says how often each trigger was the cause, in the order in which they come first: 3 for user, 2 for
// drain.
func countTriggers[T any](all []T, of func(T) Trigger) string {
	count := map[Trigger]int{}
	var order []Trigger
	for _, x := range all {
		if count[of(x)]++; count[of(x)] == 1 {
			order = append(order, of(x))
		}
	}
	parts := make([]string, len(order))
	for i, t := range order {
		parts[i] = fmt.Sprintf("%d for %s", count[t], t.Label())
	}
	return strings.Join(parts, ", ")
}
