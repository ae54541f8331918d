// Package whatif replays recorded history under policies that were not in force.
//
//	r := whatif.New(whatif.Policy{TryOnce: true}, &whatif.History{Thresholds: trail.DefaultThresholds(), Since: since, Until: until})
//	for _, e := range events {
//		r.Step(e)
//	}
//	result, _ := r.End() // result.FailedSaved: failed attempts that would not have happened
//
// The events of a period go in, in the order of their times, as the derived rows of package trail have them; what would have been
// different comes out:
//
//	events  --Replay.Step-->  state of evacuations, VMs, nodes  --Replay.End-->  Result
//
// Nothing is derived here a second time: who asked, which attempt belongs to which evacuation, what a cooldown is, all that is what trail
// says. A replay only decides, for each thing that the history shows being asked, whether the policy would have let it happen. It lets
// nothing happen that nobody asked for. An eviction differs from the recorded one only where a rule forbids it under the policy and did not
// forbid it as it was, so the recorded policy changes nothing, by construction and by test.
//
// What the history does not show is counted, with its reason (unknown.go); what is taken for granted is said, with its name (assumption.go).
//
// Like trail: no clock, no I/O, nothing safe for concurrent use. What a replay holds grows with the VMs and nodes that it meets, and not
// with the length of the period.
//
// One noun, one file: policy.go (what may be different, and how it is written), sweep.go (a setting from here to there), question.go and
// answer.go (question and answer), row.go (results that are the same, joined), recommend.go (which policy to take), advise.go (the same, checked week by week), patch.go (how it is set
// today), event.go (what goes in), replay.go (the order of things), evacuation.go (asked, tried, given up),
// cooldown.go and slots.go (the two rules of the descheduler), block.go (what its counters say was kept from it), loop.go, change.go
// (one difference, and its sentence).
package whatif
