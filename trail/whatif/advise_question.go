package whatif

import (
	"errors"
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Bounds of a question for advice.
const (
	UsualAdvised = 8  // weeks in which advice is checked
	UsualLearn   = 4  // weeks on which each rests
	MostAdvised  = 52 // of both together
)

// AdviceQuestion asks which settings to take, by the history of some weeks.
type AdviceQuestion struct {
	Cluster  string
	Until    time.Time // when the last week ends; zero: now, or when the cluster was last seen
	Weeks    int       // in which advice is checked; zero: UsualAdvised
	Learn    int       // on which each advice rests; zero: UsualLearn
	Policies []Policy  // that are compared; with no sweep either: AdvicePolicies
	Sweep    *Sweep
	Progress func(time.Time) // is called with how far a replay is; may be nil
}

// Bound fills in what is not asked for. The error says what is wrong with the rest.
func (q *AdviceQuestion) Bound() error {
	if q.Weeks == 0 {
		q.Weeks = UsualAdvised
	}
	if q.Learn == 0 {
		q.Learn = UsualLearn
	}
	if q.Weeks < 1 || q.Learn < 1 || q.Weeks+q.Learn > MostAdvised {
		return fmt.Errorf(
			"weeks %d, learn %d: expected 1 or more of each, and at most %d together",
			q.Weeks,
			q.Learn,
			MostAdvised,
		)
	}
	if len(q.Policies) == 0 && q.Sweep == nil {
		q.Policies = AdvicePolicies()
	}
	week := q.ofWeek()
	return week.Validate()
}

// ofWeek returns the question of each week, without its times.
func (q *AdviceQuestion) ofWeek() Question {
	return Question{Cluster: q.Cluster, Policies: q.Policies, Sweep: q.Sweep, Progress: q.Progress}
}

// Ask replays each week, the oldest first, and returns the advice. Known are the recorders of the clusters that may be
// meant. Errors:
// trail.ErrNotFound where nothing happened in any week, *trail.AmbiguousError.
func (q *AdviceQuestion) Ask(known []trail.RecorderStatus, replay func(Question) (Answer, error)) (Advice, error) {
	week, until := q.ofWeek(), q.Until
	switch {
	case len(known) == 0 && q.Cluster == "":
		return Advice{}, fmt.Errorf("advise: %w: no cluster is recorded yet", trail.ErrNotFound)
	case len(known) == 0:
		return Advice{}, fmt.Errorf("cluster %s: %w", q.Cluster, trail.ErrNotFound)
	case len(known) > 1:
		names := make([]string, len(known))
		for i := range known {
			names[i] = known[i].Cluster
		}
		return Advice{}, &trail.AmbiguousError{Name: "what to advise", Clusters: names}
	case until.IsZero() && known[0].Replayed:
		until = known[0].LastEventAt.Add(time.Second)
	case until.IsZero():
		until = known[0].At
	}
	week.Cluster = known[0].Cluster
	weeks := make([]Answer, q.Weeks+q.Learn)
	nothing := 0
	for i := range weeks {
		week.Since = until.Add(-time.Duration(len(weeks)-i) * Week)
		week.Until = week.Since.Add(Week)
		answer, err := replay(week)
		switch {
		case errors.Is(err, trail.ErrNotFound):
			answer = Answer{Cluster: week.Cluster, Since: week.Since.UTC(), Until: week.Until.UTC()}
			if nothing++; nothing == len(weeks) {
				return Advice{}, fmt.Errorf("advise: %w", err)
			}
		case err != nil:
			return Advice{}, err
		}
		weeks[i] = answer
	}
	return Advise(weeks, q.Learn), nil
}
