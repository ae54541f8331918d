package fold

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// queue knows of each migration when it held a slot under KubeVirt's limits and whether it waited for one, as far as it had not finished at
// a time.
type queue struct {
	from   time.Time // complete for migrations that had not finished by then
	asked  time.Time // the earliest time for which it had to be in the Fold that goes on
	loaded bool
	of     map[trail.Subject]map[string]queued // by VM and UID
}

func newQueue() queue { return queue{asked: farFuture, of: map[trail.Subject]map[string]queued{}} }

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

// span is a time with an end; what goes on ends in the farFuture.
type span struct{ from, to time.Time }

// appendSlot appends when a migration held its slot, if it got one.
func (q queued) appendSlot(to []span) []span {
	switch {
	case !q.holds:
		return to
	case q.slot.To.IsZero():
		return append(to, span{q.slot.From, farFuture})
	}
	return append(to, span{q.slot.From, q.slot.To})
}

func entryOf(m *trail.Migration) queued {
	q := queued{created: m.CreatedAt, until: m.OpenUntil(), waited: m.WaitReason != ""}
	q.slot, q.holds = m.NewSlot()
	return q
}

// updateMigrations takes the migrations of a VM that were derived in place of those in the rows of its window, but for rows that had ended before a time: these are frozen. It
// returns when slots are held that were not, or not at that time, and were held that are not any more.
func (q *queue) updateMigrations(w *Window, derived []trail.Migration, from time.Time) (changed []span) {
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
		changed = e.appendSlot(was.appendSlot(changed))
	}
	for uid, was := range before {
		if _, kept := now[uid]; !kept && !was.endedBefore(from) {
			changed = was.appendSlot(changed)
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

// listSlots lists the slots that are or were held, in any order.
func (q *queue) listSlots() iter.Seq[trail.Slot] {
	return func(yield func(trail.Slot) bool) {
		for _, its := range q.of {
			for _, e := range its {
				if e.holds && !yield(e.slot) {
					return
				}
			}
		}
	}
}

// findSlots returns those of some slots that were held at some moment of spans that mergeSpans returned.
func findSlots(slots iter.Seq[trail.Slot], spans []span) []trail.Slot {
	var out []trail.Slot
	for slot := range slots {
		until := slot.To
		if until.IsZero() {
			until = farFuture
		}
		if _, during := findOverlap(spans, slot.From, until); during {
			out = append(out, slot)
		}
	}
	return out
}

// findOverlap returns the first of spans that mergeSpans returned that shares a moment with the time between two others; false where none does.
func findOverlap(spans []span, from, until time.Time) (first span, found bool) {
	i, _ := slices.BinarySearchFunc(spans, from, func(s span, at time.Time) int { return s.to.Compare(at) }) // the first that does not end before
	if i == len(spans) || until.Before(spans[i].from) {
		return span{}, false
	}
	return spans[i], true
}

// mergeSpans returns what some spans cover together, the earliest first.
func mergeSpans(spans []span) []span {
	var out []span
	for _, s := range slices.SortedFunc(slices.Values(spans), func(a, b span) int { return a.from.Compare(b.from) }) {
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			out[n-1].to = maxTime(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// findWaitingVMs returns the VMs with migrations that waited at some moment of spans that mergeSpans returned, each with when the first such span began.
func (q *queue) findWaitingVMs(spans []span) dirtyMarks {
	out := dirtyMarks{}
	for vm, its := range q.of {
		for _, e := range its {
			if !e.waited {
				continue
			}
			until := farFuture
			if e.holds {
				until = e.slot.From
			}
			if s, during := findOverlap(spans, e.created, until); during {
				out.add(vm, s.from)
			}
		}
	}
	return out
}

// loadQueue has the queue know all migrations that had not finished by a time before now. Where that is not the first time, it is read from twice as far back: where everything
// is derived again one time after the other is asked for.
func (c *Cluster) loadQueue(ctx context.Context, since, now time.Time) error {
	q := &c.queue
	q.asked = minTime(q.asked, since)
	if q.loaded && !since.Before(q.from) {
		return nil
	}
	if q.loaded {
		since = since.Add(-now.Sub(since))
	}
	err := c.source.Migrations(ctx, since, func(vm trail.Subject, m *trail.Migration) {
		its := q.of[vm]
		if w := c.windows[vm]; w != nil && w.derived == c.fold && !trail.EndedBefore(m, w.RowsFrom) {
			return // the window knows better
		}
		if its == nil {
			its = map[string]queued{}
			q.of[vm] = its
		}
		if _, known := its[m.UID]; !known {
			its[m.UID] = entryOf(m)
		}
	})
	q.loaded, q.from = err == nil, since
	return err
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

// dropFinished forgets migrations that had finished long ago, unless this Fold asked for such: where everything is derived again, the next one does, too.
func (q *queue) dropFinished(now time.Time) {
	from, asked := now.Add(-keepQueue), q.asked
	q.asked = farFuture
	switch {
	case q.countMigrations() <= mostQueue:
		return
	case !q.loaded:
		*q = newQueue()
		return
	case !q.from.Before(from) || asked.Before(from):
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
