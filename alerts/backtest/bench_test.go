package backtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

// makeHistory returns some days of a cluster in which each VM is moved every three days, and every tenth move fails
// twice before.
func makeHistory(vms, nodes, days int) *rewind.History {
	h := &rewind.History{From: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Thresholds: trail.DefaultThresholds()}
	h.To, h.RecordedFrom = h.From.Add(time.Duration(days)*24*time.Hour), h.From
	id := 0
	newID := func() (out trail.FactID) {
		id++
		copy(out[:], fmt.Sprintf("%016d", id))
		return out
	}
	const every = 72 * time.Hour
	for vm := range vms {
		uid, name := fmt.Sprintf("uid-%d", vm), fmt.Sprintf("vm-%d", vm)
		at := h.From.Add(every * time.Duration(vm) / time.Duration(vms))
		node, since := vm%nodes, h.From.Add(-time.Hour)
		for k := 0; at.Before(h.To.Add(-time.Hour)); k, at = k+1, at.Add(every) {
			from, to := fmt.Sprintf("node-%d", node), fmt.Sprintf("node-%d", (node+1)%nodes)
			e := trail.Evacuation{
				ID: newID(), Namespace: "shop", VMI: name, VMIUID: uid, Node: from, MarkedAt: at,
				MarkedBy:       trail.MarkedByMark,
				RequesterClass: trail.RequesterDescheduler, Outcome: trail.OutcomeMigrated, InProgress: "true",
			}
			begin := at
			for attempt := range 3 {
				fails := attempt < 2
				if fails && (vm+k)%10 != 0 {
					continue
				}
				m := trail.Migration{
					UID: fmt.Sprint("m", newID()), Namespace: "shop", VMI: name, VMIUID: uid, EvacuationID: &e.ID,
					Trigger:    trail.TriggerDescheduler,
					SourceNode: from, TargetNode: to, CreatedAt: begin, SchedulingAt: begin.Add(time.Second),
					FinishedAt: begin.Add(time.Minute),
					Outcome:    trail.OutcomeSucceeded,
				}
				if fails {
					m.Outcome, m.FailureClass = trail.OutcomeFailed, trail.FailureDataPlane
				}
				h.Migrations = append(h.Migrations, m)
				begin = begin.Add(10 * time.Minute)
				e.EndedAt = m.FinishedAt
			}
			h.Evacuations = append(h.Evacuations, e)
			h.Placements = append(h.Placements, trail.Placement{
				ID: newID(), Namespace: "shop", VMI: name, VMIUID: uid, Node: from, FromAt: since, ToAt: e.EndedAt,
			})
			node, since = (node+1)%nodes, e.EndedAt
		}
		h.Placements = append(h.Placements, trail.Placement{ID: newID(), Namespace: "shop", VMI: name, VMIUID: uid,
			Node: fmt.Sprintf("node-%d", node), FromAt: since})
	}
	return h
}

// BenchmarkRun tries all alerts, each with half and twice its numbers, on a week of 1,000 VMs on 50 nodes.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		h := makeHistory(1000, 50, 7)
		_, err := backtest.Run(b.Context(), h, h.From,
			backtest.Options{Groups: alerts.Groups(alerts.DefaultOptions()), Step: time.Minute})
		require.NoError(b, err)
	}
}
