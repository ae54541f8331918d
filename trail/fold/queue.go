package fold

import (
	"context"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// queue knows of each migration when it held a slot under KubeVirt's limits and whether it waited for one, as far as it had not finished at
// a time.
type queue struct {
	from   time.Time // complete for migrations that had not finished by then
	loaded bool
	of     map[trail.Subject]map[string]queued // by VM and UID
}

func newQueue() queue { return queue{of: map[trail.Subject]map[string]queued{}} }

// queued is a migration in the queue.
type queued struct {
	created time.Time
	until   time.Time // when it finished; zero while it runs
	waited  bool
	slot    trail.Slot
	holds   bool // it got a slot
}

// endedBefore reports whether the migration had finished before a time.
func (q queued) endedBefore(at time.Time) bool { return !q.until.IsZero() && q.until.Before(at) }

// sameSlot reports whether two entries hold the same slot, or none. Times that were read have another location than those that were derived.
func (q queued) sameSlot(o queued) bool {
	return q.holds == o.holds && q.slot.MigrationUID == o.slot.MigrationUID && q.slot.Node == o.slot.Node && q.slot.From.Equal(o.slot.From) && q.slot.To.Equal(o.slot.To)
}

// span is a time; the zero span is none. Without an end it goes on.
type span struct {
	from, to time.Time
	open     bool
}

// includeSpan extends a span so that it has another in it.
func (s *span) includeSpan(o span) {
	switch {
	case o.from.IsZero():
		return
	case s.from.IsZero():
		*s = o
		return
	}
	if o.from.Before(s.from) {
		s.from = o.from
	}
	s.open, s.to = s.open || o.open, maxTime(s.to, o.to)
}

// slotSpan returns when a migration held its slot; the zero span where it got none.
func (q queued) slotSpan() span {
	if !q.holds {
		return span{}
	}
	return span{from: q.slot.From, to: q.slot.To, open: q.slot.To.IsZero()}
}

func entryOf(m *trail.Migration) queued {
	q := queued{created: m.CreatedAt, until: m.OpenUntil(), waited: m.WaitReason != ""}
	for _, s := range (trail.Derived{Migrations: []trail.Migration{*m}}).Slots() {
		q.slot, q.holds = s, true
	}
	return q
}

// updateMigrations takes the migrations of a VM that were derived in place of those in the rows of its window, but for rows that had ended before a time: these are frozen. It
// returns the time in which slots were taken or freed.
func (q *queue) updateMigrations(w *Window, derived []trail.Migration, from time.Time) (changed span) {
	before, its := entriesOf(w.Rows.Migrations), q.of[w.Subject]
	if its == nil {
		its = map[string]queued{}
		q.of[w.Subject] = its
	}
	now := entriesOf(derived)
	for uid, e := range now {
		was, known := before[uid]
		if e.endedBefore(from) && (!known || was.endedBefore(from)) {
			continue
		}
		if its[uid] = e; known && was.sameSlot(e) {
			continue
		}
		changed.includeSpan(was.slotSpan())
		changed.includeSpan(e.slotSpan())
	}
	for uid, was := range before {
		if _, kept := now[uid]; !kept && !was.endedBefore(from) {
			changed.includeSpan(was.slotSpan())
			delete(its, uid)
		}
	}
	return changed
}

func entriesOf(migrations []trail.Migration) map[string]queued {
	out := make(map[string]queued, len(migrations))
	for i := range migrations {
		out[migrations[i].UID] = entryOf(&migrations[i])
	}
	return out
}

// findSlots returns who held slots at some moment of some times.
func (q *queue) findSlots(from, to []time.Time) []trail.Slot {
	var out []trail.Slot
	for _, its := range q.of {
		for _, e := range its {
			if !e.holds {
				continue
			}
			for i := range from {
				if !e.slot.From.After(to[i]) && (e.slot.To.IsZero() || !e.slot.To.Before(from[i])) {
					out = append(out, e.slot)
					break
				}
			}
		}
	}
	return out
}

// findWaitingVMs returns the VMs with migrations that waited at some moment of a time.
func (q *queue) findWaitingVMs(s span) []trail.Subject {
	var out []trail.Subject
	for vm, its := range q.of {
		for _, e := range its {
			if e.waited && (s.open || !e.created.After(s.to)) && (!e.holds || !e.slot.From.Before(s.from)) {
				out = append(out, vm)
				break
			}
		}
	}
	slices.SortFunc(out, compareSubjects)
	return out
}

// loadQueue has the queue know all migrations that had not finished by a time.
func (c *Cluster) loadQueue(ctx context.Context, since time.Time) error {
	q := &c.queue
	if q.loaded && !since.Before(q.from) {
		return nil
	}
	all, err := c.source.Migrations(ctx, since)
	if err != nil {
		return err
	}
	for _, m := range all {
		its := q.of[m.VM]
		if w := c.windows[m.VM]; w != nil && w.derived == c.fold && !trail.EndedBefore(m.Migration, w.RowsFrom) {
			continue // the window knows better
		}
		if its == nil {
			its = map[string]queued{}
			q.of[m.VM] = its
		}
		if _, known := its[m.Migration.UID]; !known {
			its[m.Migration.UID] = entryOf(m.Migration)
		}
	}
	q.loaded, q.from = true, since
	return nil
}

const (
	keepQueue = time.Hour // how long before the time of a Fold the queue knows at least when it is trimmed
	mostQueue = 5_000     // migrations that it knows before it is trimmed
)

// countMigrations returns how many migrations the queue knows.
func (q *queue) countMigrations() int {
	n := 0
	for _, its := range q.of {
		n += len(its)
	}
	return n
}

// dropFinished forgets migrations that had finished long ago.
func (q *queue) dropFinished(now time.Time) {
	from := now.Add(-keepQueue)
	switch {
	case q.countMigrations() <= mostQueue:
		return
	case !q.loaded:
		*q = newQueue()
		return
	case !q.from.Before(from):
		return
	}
	for vm, its := range q.of {
		for uid, e := range its {
			if e.endedBefore(from) {
				delete(its, uid)
			}
		}
		if len(its) == 0 {
			delete(q.of, vm)
		}
	}
	q.from = from
}
