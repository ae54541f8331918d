package trail

import (
	"fmt"
	"time"
)

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

// String says of a run how many migrations it has, why they failed, and when it began and ended: "Attempts 12-240: 229 × ...". Of a single migration it says what
// came of it: "Attempt 3 (kubevirt-evacuation-x): failed ...".
func (r AttemptRun) String() string {
	if r.Count == 1 {
		return UpperFirst(r.Last.formatLabel()) + ": " + r.Last.summarizeOutcome()
	}
	name, why := "Migrations", r.Last.whyShort()
	if r.First.Attempt > 0 {
		name = fmt.Sprintf("Attempts %d-%d", r.First.Attempt, r.Last.Attempt)
	}
	if r.Last.Outcome == OutcomeAborted {
		why = "aborted (" + why + ")"
	}
	return fmt.Sprintf("%s: %d × %s, first %s, last %s", name, r.Count, why, FormatClock(r.First.CreatedAt), FormatClock(r.Last.CreatedAt))
}

// summarizeOutcome says what came of a migration, when, and why where it moved nothing.
func (m *Migration) summarizeOutcome() string {
	switch {
	case m.Outcome == "":
		return "under way since " + FormatClock(m.CreatedAt)
	case m.Outcome == OutcomeSucceeded:
		return "moved " + m.SourceNode + " → " + m.TargetNode + " at " + FormatClock(m.FinishedAt)
	case m.FinishedAt.IsZero():
		return m.Outcome.Label().Short + ": " + m.whyShort()
	}
	return fmt.Sprintf("%s %s after %s: %s", m.Outcome.Label().Short, FormatClock(m.FinishedAt), formatSpan(m.FinishedAt.Sub(m.CreatedAt)), m.whyShort())
}

// AttemptLine is a run of attempts in an answer, as it goes into JSON.
type AttemptLine struct {
	Text    string    `json:"text"`
	Count   int       `json:"count"` // of migrations
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"` // when the last of them was created
}

// How many attempts an answer lists.
const (
	answerAlone = 1 // the newest, by itself
	answerRuns  = 5 // of the attempts before it
)

// listAttempts adds the migrations that were created since a time to an answer, newest first; where there is one, its Brief says all of it.
func (a *Answer) listAttempts(migrations []Migration, since time.Time) {
	for len(migrations) > 0 && migrations[0].CreatedAt.Before(since) {
		migrations = migrations[1:]
	}
	if len(migrations) < 2 {
		return
	}
	var runs []AttemptRun
	runs, a.AttemptsOlder = FoldAttempts(migrations, answerAlone, answerRuns)
	for _, r := range runs {
		a.Attempts = append(a.Attempts, AttemptLine{r.String(), r.Count, r.First.CreatedAt, r.Last.CreatedAt})
	}
}
