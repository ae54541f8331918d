package trail

import "fmt"

// AttemptRun is a migration or, where neighbours failed alike, a run of them.
type AttemptRun struct {
	First, Last *Migration // in the order of their creation; the same one where the run has no other
	Count       int
}

// FoldAttempts returns migrations, which come in the order of their creation, newest first: the newest of them singly, as many as alone says, and of those before
// them each run that failed alike as one. Rest counts the oldest, which are in none of at most limit runs.
func FoldAttempts(migrations []Migration, alone, limit int) (runs []AttemptRun, rest int) {
	for i := len(migrations) - 1; i >= 0; i-- {
		m := &migrations[i]
		if n := len(runs); n > alone && runs[n-1].First.failedLike(m) {
			runs[n-1].First = m
			runs[n-1].Count++
			continue
		}
		if len(runs) == alone+limit {
			return runs, i + 1
		}
		runs = append(runs, AttemptRun{m, m, 1})
	}
	return runs, 0
}

// failedLike reports whether two migrations failed or were aborted for the same reason, as attempts of one evacuation or of none.
func (m *Migration) failedLike(o *Migration) bool {
	sameEvacuation := m.EvacuationID == o.EvacuationID || m.EvacuationID != nil && o.EvacuationID != nil && *m.EvacuationID == *o.EvacuationID
	return (m.Outcome == OutcomeFailed || m.Outcome == OutcomeAborted) && m.Outcome == o.Outcome && sameEvacuation &&
		m.FailureClass == o.FailureClass && m.FailureReason == o.FailureReason
}

// String says of a run how many migrations it has, why they failed, and when it began and ended: "Attempts 12-240: 229 × ...".
func (r AttemptRun) String() string {
	name := "Migrations"
	if r.First.Attempt > 0 {
		name = fmt.Sprintf("Attempts %d-%d", r.First.Attempt, r.Last.Attempt)
	}
	why := r.Last.whyShort()
	if r.Last.Outcome == OutcomeAborted {
		why = "aborted (" + why + ")"
	}
	return fmt.Sprintf("%s: %d × %s, first %s, last %s", name, r.Count, why, formatClock(r.First.CreatedAt), formatClock(r.Last.CreatedAt))
}
