package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// watcher writes down what a collector sees. A watch sends the changes of its own kind in their order, some ten
// milliseconds later; two watches have no common order.
type watcher struct {
	seen    []sight
	last    map[trail.ObjectKind]time.Time
	version uint64
	uids    uint64
}

type sight struct {
	at time.Time
	is tracker.Observation
}

// nextVersion returns the next resource version: one counter for all objects, with gaps for what we do not watch.
func (c *cluster) nextVersion() string {
	c.watch.version += uint64(c.dice.pickInt(1, 3))
	return strconv.FormatUint(c.watch.version, 10)
}

// nextUID returns a UID that no other object has.
func (c *cluster) nextUID(prefix string) string {
	c.watch.uids++
	return prefix + "-" + strconv.FormatUint(c.watch.uids, 10)
}

// nextSeenTime returns the time at which a change made now is seen, after what the same watch sent before.
func (c *cluster) nextSeenTime(kind trail.ObjectKind) time.Time {
	at := c.clock.now.Add(c.dice.pickDuration(8*time.Millisecond, 70*time.Millisecond))
	if last := c.watch.last[kind]; !at.After(last) {
		at = last.Add(50 * time.Microsecond)
	}
	c.watch.last[kind] = at
	return at
}

// recordSight writes down a sight.
func (c *cluster) recordSight(at time.Time, o tracker.Observation) {
	c.watch.seen = append(c.watch.seen, sight{at, o})
}

// listObservations returns all sights in the order of their times.
func (w *watcher) listObservations() []tracker.Observation {
	slices.SortStableFunc(w.seen, func(a, b sight) int { return a.at.Compare(b.at) })
	out := make([]tracker.Observation, len(w.seen))
	for i, s := range w.seen {
		out[i] = s.is
	}
	return out
}

// truncateToSecond cuts a time to what Kubernetes writes into objects: whole seconds, cut, not rounded.
func truncateToSecond(t time.Time) time.Time { return t.Truncate(time.Second) }

// updateObject bumps the version of an object and returns when and how that is seen.
func (c *cluster) updateObject(kind trail.ObjectKind, m *tracker.Meta, gone bool) (tracker.Seen, tracker.Meta) {
	m.ResourceVersion = c.nextVersion()
	return tracker.Seen{At: c.nextSeenTime(kind), Gone: gone}, *m
}

// listObject returns how an object is seen in the first list.
func (c *cluster) listObject(m *tracker.Meta) (tracker.Seen, tracker.Meta) {
	m.ResourceVersion = c.nextVersion()
	return tracker.Seen{At: c.clock.now, Listed: true}, *m
}
