package whatif

import (
	"cmp"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Event is one thing of the history that a replay needs: exactly one of the pointers is set. Of rows that last it comes with their
// beginning.
type Event struct {
	At         time.Time
	Loop       *trail.Loop
	Decision   *trail.Decision // of the descheduler's cooldown: that it holds, or that something met it
	Evacuation *trail.Evacuation
	Migration  *trail.Migration
	Completion *Completion
	Request    *trail.EvictionRequest // that met an evacuation or began one
}

// Completion is the end of a migration that the VMI showed, as the descheduler's cooldown counts it.
type Completion struct {
	VMIUID string
	trail.Completion
}

// rank orders what happens at one time: what a request meets comes before it.
func (e *Event) rank() int {
	switch {
	case e.Loop != nil:
		return 0
	case e.Decision != nil:
		return 1
	case e.Evacuation != nil:
		return 2
	case e.Migration != nil:
		return 3
	case e.Completion != nil:
		return 4
	}
	return 5
}

// Compare orders events.
func (e *Event) Compare(o *Event) int {
	return cmp.Or(e.At.Compare(o.At), cmp.Compare(e.rank(), o.rank()))
}

// Gather returns the events of rows and facts in memory, in the order in which they are to be replayed.
func Gather(c *trail.Cluster, facts []trail.Fact) []Event {
	var out []Event
	for _, d := range c.Rows {
		for i := range d.Loops {
			out = append(out, Event{At: d.Loops[i].OpenedAt, Loop: &d.Loops[i]})
		}
		for i := range d.Decisions {
			if x := &d.Decisions[i]; x.Layer == trail.LayerCooldown && x.Verdict != trail.VerdictReleased {
				out = append(out, Event{At: x.DecidedAt, Decision: x})
			}
		}
		for i := range d.Evacuations {
			out = append(out, Event{At: d.Evacuations[i].MarkedAt, Evacuation: &d.Evacuations[i]})
		}
		for i := range d.Migrations {
			out = append(out, Event{At: d.Migrations[i].CreatedAt, Migration: &d.Migrations[i]})
		}
		for i := range d.Requests {
			if q := &d.Requests[i]; q.EvacuationID != nil {
				out = append(out, Event{At: q.RequestedAt, Request: q})
			}
		}
	}
	for i := range facts {
		f := &facts[i]
		if d, ok := f.Detail.(*trail.ResultDetail); ok && f.Kind == trail.KindMigrationCompleted {
			out = append(out, Event{At: d.EndedAt, Completion: &Completion{f.VMIUID, trail.Completion{
				Migration: f.Migration, MigrationUID: f.MigrationUID, StartedAt: d.StartedAt, EndedAt: d.EndedAt, Failed: d.Failed,
			}}})
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Compare(&b) })
	return out
}

// RulesOf returns those of some facts that say by which rules the descheduler went.
func RulesOf(facts []trail.Fact) []trail.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool {
		return f.Kind != trail.KindConfigSeen && f.Kind != trail.KindDeschedulerStarted
	})
}
