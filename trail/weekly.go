package trail

import (
	"fmt"
	"time"
)

// The weeks of a report, and which share of evacuations is to keep to its objective, in percent.
const (
	UsualWeeks  = 4
	MostWeeks   = 26
	UsualTarget = 95
)

// WeeklyQuery asks what happened week by week. Weeks begin on Mondays, at midnight UTC.
type WeeklyQuery struct {
	Cluster   string    // empty: all
	Namespace string    // empty: all
	Weeks     int       // how many; zero: UsualWeeks
	Until     time.Time // in the last one; zero: now, or when a cluster was last seen
	Target    float64   // share of evacuations, in percent, that is to keep to its objective; zero: UsualTarget
}

// Bound fills in what is not asked for. The error says what is wrong with the rest.
func (q *WeeklyQuery) Bound() error {
	if q.Weeks == 0 {
		q.Weeks = UsualWeeks
	}
	if q.Target == 0 {
		q.Target = UsualTarget
	}
	if q.Weeks < 1 || q.Weeks > MostWeeks {
		return fmt.Errorf("weeks %d: expected 1 to %d", q.Weeks, MostWeeks)
	}
	if !(q.Target >= 50 && q.Target < 100) { // NaN is neither
		return fmt.Errorf("target %v: expected a share in percent, from 50 to less than 100", q.Target)
	}
	return nil
}

// FirstWeek returns the Monday on which the first week begins, the last one being that of a time.
func (q *WeeklyQuery) FirstWeek(last time.Time) time.Time {
	const week = 7 * 24 * time.Hour
	return last.UTC().Truncate(week).AddDate(0, 0, -7*(q.Weeks-1)) // the zero time is a Monday
}

// Weekly is what happened in a cluster week by week: the newest week first, then by namespace.
type Weekly struct {
	Cluster    string             `json:"cluster"`
	From       time.Time          `json:"from"` // Monday of the first week
	To         time.Time          `json:"to"`   // up to then it is known
	Target     float64            `json:"target"`
	Downtimes  []WeeklyDowntimes  `json:"downtimes"`
	Objectives []WeeklyObjectives `json:"objectives"`
	Moves      []WeeklyMoves      `json:"moves"`

	Recorder    *RecorderNote `json:"recorder,omitempty"`     // nil: not asked for
	NotObserved []Gap         `json:"not_observed,omitempty"` // gaps since From, the newest first
}

// WeeklyDowntimes is for how long the VMs of a namespace did not run in a week, added up. See view weekly_downtimes.
type WeeklyDowntimes struct {
	Week          time.Time `json:"week"`
	Namespace     string    `json:"namespace"`
	Unplanned     int       `json:"unplanned"`
	UnplannedTime Span      `json:"unplanned_seconds"`
	Planned       int       `json:"planned"` // begun by owners, or by guests themselves
	PlannedTime   Span      `json:"planned_seconds"`
}

// WeeklyObjectives is how many evacuations met their objective in a week. See view weekly_objectives.
type WeeklyObjectives struct {
	Week       time.Time `json:"week"`
	Namespace  string    `json:"namespace"`
	Pool       string    `json:"pool,omitempty"` // of the nodes; empty where unknown, or not shown
	Met        int       `json:"met"`
	Missed     int       `json:"missed"`
	BudgetLeft float64   `json:"budget_left"` // evacuations that may still miss it; below zero: so many too many
}

// SpendBudget fills in what is left of the error budget under a target in percent.
func (o *WeeklyObjectives) SpendBudget(target float64) {
	o.BudgetLeft = (100-target)/100*float64(o.Met+o.Missed) - float64(o.Missed)
}

// BudgetText writes what is left of the error budget.
func (o WeeklyObjectives) BudgetText() string {
	if o.BudgetLeft < 0 {
		return fmt.Sprintf("overspent by %.3g", -o.BudgetLeft)
	}
	return fmt.Sprintf("%.3g", o.BudgetLeft)
}

// WeeklyMoves is what the migrations of a namespace that ended in a week cost. See view weekly_move_costs.
type WeeklyMoves struct {
	Week         time.Time `json:"week"`
	Namespace    string    `json:"namespace"`
	Moves        int       `json:"moves"`
	Failed       int       `json:"failed"` // or aborted
	NotNeeded    int       `json:"not_needed"`
	ReservedTime Span      `json:"reserved_seconds"` // for which two pods held the resources of one guest
	Bytes        int64     `json:"data_processed"`   // of measured migrations
	Measured     int       `json:"measured"`
	NotMeasured  int       `json:"not_measured"` // whose data moved, and of which that is not known
}

// BytesText writes what was copied, and of how many migrations that is not known; empty where nothing is known of any.
func (m WeeklyMoves) BytesText() string {
	switch {
	case m.Measured == 0:
		return ""
	case m.NotMeasured > 0:
		return fmt.Sprintf("%s, without %d", FormatBytes(m.Bytes), m.NotMeasured)
	}
	return FormatBytes(m.Bytes)
}

// Empty reports whether nothing happened in these weeks.
func (w *Weekly) Empty() bool { return len(w.Downtimes)+len(w.Objectives)+len(w.Moves) == 0 }

// Rests says what the numbers count, and what they do not know.
func (w *Weekly) Rests() string {
	return fmt.Sprintf(
		"Weeks begin on Mondays, UTC. A downtime that lasts longer counts in each of its weeks; one of a VM that its "+
			"owner stopped and did not start again counts no time. Of the evacuations with an objective %g %% are to keep "+
			"to it, each in the week of its mark: the budget is how many may miss it. Migrations count in the week of their "+
			"end; reserved is how long two pods held the resources of one guest, and copied is known of migrations that "+
			"Prometheus measured.",
		w.Target,
	)
}
