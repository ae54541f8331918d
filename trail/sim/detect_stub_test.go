//go:build !loops

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// This file stands in for trail.DeriveAll until it is there: the rule of architecture §4 in its plainest form, on the
// rows that exist already. It tells whether the truth of the simulator is sane. Once trail.DeriveAll is there this file
// goes, and with it the build constraint of detect_test.go.

// derive derives everything, and gives the loops that the detector finds.
func derive(facts []trail.Fact, now time.Time) (map[trail.Subject]trail.Derived, []found) {
	by := map[trail.Subject][]trail.Fact{}
	for _, f := range facts {
		by[f.Subject] = append(by[f.Subject], f)
	}
	env := trail.NewEnv(facts)
	rows := map[trail.Subject]trail.Derived{}
	for subject := range by {
		rows[subject] = trail.Derive(subject, by[subject], env)
	}
	return rows, inOrder(naive(rows, now))
}

// naive looks at each evacuation by itself.
func naive(rows map[trail.Subject]trail.Derived, now time.Time) []found {
	acts := map[string][]time.Time{}
	failures := map[trail.FactID][]time.Time{}
	for _, d := range rows {
		for _, r := range d.Requests {
			if r.RequesterClass == trail.RequesterDescheduler && (r.Answer == trail.AnswerMarked || r.Answer == trail.AnswerAlreadyMarked) {
				acts[r.Node] = append(acts[r.Node], r.RequestedAt)
			}
		}
		for _, m := range d.Migrations {
			if m.EvacuationID != nil && m.Outcome == trail.OutcomeFailed {
				failures[*m.EvacuationID] = append(failures[*m.EvacuationID], m.FinishedAt)
			}
		}
	}
	for _, times := range acts {
		slices.SortFunc(times, time.Time.Compare)
	}
	var out []found
	for subject := range maps.Keys(rows) {
		for _, e := range rows[subject].Evacuations {
			for _, l := range loopsOf(e, acts[e.Node], failures[e.ID], now) {
				out = append(out, found{"dual_retry", l})
			}
		}
	}
	return out
}

func loopsOf(e trail.Evacuation, acts, failures []time.Time, now time.Time) []Loop {
	var out []Loop
	var open *Loop
	end := e.EndedAt
	if end.IsZero() {
		end = now
	}
	last := time.Time{}
	during := slices.DeleteFunc(slices.Clone(acts), func(at time.Time) bool { return at.Before(e.MarkedAt) || !at.Before(end) })
	for _, at := range append(during, end) {
		if open != nil && at.Sub(last) >= quietAfter {
			open.ClosedAt, open.ClosedBy = last.Add(quietAfter), ClosedByQuiet
			open = nil
		}
		last = at
		if at.Before(end) && open == nil && recent(failures, at) {
			out = append(out, Loop{Node: e.Node, Namespace: e.Namespace, VMI: e.VMI, OpenedAt: at})
			open = &out[len(out)-1]
		}
	}
	if open != nil && !e.EndedAt.IsZero() {
		open.ClosedAt, open.ClosedBy = e.EndedAt, string(e.Outcome)
	}
	return out
}

// recent tells whether the latest failure before an act is young enough.
func recent(failures []time.Time, at time.Time) bool {
	latest := time.Time{}
	for _, f := range failures {
		if f.Before(at) && f.After(latest) {
			latest = f
		}
	}
	return !latest.IsZero() && at.Sub(latest) <= staleAfter
}
