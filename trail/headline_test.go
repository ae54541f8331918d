package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestHeadlines says in one line how it stands with clusters; only a recorder that sees everything lets one say that all is clear.
func TestHeadlines(t *testing.T) {
	t.Parallel()
	recording := &trail.RecorderStatus{State: trail.RecorderRecording}
	degraded := &trail.RecorderStatus{State: trail.RecorderDegraded, Why: []string{"The watch of pods is broken."}}
	quiet := func() *trail.Overview {
		return &trail.Overview{At: noon, From: noon.Add(-6 * time.Hour), Moves: []trail.MoveCount{{Outcome: trail.OutcomeSucceeded, Count: 14}}}
	}
	over := quiet()
	over.Closed = []trail.Loop{{Kind: trail.LoopDualRetry, Namespace: "team", VMI: "db", ClosedBy: trail.LoopMigrated}}
	over.Moves = append(over.Moves, trail.MoveCount{Outcome: trail.OutcomeFailed, Count: 3})
	over.Recent = []trail.Migration{
		{Namespace: "team", VMI: "db", TargetNode: "worker-2", Outcome: trail.OutcomeSucceeded, Need: trail.NotNeeded, Benefit: trail.Harmed, FinishedAt: noon},
		{Namespace: "team", VMI: "db", Outcome: trail.OutcomeFailed, FinishedAt: noon.Add(-time.Minute)},
	}
	retried := quiet()
	retried.Moves = append(retried.Moves, trail.MoveCount{Outcome: trail.OutcomeFailed, Count: 1})
	inverted := quiet()
	inverted.Closed = []trail.Loop{{Kind: trail.LoopPriorityInversion, Namespace: "team", VMI: "db", ClosedBy: trail.LoopCancelled}}
	alike := quiet()
	for name, reason := range map[string]trail.FailureReason{"a": trail.CauseLibvirt, "b": trail.CauseLibvirt, "c": trail.CauseNoProgress} {
		alike.Stuck = append(alike.Stuck, newStuck(name, "worker-1", reason, 23*time.Hour))
	}
	acknowledged := func(o trail.Overview, names ...string) *trail.Overview {
		for _, name := range names {
			o.Acknowledged = append(o.Acknowledged, trail.Acknowledgement{Namespace: "team", VMI: name, Author: "anna"})
		}
		return &o
	}
	for _, c := range []struct {
		name     string
		o        *trail.Overview
		recorder *trail.RecorderStatus
		severity trail.Severity
		want     string
	}{
		{"quiet", quiet(), recording, trail.SeverityNone, "All clear: 0 loops, 0 stuck, 14 moves in 6 h; all sources are watched."},
		{"replayed", quiet(), &trail.RecorderStatus{State: trail.RecorderNotRecording, Replayed: true}, trail.SeverityNone, "All clear at the end of the recording: 0 loops, 0 stuck, 14 moves in 6 h."},
		{"blind", quiet(), degraded, trail.SeverityWarning, "Not known whether all is well: the cluster is not fully recorded."},
		{"no recorder known", quiet(), nil, trail.SeverityWarning, "Not known whether all is well: the cluster is not fully recorded."},
		{"over", over, recording, trail.SeverityWarning, "Nothing is open now, but in the last 6 h: 1 loop closed (dual retry loop of team/db); 3 of 17 migrations failed (team/db), moved later; " +
			"1 needless move (team/db); 1 move overloaded its target (worker-2)."},
		{"failed once, and nothing is left to look at", retried, recording, trail.SeverityInfo, "Nothing is open now, but in the last 6 h: 1 of 15 migrations failed."},
		{"a loop closed, and nothing is left but to prevent the next", inverted, recording, trail.SeverityInfo,
			"Nothing is open now, but in the last 6 h: 1 loop closed (priority inversion of team/db)."},
		{"several", alike, recording, trail.SeverityWarning, "3 VMs cannot leave their nodes. Cause in 2 of 3: data transfer, libvirt error. Oldest: team/a, 23 h 0 min."},
		{"several, blind", alike, degraded, trail.SeverityWarning, "3 VMs cannot leave their nodes. Cause in 2 of 3: data transfer, libvirt error. Oldest: team/a, 23 h 0 min. " +
			"There may be more: the cluster is not fully recorded."},
		{"one of three acknowledged", acknowledged(*alike, "a"), recording, trail.SeverityWarning, "2 VMs cannot leave their nodes. Oldest: team/b, 23 h 0 min. 1 more is acknowledged."},
		{"two of three acknowledged", acknowledged(*alike, "b", "a"), recording, trail.SeverityWarning,
			"team/c cannot leave worker-1 (data transfer, no progress). For 23 h 0 min, 3 failed attempts, asked by descheduler. 2 more are acknowledged."},
		{"all acknowledged", acknowledged(*alike, "c", "b", "a"), recording, trail.SeverityInfo,
			"3 VMs cannot leave their nodes. Cause in 2 of 3: data transfer, libvirt error. Oldest: team/a, 23 h 0 min. All are acknowledged."},
		{"mixed", badDay(), recording, trail.SeverityCritical, "2 VMs cannot leave their nodes. Cause: data transfer, libvirt error. Oldest: team/db, 23 h 0 min. " +
			"Also critical: worker-9 has no free descheduler slot. Also: team/ball is moved again and again; team/new is marked to leave its node, without an attempt."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, trail.Headline{Severity: c.severity, Text: c.want}, c.o.Headline(c.o.Incidents(), c.recorder))
		})
	}
}

// TestFleetIsSorted has the clusters that need somebody first, those with a broken recorder too.
func TestFleetIsSorted(t *testing.T) {
	t.Parallel()
	recording := &trail.RecorderStatus{State: trail.RecorderRecording}
	stopped := &trail.RecorderStatus{State: trail.RecorderNotRecording, Why: []string{"No sign of life."}}
	lines := []trail.FleetLine{
		trail.NewFleetLine(trail.ClusterSummary{Name: "a-calm"}, recording, nil),
		trail.NewFleetLine(trail.ClusterSummary{Name: "b-over", Closed: 2}, recording, nil),
		trail.NewFleetLine(trail.ClusterSummary{Name: "c-blind"}, stopped, nil),
		trail.NewFleetLine(trail.ClusterSummary{Name: "d-bad", Loops: 4, Stuck: 2}, recording, badDay()),
		trail.NewFleetLine(trail.ClusterSummary{Name: "e-not-read", Loops: 1}, recording, nil),
	}
	trail.SortFleet(lines)
	var names []string
	attention := 0
	for _, l := range lines {
		names = append(names, l.Name)
		if l.NeedsAttention() {
			attention++
		}
	}
	require.Equal(t, []string{"d-bad", "e-not-read", "c-blind", "b-over", "a-calm"}, names)
	require.Equal(t, 3, attention)
	require.Equal(t, "No sign of life.", lines[2].Text)
	require.Equal(t, "2 loops closed in the last day.", lines[3].Text)
	require.Equal(t, noon.Add(-23*time.Hour), lines[0].Oldest)
}
