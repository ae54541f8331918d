package trail

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Thresholds are what a cluster is judged by: when repetition is a loop, how long an evacuation may take, and who asks. Durations are stored in nanoseconds.
type Thresholds struct {
	FailureRecent time.Duration `json:"failure_recent"` // dual_retry: how old the latest failure may be when the descheduler acts
	Quiet         time.Duration `json:"quiet"`          // dual_retry: without an act of the descheduler on the node it is over
	Failures      int           `json:"failures"`       // endless_retry: failed attempts in a row
	FailingFor    time.Duration `json:"failing_for"`    // endless_retry: age of the evacuation
	ReturnWithin  time.Duration `json:"return_within"`  // ping_pong, and oscillation that goes round: a return counts so long after the VM left the node; ping_pong: without one it is over
	Returns       int           `json:"returns"`        // ping_pong
	Moves         int           `json:"moves"`          // churn
	MovesWithin   time.Duration `json:"moves_within"`   // churn and frequent_moves
	Swings        int           `json:"swings"`         // oscillation; zero finds none
	SwingWithin   time.Duration `json:"swing_within"`   // oscillation: a swing counts so long after the move that it answers; without one it is over
	AllMoves      int           `json:"all_moves"`      // frequent_moves, within MovesWithin; zero finds none
	AllFailures   int           `json:"all_failures"`   // repeated_failures: first attempts that failed in a row; zero finds none
	FailedWithin  time.Duration `json:"failed_within"`  // repeated_failures
	Shutdowns     int           `json:"shutdowns"`      // shutdown_churn; zero finds none
	DownWithin    time.Duration `json:"down_within"`    // shutdown_churn
	PinnedAfter   time.Duration `json:"pinned_after"`   // budget_pinned: age from which on an evacuation counts as stuck
	DrainWaits    time.Duration `json:"drain_waits"`    // priority_inversion: how long a drain waits for a migration that has not begun
	Unanswered    time.Duration `json:"unanswered"`     // unanswered_external: age of the mark

	Objectives Objectives `json:"objectives"`         // of evacuations; Set and String leave them out
	Accounts   Accounts   `json:"accounts,omitempty"` // of what class requesters are, beside the known ones; Set and String leave them out
}

// Equal reports whether the same is judged by both.
func (t Thresholds) Equal(other Thresholds) bool { return reflect.DeepEqual(t, other) }

// DefaultThresholds are those of the design.
func DefaultThresholds() Thresholds {
	return Thresholds{
		FailureRecent: 30 * time.Minute, Quiet: time.Hour, Failures: 3, FailingFor: 10 * time.Minute,
		ReturnWithin: 6 * time.Hour, Returns: 2, Moves: 4, MovesWithin: 24 * time.Hour, Swings: 3, SwingWithin: 2 * time.Hour, AllMoves: 8, AllFailures: 5, FailedWithin: 24 * time.Hour,
		Shutdowns: 2, DownWithin: 24 * time.Hour,
		PinnedAfter: 30 * time.Minute, DrainWaits: time.Minute, Unanswered: 30 * time.Minute, Objectives: DefaultObjectives(),
	}
}

// UnmarshalJSON reads thresholds as they are stored. What is absent has its default: an older version that wrote them did not know it.
func (t *Thresholds) UnmarshalJSON(raw []byte) error {
	type stored Thresholds // without this method
	read := stored(DefaultThresholds())
	read.Objectives = nil // else those that are stored would come to the default ones
	if err := json.Unmarshal(raw, &read); err != nil {
		return fmt.Errorf("decode thresholds: %w", err)
	}
	if read.Objectives == nil {
		read.Objectives = DefaultObjectives()
	}
	*t = Thresholds(read)
	return nil
}

// threshold is one of them: exactly one of the fields is set.
type threshold struct {
	name     string
	duration *time.Duration
	count    *int
}

func (t *Thresholds) listThresholds() []threshold {
	return []threshold{
		{"failure_recent", &t.FailureRecent, nil}, {"quiet", &t.Quiet, nil}, {"failures", nil, &t.Failures}, {"failing_for", &t.FailingFor, nil},
		{"return_within", &t.ReturnWithin, nil}, {"returns", nil, &t.Returns}, {"moves", nil, &t.Moves}, {"moves_within", &t.MovesWithin, nil},
		{"swings", nil, &t.Swings}, {"swing_within", &t.SwingWithin, nil}, {"all_moves", nil, &t.AllMoves}, {"all_failures", nil, &t.AllFailures}, {"failed_within", &t.FailedWithin, nil},
		{"shutdowns", nil, &t.Shutdowns}, {"down_within", &t.DownWithin, nil},
		{"pinned_after", &t.PinnedAfter, nil}, {"drain_waits", &t.DrainWaits, nil}, {"unanswered", &t.Unanswered, nil},
	}
}

// Set states one threshold by its name: a duration such as 45m, or a count. It must be positive.
func (t *Thresholds) Set(name, value string) error {
	var names []string
	for _, x := range t.listThresholds() {
		if names = append(names, x.name); x.name != name {
			continue
		}
		if x.count != nil {
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return fmt.Errorf("threshold %s=%s: expected a positive number", name, value)
			}
			*x.count = n
			return nil
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return fmt.Errorf("threshold %s=%s: expected a positive duration such as 45m", name, value)
		}
		*x.duration = d
		return nil
	}
	return fmt.Errorf("threshold %s: expected one of %s", name, strings.Join(names, ", "))
}

// String writes all thresholds of loops as Set takes them.
func (t Thresholds) String() string {
	var out []string
	for _, x := range t.listThresholds() {
		if x.count != nil {
			out = append(out, fmt.Sprintf("%s=%d", x.name, *x.count))
		} else {
			out = append(out, x.name+"="+formatBriefDuration(*x.duration))
		}
	}
	return strings.Join(out, ", ")
}

// formatBriefDuration writes a duration without its zero parts: 30m, 6h.
func formatBriefDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
