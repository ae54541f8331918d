package backtest

import (
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

// Cause is something that evictrail recorded as wrong, with what is known of it today.
type Cause struct {
	Kind      string    `json:"kind"` // CauseLoop and alike
	What      string    `json:"what"` // the kind of loop, or why a guest was lost
	Namespace string    `json:"namespace,omitempty"`
	VMI       string    `json:"vmi,omitempty"`
	Node      string    `json:"node,omitempty"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to,omitzero"` // zero while it goes on
}

// The kinds of causes.
const (
	CauseLoop      = "loop"             // that later facts did not refute
	CauseGuestLost = "guest_lost"       // by the platform
	CauseOutage    = "node_outage"      // a node was not ready
	CauseObjective = "objective_missed" // an evacuation took longer than was agreed
)

// findCauses lists what was wrong in a history, in no order.
func findCauses(h *rewind.History) []Cause {
	var out []Cause
	for i := range h.Loops {
		if l := &h.Loops[i]; l.ClosedBy != trail.LoopRefuted {
			out = append(out, Cause{CauseLoop, string(l.Kind), l.Namespace, l.VMI, l.Node, l.OpenedAt, l.ClosedAt})
		}
	}
	for i := range h.Placements {
		if p := &h.Placements[i]; p.EndedBy.ByPlatform() {
			out = append(out, Cause{CauseGuestLost, string(p.EndedBy), p.Namespace, p.VMI, p.Node, p.ToAt, p.ToAt})
		}
	}
	for i := range h.Outages {
		o := &h.Outages[i]
		out = append(out, Cause{CauseOutage, string(o.Cause), "", "", o.Node, o.BeganAt, o.EndedAt})
	}
	for i := range h.Evacuations {
		e := &h.Evacuations[i]
		if at := e.JudgedAt(); e.ObjectiveMet != nil && !*e.ObjectiveMet {
			out = append(out, Cause{CauseObjective, string(e.RequesterClass), e.Namespace, e.VMI, e.Node, at,
				e.EndedAt})
		}
	}
	return out
}

// beside is how long before an expression began to hold its cause may have ended: most look back about an hour.
const beside = time.Hour

// isOf reports whether a cause is about what an alert is about, and stood beside it: about the same VM, or where one of
// both names no VM the same node, or where one of both names neither the cluster.
func (c Cause) isOf(f Firing, end time.Time) bool {
	if c.From.After(f.EndOr(end)) || !c.To.IsZero() && c.To.Before(f.PendingAt.Add(-beside)) {
		return false
	}
	vmi, node := f.Labels[metrics.LabelVMI], f.Labels[metrics.LabelNode]
	switch {
	case vmi != "" && c.VMI != "":
		return vmi == c.VMI && f.Labels[metrics.LabelNamespace] == c.Namespace
	case node != "" && c.Node != "":
		return node == c.Node
	}
	return vmi == "" && node == ""
}

// causesKept is how many causes of a firing are named: of an alert about the cluster all that was wrong in it is one.
const causesKept = 20

// addCauses adds to a firing what stood beside it.
func (f *Firing) addCauses(all []Cause, end time.Time) {
	for _, c := range all {
		switch {
		case !c.isOf(*f, end):
		case len(f.Causes) == causesKept:
			f.CausesMore++
		default:
			f.Causes = append(f.Causes, c)
		}
	}
}

// Describe names a cause in a few words.
func (c Cause) Describe() string {
	switch c.Kind {
	case CauseLoop:
		return "loop: " + trail.LoopKind(c.What).Label().Short
	case CauseGuestLost:
		return "guest lost: " + trail.Ending(c.What).Label().Short
	case CauseOutage:
		return "node not ready"
	}
	return "objective missed"
}
