package tracker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// The share of the record that the Kubernetes Events of one namespace may have: anyone who may create Events there can create them without end.
const (
	eventsAtOnce     = 10_000 // Events of a namespace; as many again come in evenly over an hour
	refusalsReported = 10 * time.Minute
)

// eventShares holds the share of each namespace. What is refused is counted, and becomes a gap of the source of Events every refusalsReported.
type eventShares struct {
	of      map[string]*eventShare
	refused uint64    // ever
	due     time.Time // when refusals are recorded; zero: there are none
}

// eventShare is what one namespace has left.
type eventShare struct {
	left        float64 // Events
	at          time.Time
	refused     int // since they were recorded last
	first, last time.Time
}

// admitEvent reports whether an Event of a namespace may become a fact.
func (s *eventShares) admitEvent(namespace string, now time.Time) bool {
	if s.of == nil {
		s.of = map[string]*eventShare{}
	}
	e := s.of[namespace]
	if e == nil {
		e = &eventShare{left: eventsAtOnce, at: now}
		s.of[namespace] = e
	}
	e.left = min(eventsAtOnce, e.left+max(0, now.Sub(e.at).Hours())*eventsAtOnce)
	e.at = now
	if e.left >= 1 {
		e.left--
		return true
	}
	if e.refused == 0 {
		e.first = now
	}
	e.refused, e.last = e.refused+1, now
	s.refused++
	if s.due.IsZero() {
		s.due = now.Add(refusalsReported)
	}
	return false
}

// reportGaps returns the facts of the refusals that were not recorded yet, once they are due.
func (s *eventShares) reportGaps(cluster string, now time.Time) []trail.Fact {
	if s.due.IsZero() || now.Before(s.due) {
		return nil
	}
	s.due = time.Time{}
	var facts []trail.Fact
	for _, namespace := range slices.Sorted(maps.Keys(s.of)) {
		e := s.of[namespace]
		if e.refused == 0 {
			continue
		}
		facts = append(facts, trail.GapReport{
			Source: trail.ObjectKubeEvent.Source(), Key: namespace + " " + e.first.UTC().Format(time.RFC3339Nano),
			OpenedAt: e.first, ClosedAt: e.last, Cause: trail.ReasonOverflow,
			Detail: fmt.Sprintf("%d Kubernetes Events of namespace %s were not recorded: more than %d an hour", e.refused, namespace, eventsAtOnce),
		}.Facts(cluster, now)...)
		e.refused = 0
	}
	return facts
}

// RefusedEvents counts the Kubernetes Events that were not recorded because their namespace had more than its share.
func (t *Tracker) RefusedEvents() uint64 { return t.shares.refused }
