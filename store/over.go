package store

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// onceOver leaves out of what is derived of a VM most of what was over by a time when nothing went on there: it stays as it is told (table.stays), and need not be
// sent to find that. The zero time leaves out nothing.
func onceOver(d trail.Derived, by time.Time) trail.Derived {
	if by.IsZero() {
		return d
	}
	d.Timeline = slices.DeleteFunc(slices.Clone(d.Timeline), func(l trail.Line) bool { return l.At.Before(by) })
	d.Requests = slices.DeleteFunc(slices.Clone(d.Requests), func(r trail.EvictionRequest) bool {
		return latest(r.RequestedAt, r.AnsweredAt, r.LastRepeatAt).Before(by)
	})
	d.Evacuations = slices.DeleteFunc(slices.Clone(d.Evacuations), func(e trail.Evacuation) bool {
		return !e.EndedAt.IsZero() && latest(e.MarkedAt, e.EndedAt).Before(by)
	})
	d.Migrations = slices.DeleteFunc(slices.Clone(d.Migrations), func(m trail.Migration) bool {
		return !m.FinishedAt.IsZero() && latest(m.CreatedAt, m.FinishedAt).Before(by)
	})
	d.Decisions = slices.DeleteFunc(slices.Clone(d.Decisions), func(c trail.Decision) bool { return latest(c.DecidedAt, c.Until).Before(by) })
	return d
}
