package trail_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// newStuck returns an evacuation of team/name that has failed for some time.
func newStuck(name, node string, reason trail.FailureReason, since time.Duration) trail.Evacuation {
	return trail.Evacuation{
		Namespace: "team", VMI: name, Node: node, MarkedAt: noon.Add(-since), RequesterClass: trail.RequesterDescheduler,
		Requester: "system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler-operand",
		Attempts:  4, FailedAttempts: 3, LastFailureClass: trail.FailureDataPlane, LastFailureReason: reason, NextRetryAt: noon.Add(-15 * time.Hour),
	}
}

// badDay is a cluster in which one VM has a loop, holds the slots of its node, blocks a drain and is in backoff, and others are stuck, moved to and
// fro or not begun with.
func badDay() *trail.Overview {
	o := &trail.Overview{At: noon, From: noon.Add(-6 * time.Hour), KubeVirt: trail.KubeVirtSettings{Version: "v1.8.0"}}
	o.Stuck = []trail.Evacuation{newStuck("db", "worker-1", trail.CauseLibvirt, 23*time.Hour), newStuck("web", "worker-2", trail.CauseLibvirt, time.Hour)}
	o.Waiting = []trail.Evacuation{{Namespace: "team", VMI: "new", Node: "worker-3", MarkedAt: noon.Add(-5 * time.Minute), RequesterClass: trail.RequesterOther, Requester: "alice"}}
	o.Loops = []trail.Loop{
		{Kind: trail.LoopEndlessRetry, Namespace: "team", VMI: "db", Node: "worker-1", OpenedAt: noon.Add(-22 * time.Hour), Summary: "It fails.", Advice: "Fix it."},
		{Kind: trail.LoopBudgetPinned, Node: "worker-1", OpenedAt: noon.Add(-21 * time.Hour), Evidence: []trail.Exhibit{{At: noon, VMI: "team/db"}}},
		{Kind: trail.LoopBudgetPinned, Node: "worker-9", OpenedAt: noon.Add(-time.Hour), Evidence: []trail.Exhibit{{At: noon, VMI: "hidden/vm"}}},
		{Kind: trail.LoopPingPong, Namespace: "team", VMI: "ball", OpenedAt: noon.Add(-time.Hour), Counts: map[string]int{"returns": 3}},
	}
	o.Blockers = []trail.DrainBlocker{
		{Node: "worker-1", Namespace: "team", VMI: "db", Blocker: trail.BlockerFailing, WaitingSince: noon.Add(-time.Hour)},
		{Node: "worker-1", Namespace: "team", VMI: "moving", Blocker: trail.BlockerMigrating, WaitingSince: noon.Add(-time.Hour)},
	}
	o.Held = []trail.Hold{
		{Namespace: "team", VMI: "db", Layer: trail.LayerBackoff, Until: noon.Add(time.Minute)},
		{Namespace: "team", VMI: "calm", Layer: trail.LayerCooldown, Until: noon.Add(time.Hour)},
	}
	o.Recent = []trail.Migration{{Namespace: "team", VMI: "db", SourceNode: "worker-1", Outcome: trail.OutcomeFailed, FinishedAt: noon.Add(-time.Minute), NeedBecause: "worker-1 was at 70 %, over its threshold of 50 %"}}
	return o
}

// TestIncidentsFold folds loops, stuck evacuations, holds and drain blockers of one VM into one incident: the worst comes first, and none is twice.
func TestIncidentsFold(t *testing.T) {
	t.Parallel()
	var lines []string
	incidents := badDay().Incidents()
	for _, i := range incidents {
		lines = append(lines, fmt.Sprintf("%s: %s %s (%s), %d loops, effects %q", i.Severity, i.Subject, i.Trouble, i.Cause, len(i.Loops), i.Effects))
	}
	require.Equal(t, []string{
		`Critical: team/db cannot leave its node (data transfer, libvirt error), 2 loops, effects ["blocks the descheduler on worker-1" "blocks the drain of worker-1"]`,
		`Critical: worker-9 has no free descheduler slot (blocked descheduler), 1 loops, effects []`,
		`Warning: team/web cannot leave its node (data transfer, libvirt error), 0 loops, effects []`,
		`Warning: team/ball is moved again and again (ping-pong), 1 loops, effects ["moved back 3 times"]`,
		`Info: team/new is marked to leave its node, without an attempt (no attempt yet), 0 loops, effects []`,
	}, lines)
	db := incidents[0]
	require.Equal(t, trail.IncidentSubject{Kind: trail.IncidentOfVM, Namespace: "team", Name: "db"}, db.Subject)
	require.Equal(t, "descheduler", db.Requester)
	require.Equal(t, noon.Add(-23*time.Hour), db.Since, "of the oldest part")
	require.Equal(t, 15*time.Hour, db.Overdue)
	require.Equal(t, "KubeVirt's backoff until 2026-11-21 12:01:00Z", db.Held)
	require.Equal(t, "worker-1 was at 70 %, over its threshold of 50 %", db.Load)
	require.Equal(t, "Fix it.", db.Advice)
}

// TestIncidentsAreGrouped groups incidents of one cause where that shortens the list, the largest group first.
func TestIncidentsAreGrouped(t *testing.T) {
	t.Parallel()
	o := trail.Overview{At: noon}
	for n := range 5 {
		o.Stuck = append(o.Stuck, newStuck(fmt.Sprintf("a-%d", n), "worker-1", trail.CauseNoProgress, time.Hour))
	}
	for n := range 12 {
		o.Stuck = append(o.Stuck, newStuck(fmt.Sprintf("b-%d", n), "worker-1", trail.CauseLibvirt, time.Hour))
	}
	groups := trail.GroupIncidents(o.Incidents())
	require.Len(t, groups, 2)
	require.Equal(t, "data transfer, libvirt error", groups[0].Cause)
	require.Len(t, groups[0].Incidents, 12)
	require.Len(t, groups[1].Incidents, 5)
	for n := range 10 {
		o.Acknowledged = append(o.Acknowledged, trail.Acknowledgement{Namespace: "team", VMI: fmt.Sprintf("b-%d", n), Author: "anna"})
	}
	var headings []string
	for _, g := range trail.GroupIncidents(o.Incidents()) {
		headings = append(headings, g.Heading())
	}
	require.Equal(t, []string{
		"5 VMs cannot leave their nodes: data transfer, no progress",
		"2 VMs cannot leave their nodes: data transfer, libvirt error",
		"10 VMs cannot leave their nodes: data transfer, libvirt error (acknowledged)",
	}, headings, "what somebody knows of comes last")
	groups = trail.GroupIncidents(badDay().Incidents())
	require.Len(t, groups, 1)
	require.Empty(t, groups[0].Cause, "each has another cause")
	require.Equal(t, []trail.IncidentGroup{{}}, trail.GroupIncidents(nil))
}

// TestShortRequesters names who asked in a few words.
func TestShortRequesters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user, as string
		class    trail.RequesterClass
		want     string
	}{
		{"system:serviceaccount:kube-system:descheduler-sa", "", trail.RequesterDescheduler, "descheduler"},
		{"", "", trail.RequesterDescheduler, "descheduler"},
		{"", "", trail.RequesterUnknown, "unknown requester"},
		{"system:serviceaccount:tools:mover", "", trail.RequesterServiceAccount, "tools/mover"},
		{"kubernetes-admin", "", trail.RequesterKubectl, "kubernetes-admin (kubectl)"},
		{"alice", "system:serviceaccount:tools:proxy", trail.RequesterOther, "alice, impersonated by tools/proxy"},
	} {
		require.Equal(t, c.want, trail.FormatShortRequester(c.user, c.as, c.class))
	}
}

// TestMovesAreExplained names why VMs are moved again and again: one overloads each node that it comes to, and pushes the other out.
func TestMovesAreExplained(t *testing.T) {
	t.Parallel()
	move := func(vm, from, to string, ago time.Duration) trail.Migration {
		end := noon.Add(-ago)
		return trail.Migration{Namespace: "team", VMI: vm, SourceNode: from, TargetNode: to, Outcome: trail.OutcomeSucceeded, CreatedAt: end.Add(-5 * time.Second), FinishedAt: end}
	}
	big := move("big", "n1", "n2", 5*time.Minute)
	big.Benefit = trail.Harmed
	o := &trail.Overview{At: noon, From: noon.Add(-time.Hour), Recent: []trail.Migration{move("small", "n2", "n1", 4*time.Minute), big}, Loops: []trail.Loop{
		{Kind: trail.LoopPingPong, Namespace: "team", VMI: "big", OpenedAt: noon.Add(-3 * time.Minute), Counts: map[string]int{"returns": 2}},
		{Kind: trail.LoopPingPong, Namespace: "team", VMI: "small", OpenedAt: noon.Add(-2 * time.Minute), Counts: map[string]int{"returns": 2}},
	}}
	incidents := o.Incidents()
	require.Equal(t, "its targets go over the threshold", incidents[0].Cause)
	require.Equal(t, "pushed out by team/big", incidents[1].Cause)
	require.Equal(t, []string{"moved back twice", "the last time at " + noon.Add(-4*time.Minute).Format("2006-01-02 15:04:05Z")}, incidents[1].Effects)
}

// TestGuestThatMayRunTwice has the incident of a node that is silent say first that a VM was started elsewhere while its guest may still run there.
func TestGuestThatMayRunTwice(t *testing.T) {
	t.Parallel()
	o := &trail.Overview{At: noon, From: noon.Add(-time.Hour), Outages: []trail.Outage{{Node: "n2", BeganAt: noon.Add(-6 * time.Minute)}}, Lost: []trail.LostGuest{
		{Placement: trail.Placement{Namespace: "team", VMI: "web", Node: "n2", EndedBy: trail.EndingTaint, EndedDetail: "node.kubernetes.io/unreachable:NoExecute", ToAt: noon.Add(-time.Minute)}, StartedOn: "n3", StartedAt: noon.Add(-time.Minute)},
		{Placement: trail.Placement{Namespace: "team", VMI: "off", Node: "n2", EndedBy: trail.EndingTaint, EndedDetail: "node.kubernetes.io/unreachable:NoExecute", ToAt: noon.Add(-time.Minute)}},
		{Placement: trail.Placement{Namespace: "team", VMI: "kept", Node: "n2", EndedBy: trail.EndingTaint, EndedDetail: "maintenance:NoExecute", ToAt: noon.Add(-time.Minute)}, StartedOn: "n3"},
	}}
	incidents := o.Incidents()
	require.Len(t, incidents, 1)
	require.Contains(t, incidents[0].Effects, "team/web runs on n3, and may still run on n2")
	require.True(t, strings.HasPrefix(incidents[0].Advice, "Switch n2 off at once (fence it), or make sure that it is off: until then team/web may run twice"), incidents[0].Advice)
	require.NotContains(t, incidents[0].Advice, "team/off")
	require.NotContains(t, incidents[0].Advice, "team/kept", "its node answered, and stopped the guest")
	lately := o.Lately()
	require.Contains(t, lately[0].Text, "its pod was deleted, not moved; it started again on n3, at once")
	require.Equal(t, "Node became not ready", lately[len(lately)-1].What)
}
