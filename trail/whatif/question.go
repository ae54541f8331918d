package whatif

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// The bounds of a question.
const (
	MostPolicies = 32                 // those of a sweep among them
	MostDays     = 90                 // of a period that is asked for over HTTP
	Within       = 25 * time.Second   // in which who asks over HTTP is answered: it reads months
	UsualPeriod  = 7 * 24 * time.Hour // where none is asked for
	Day          = 24 * time.Hour     // for MostDays
	changesKept  = 100                // of each policy that are reported one by one; the others are counted
	warmUp       = 48 * time.Hour     // least time before the period in which migrations count for cooldowns
)

// Question asks what would have been different in a period of one cluster.
type Question struct {
	Cluster   string    // empty: the only one
	Namespace string    // only what concerns VMs of this namespace is reported; empty: of all
	Node      string    // only what concerns this node is reported; empty: all
	Since     time.Time // inclusive; zero: UsualPeriod before Until
	Until     time.Time // exclusive; zero: now or, where the cluster is not watched any more, when it was last seen
	Policies  []Policy  // none: Proposals, unless there is a sweep
	Sweep     *Sweep    // nil: none

	// Progress is called with how far the history is replayed, now and then; may be nil.
	Progress func(at time.Time)
}

// All returns the policies to replay, those of the sweep last.
func (q *Question) All() []Policy {
	all := q.Policies
	if q.Sweep != nil {
		return append(all[:len(all):len(all)], q.Sweep.Policies...)
	}
	if len(all) == 0 {
		return Proposals()
	}
	return all
}

// Validate says what is too much, or cannot be.
func (q *Question) Validate() error {
	if n := len(q.All()); n > MostPolicies {
		return fmt.Errorf("%d policies: at most %d can be asked about at once, those of a sweep among them", n, MostPolicies)
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return fmt.Errorf("since %s: must be before until %s", trail.FormatClock(q.Since), trail.FormatClock(q.Until))
	}
	return nil
}

// Bound is Validate for questions of others: the period must not be too long either. Now is the end of one that names none.
func (q *Question) Bound(now time.Time) error {
	until := q.Until
	if until.IsZero() {
		until = now
	}
	if !q.Since.IsZero() && until.Sub(q.Since) > MostDays*Day {
		return fmt.Errorf("since %s, until %s: at most %d days can be asked about at once", trail.FormatClock(q.Since), trail.FormatClock(until), MostDays)
	}
	return q.Validate()
}

// Reach returns from when on events are wanted: so long before the period as migrations count for a cooldown, under the policies or the
// recorded rules.
func (q *Question) Reach(rules []trail.Fact) time.Time {
	most := warmUp
	for _, p := range q.All() {
		if p.Cooldown != nil {
			most = max(most, time.Duration(p.Cooldown.Window))
		}
	}
	for i := range rules {
		if d, ok := rules[i].Detail.(*trail.ConfigDetail); ok && d.Descheduler != nil && d.Descheduler.Cooldown != nil {
			most = max(most, d.Descheduler.Cooldown.Window)
		}
	}
	return q.Since.Add(-most)
}
