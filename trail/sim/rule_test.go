package sim

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// rule is the rule of architecture §4 in its plainest form, on rows that exist without any loop. Its fields are mistakes
// that a detector can make; a rule without any is the right one.
type rule struct {
	anyCaller  bool // kubectl's polls count as acts
	anyTime    bool // an act before the failure counts as well
	anyNode    bool // so does one on another node
	aborts     bool // an aborted attempt counts as failed
	users      bool // so does a migration that belongs to no evacuation
	older      bool // so do failures of the VM's earlier evacuations
	noStale    bool // so do failures of long ago
	noQuiet    bool // a loop goes on whatever the descheduler does
	firstOnly  bool // an act after which one loop is found opens no other
	markedOnly bool // a request that met a mark does not count
}

// history is what a rule looks at.
type history struct {
	evacuations []trail.Evacuation
	migrations  []trail.Migration
	requests    []trail.EvictionRequest
}

func historyOf(rows map[trail.Subject]trail.Derived) history {
	var h history
	for _, d := range rows {
		h.evacuations = append(h.evacuations, d.Evacuations...)
		h.migrations = append(h.migrations, d.Migrations...)
		h.requests = append(h.requests, d.Requests...)
	}
	slices.SortFunc(h.requests, func(a, b trail.EvictionRequest) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return h
}

// findLoops returns the loops that the rule sees.
func (r rule) findLoops(h history, now time.Time) []found {
	var out []found
	taken := map[string]time.Time{}
	for _, e := range h.evacuations {
		for _, l := range r.loopsOf(e, r.findActs(h, e), r.findFailures(h, e), now) {
			if key := e.Node + l.OpenedAt.String(); !r.firstOnly || taken[key].IsZero() {
				taken[key] = l.OpenedAt
				out = append(out, found{"dual_retry", l})
			}
		}
	}
	return inOrder(out)
}

// findActs returns the times of the descheduler's acts on the node while the evacuation was open.
func (r rule) findActs(h history, e trail.Evacuation) []time.Time {
	var out []time.Time
	for _, q := range h.requests {
		answered := q.Answer == trail.AnswerMarked || q.Answer == trail.AnswerAlreadyMarked && !r.markedOnly
		during := !q.RequestedAt.Before(e.MarkedAt) && (e.EndedAt.IsZero() || q.RequestedAt.Before(e.EndedAt))
		if answered && during && (q.Node == e.Node || r.anyNode) && (q.RequesterClass == trail.RequesterDescheduler || r.anyCaller) {
			out = append(out, q.RequestedAt)
		}
	}
	return out
}

// findFailures returns the times at which attempts failed.
func (r rule) findFailures(h history, e trail.Evacuation) []time.Time {
	var out []time.Time
	for _, m := range h.migrations {
		failed := m.Outcome == trail.OutcomeFailed || r.aborts && m.Outcome == trail.OutcomeAborted
		own := m.EvacuationID != nil && *m.EvacuationID == e.ID
		others := m.VMIUID == e.VMIUID && m.SourceNode == e.Node && (m.EvacuationID == nil && r.users || m.EvacuationID != nil && r.older)
		stray := m.EvacuationID == nil && r.users && m.SourceNode == e.Node
		if failed && (own || others || stray) {
			out = append(out, m.FinishedAt)
		}
	}
	return out
}

func (r rule) loopsOf(e trail.Evacuation, acts, failures []time.Time, now time.Time) []Loop {
	var out []Loop
	var open *Loop
	end := e.EndedAt
	if end.IsZero() {
		end = now
	}
	last := time.Time{}
	for _, at := range append(acts, end) {
		if open != nil && at.Sub(last) >= quietAfter && !r.noQuiet {
			open.ClosedAt, open.ClosedBy = last.Add(quietAfter), ClosedByQuiet
			open = nil
		}
		last = at
		if at.Before(end) && open == nil && r.hasRecentFailure(failures, at) {
			out = append(out, Loop{Node: e.Node, Namespace: e.Namespace, VMI: e.VMI, OpenedAt: at})
			open = &out[len(out)-1]
		}
	}
	if open != nil && !e.EndedAt.IsZero() {
		open.ClosedAt, open.ClosedBy = e.EndedAt, string(e.Outcome)
	}
	return out
}

// hasRecentFailure reports whether the latest failure before an act is young enough.
func (r rule) hasRecentFailure(failures []time.Time, at time.Time) bool {
	latest := time.Time{}
	for _, f := range failures {
		if (f.Before(at) || r.anyTime) && f.After(latest) {
			latest = f
		}
	}
	return !latest.IsZero() && (at.Sub(latest) <= staleAfter || r.noStale)
}

// TestWrongRulesFail shows that the comparison has teeth: the right rule passes, and each mistake that a detector is
// likely to make costs more than the one percent that is allowed.
func TestWrongRulesFail(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the runs of the short form are too few to distinguish all rules: make check runs it")
	}
	rules := map[string]rule{
		"right": {}, "any caller": {anyCaller: true}, "any time": {anyTime: true}, "any node": {anyNode: true},
		"aborts": {aborts: true}, "users": {users: true}, "older": {older: true}, "stale": {noStale: true}, "never quiet": {noQuiet: true},
		"first only": {firstOnly: true}, "marked only": {markedOnly: true},
	}
	var lock sync.Mutex
	scores := map[string]*score{}
	for name := range rules {
		scores[name] = &score{}
	}
	eachAtOnce(countRuns(160), func(i int) {
		r := New(uint64(i))
		rows, _ := deriveLoops(factsOf(r), r.End)
		h := historyOf(rows)
		lock.Lock()
		defer lock.Unlock()
		for name, rule := range rules {
			scores[name].add(matchLoops(r, name, r.Loops, rule.findLoops(h, r.End), apart))
		}
	})
	for name, s := range scores {
		worst := min(s.recall(), s.precision())
		t.Logf("%-12s recall %6.2f%% precision %6.2f%%", name, 100*s.recall(), 100*s.precision())
		if name == "right" {
			require.GreaterOrEqual(t, worst, wanted, fmt.Sprint(s.wrong))
			continue
		}
		require.Less(t, worst, wanted, "%s: the runs do not distinguish this mistake from the right rule", name)
	}
}
