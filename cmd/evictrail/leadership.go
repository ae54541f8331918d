package main

import (
	"sync"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// leadership is what this replica knows of who derives. It is safe for concurrent use.
type leadership struct {
	mu      sync.Mutex
	leads   time.Time // since when this replica does; zero: it does not
	lost    time.Time // when somebody was last known to derive; before that, when this began
	lease   time.Time // when a replica, whichever, was last seen to renew the lease; zero: never
	problem string    // why the lease cannot be taken
	done    time.Time // when nothing was left to derive
	failure string    // why deriving does not get on
}

func newLeadership(at time.Time) *leadership { return &leadership{lost: at} }

// recordTermStart notes that this replica derives.
func (l *leadership) recordTermStart(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads, l.done, l.failure = at, time.Time{}, ""
}

// recordTermEnd notes that this replica derives no more.
func (l *leadership) recordTermEnd() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leads.IsZero() {
		l.leads, l.lost = time.Time{}, nowUTC()
	}
}

// recordDerivation notes how deriving went that a leader did, and whether more is left. One that could not begin does not lead.
func (l *leadership) recordDerivation(at time.Time, begun, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if l.failure = "it fails"; !begun {
			l.problem = "a term cannot begin, as the database does not take it"
		}
	case !l.leads.IsZero():
		if l.failure, l.problem = "", ""; !more {
			l.done = at
		}
	}
}

// recordRenewal notes that a replica, whichever, renewed the lease.
func (l *leadership) recordRenewal(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease, l.lost = at, at
}

// setLeaseProblem notes why the lease cannot be reached; empty: it can.
func (l *leadership) setLeaseProblem(problem string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = problem
}

// snapshotSigns returns what is known at a time.
func (l *leadership) snapshotSigns(at time.Time) trail.LeaderSigns {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leads.IsZero() {
		return trail.LeaderSigns{Leads: true, Known: true, Since: l.leads, DerivedAt: l.done, Failure: l.failure}
	}
	known := !l.lease.IsZero() && at.Sub(l.lease) < leaseLasts
	return trail.LeaderSigns{Known: known, Since: l.lost, Problem: l.problem}
}
