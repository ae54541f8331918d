package sim

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// deriveLoops derives everything, and returns the loops that the detector finds.
func deriveLoops(facts []trail.Fact, now time.Time) (map[trail.Subject]trail.Derived, []found) {
	rows := trail.DeriveAll(facts, trail.DefaultThresholds(), now).Rows
	var out []found
	seen := map[trail.FactID]bool{} // a loop may stand with its node and with its VM
	for _, d := range rows {
		for _, l := range d.Loops {
			if !seen[l.ID] {
				seen[l.ID] = true
				out = append(out, found{string(l.Kind), Loop{l.Node, l.Namespace, l.VMI, l.OpenedAt, l.ClosedAt, string(l.ClosedBy), string(l.Path)}})
			}
		}
	}
	return rows, inOrder(out)
}
