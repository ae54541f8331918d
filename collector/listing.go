package collector

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evictrail/evictrail/trail/tracker"
)

// beginList begins a list, which may be another attempt.
func (f *feed) beginList() *listing {
	f.listed = &listing{feed: f, present: map[string]struct{}{}}
	return f.listed
}

// listing is one attempt to read a list. Its objects are handed on as they are read, and never gathered: the Reflector gets an empty list.
type listing struct {
	feed    *feed
	present map[string]struct{} // UIDs
	changed tracker.Recent      // of the objects that are there, those that changed last
}

// addObject hands on an object of the list or, where the list is the beginning of a watch, what happened to one during that time.
func (l *listing) addObject(kind watch.EventType, o *object) {
	gone := kind == watch.Deleted
	if l.present[o.UID] = struct{}{}; gone {
		delete(l.present, o.UID)
	}
	l.changed = changedLast(l.changed, o, gone)
	c := l.feed.c
	c.out.waitForRoom(l.feed.ctx, listBacklog)
	_ = c.enqueueNotice(l.feed.ctx, notice{feed: l.feed, kind: noticeListed, object: o, gone: gone}) // an end of the collector ends the list, too
}
