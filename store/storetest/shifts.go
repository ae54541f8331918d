package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/sim"
	"github.com/evictrail/evictrail/trail/tracker"
)

// March is the boundary at which facts are dropped.
var March = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// Brief are thresholds of loops that fit into histories of hours.
var Brief = trail.Thresholds{
	FailureRecent: 10 * time.Minute, Quiet: 15 * time.Minute, Failures: 2, FailingFor: 4 * time.Minute, ReturnWithin: 15 * time.Minute, Returns: 1,
	Moves: 2, MovesWithin: 20 * time.Minute, PinnedAfter: 8 * time.Minute, DrainWaits: time.Minute, Unanswered: 10 * time.Minute,
}

// shiftCreation returns an observation of an object that was not there before a time: VMs of one name follow each other.
func shiftCreation(o tracker.Observation, at time.Time) tracker.Observation {
	later := func(t *time.Time) {
		if t.Before(at) {
			*t = at
		}
	}
	switch o := o.(type) {
	case tracker.VMIObservation:
		later(&o.CreatedAt)
		o.PhaseTimes = slices.Clone(o.PhaseTimes)
		for i := range o.PhaseTimes {
			later(&o.PhaseTimes[i].At)
		}
		return o
	case tracker.PodObservation:
		later(&o.CreatedAt)
		return o
	}
	return o
}

// Shifts returns the facts of some simulated histories of hours, one after the other with hours in which nothing happens, in the order in which they
// were seen, and beside them what the counters of a descheduler say of their nodes, and who patches these. Of every third VMI no mark is seen.
func Shifts(r *rand.Rand, seeds ...uint64) []trail.Fact {
	tr := tracker.New("c1")
	var facts []trail.Fact
	unmarked := map[string]bool{}
	observe := func(o tracker.Observation) {
		for _, f := range tr.Observe(o) {
			if _, met := unmarked[f.VMIUID]; !met {
				unmarked[f.VMIUID] = r.IntN(3) == 0
			}
			if unmarked[f.VMIUID] && (f.Kind == trail.KindEvacuationMarked || f.Kind == trail.KindEvacuationUnmarked) {
				continue
			}
			f.OccurredAt, f.ObservedAt = f.OccurredAt.Truncate(time.Microsecond), f.ObservedAt.Truncate(time.Microsecond)
			facts = append(facts, f)
		}
	}
	for i, seed := range seeds {
		run := sim.NewAt(seed, March.Add(time.Duration(i)*7*time.Hour))
		counts := map[tracker.BlockCount]float64{}
		scrape := run.Start
		for _, o := range run.Observations {
			observe(shiftCreation(o, run.Start.Add(-time.Minute)))
			if at := run.Start; r.IntN(4) == 0 {
				if len(facts) > 0 {
					at = facts[len(facts)-1].ObservedAt.Add(-time.Duration(r.IntN(5)) * time.Second)
				}
				observe(tracker.RequestObservation{
					Seen: tracker.Seen{At: at}, Source: trail.SourceAudit, ID: fmt.Sprintf("patch-%d-%d", i, len(facts)), Stage: "ResponseComplete", Action: trail.ActionChangeNode,
					Name: fmt.Sprintf("worker-%d", 1+r.IntN(4)), AskedAt: at, Detail: trail.RequestDetail{User: []string{"alice", "cni"}[r.IntN(2)], AnsweredAt: at, Code: 200},
				})
			}
			if len(facts) == 0 || facts[len(facts)-1].ObservedAt.Before(scrape) {
				continue
			}
			scrape = facts[len(facts)-1].ObservedAt.Add(time.Duration(1+r.IntN(20)) * time.Minute)
			counts[tracker.BlockCount{
				Reason: []string{"cooldown", "migration_in_progress"}[r.IntN(2)], Node: fmt.Sprintf("worker-%d", 1+r.IntN(4)), Namespace: []string{"shop", "bank", "lab"}[r.IntN(3)],
			}] += float64(1 + r.IntN(5))
			s := tracker.ScrapeObservation{Seen: tracker.Seen{At: facts[len(facts)-1].ObservedAt}, Target: "d", StartedAt: run.Start, Plugin: true}
			for of, n := range counts {
				of.Count = n
				s.Blocks = append(s.Blocks, of)
			}
			observe(s)
		}
	}
	return facts
}
