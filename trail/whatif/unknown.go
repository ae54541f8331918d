package whatif

import (
	"cmp"
	"slices"
)

// Unknown is something that the history does not show, and how often that came up.
type Unknown struct {
	Reason UnknownReason `json:"reason"`
	Text   string        `json:"text"`
	Count  int           `json:"count"`
}

// UnknownReason says what the history does not show.
type UnknownReason string

// What the history does not show.
const (
	UnknownAgainstRule   UnknownReason = "against_the_recorded_rule"
	UnknownElsewhere     UnknownReason = "would_have_stood_elsewhere"
	UnknownNotAsked      UnknownReason = "not_asked_again"
	UnknownBlockOfMany   UnknownReason = "blocked_one_of_several"
	UnknownBlockOfNobody UnknownReason = "blocked_nobody_known"
	UnknownBlockWhen     UnknownReason = "blocked_before_or_after"
	UnknownNewTry        UnknownReason = "outcome_of_a_new_try"
	UnknownMoreSlots     UnknownReason = "whom_more_slots_would_take"
	UnknownNeverFree     UnknownReason = "still_waiting_at_the_end"
	UnknownLoop          UnknownReason = "loop_not_judged"
)

var unknownTexts = map[UnknownReason]string{
	UnknownAgainstRule:   "evictions that the recorded rule forbade, too, and that came all the same: they are left as they were",
	UnknownElsewhere:     "evictions of a VM that would have stood on another node by then: whether the descheduler would have asked for it there",
	UnknownNotAsked:      "evictions held back whose VM was not asked for again: whether the descheduler would have asked once nothing was in the way",
	UnknownBlockOfMany:   "times that a cooldown kept the descheduler from one of several VMs: from which",
	UnknownBlockOfNobody: "times that a cooldown kept the descheduler from a VM of which nothing is known: from which",
	UnknownBlockWhen:     "times that a cooldown kept the descheduler from a VM, shown by a counter: whether before or after the other cooldown would have been over",
	UnknownNewTry:        "evictions that would have been asked again after KubeVirt gave up: how their attempt would have gone",
	UnknownMoreSlots:     "times that all recorded slots of a node, or in total, were taken: whom the descheduler would have evicted with more",
	UnknownNeverFree:     "evictions held back that would still wait at the end of the period: for how long",
	UnknownLoop:          "loops of which not enough is recorded to say whether they would have opened",
}

// unknowns counts by reason.
type unknowns map[UnknownReason]int

// list returns those that came up, the most frequent first.
func (u unknowns) list() []Unknown {
	out := []Unknown{}
	for reason, n := range u {
		out = append(out, Unknown{reason, unknownTexts[reason], n})
	}
	slices.SortFunc(out, func(a, b Unknown) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
