package trail_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// eventfulDay is a cluster in which nothing is open any more: a VM failed to move and was then moved for nothing, which overloaded its target;
// a drain and an upgrade moved others, one VM was shut down, and settings changed.
func eventfulDay() *trail.Overview {
	o := &trail.Overview{At: noon, From: noon.Add(-6 * time.Hour)}
	move := func(vm, from, to string, trigger trail.Trigger, ago time.Duration) trail.Migration {
		end := noon.Add(-ago)
		return trail.Migration{
			UID: vm + ago.String(), Namespace: "team", VMI: vm, SourceNode: from, TargetNode: to, Trigger: trigger, RequesterClass: trail.RequesterUnknown, Outcome: trail.OutcomeSucceeded,
			CreatedAt: end.Add(-10 * time.Second), FinishedAt: end,
		}
	}
	o.Recent = append(o.Recent, move("hot", "worker-2", "worker-3", trail.TriggerDescheduler, 70*time.Minute))
	needless := move("db", "worker-1", "worker-2", trail.TriggerDescheduler, 80*time.Minute)
	needless.Need, needless.Benefit, needless.BenefitBecause = trail.NotNeeded, trail.Harmed, "worker-2 was at 40 %, then at 55 %, over its threshold of 50 %"
	o.Recent = append(o.Recent, needless)
	for n := range 3 {
		failed := move("db", "worker-1", "worker-2", trail.TriggerDescheduler, 85*time.Minute+time.Duration(n)*5*time.Minute)
		failed.Outcome, failed.FailureClass, failed.FailureReason = trail.OutcomeFailed, trail.FailureDataPlane, trail.CauseLibvirt
		o.Recent = append(o.Recent, failed)
	}
	for n := range 20 {
		o.Recent = append(o.Recent, move(fmt.Sprintf("up-%d", n), fmt.Sprintf("worker-%d", n%4), "worker-5", trail.TriggerWorkloadUpdate, 2*time.Hour+time.Duration(n)*time.Minute))
	}
	lone := move("lone", "worker-4", "", trail.TriggerUser, 3*time.Hour)
	lone.Outcome, lone.Requester, lone.RequesterClass, lone.FailureClass, lone.FailureReason = trail.OutcomeFailed, "alice", trail.RequesterKubectl, trail.FailureDataPlane, trail.CauseNoProgress
	o.Recent = append(o.Recent, lone)
	o.Lost = []trail.LostGuest{{
		Placement: trail.Placement{Namespace: "team", VMI: "batch", Node: "worker-6", ToAt: noon.Add(-4 * time.Hour), EndedBy: trail.EndingEvicted, EndedRequesterClass: trail.RequesterKubectl, EndedRequester: "bob"},
	}}
	o.DrainsEnded = []trail.Drain{{Node: "worker-6", StartedAt: noon.Add(-5 * time.Hour), EndedAt: noon.Add(-4 * time.Hour), VMIsTotal: 6, VMIsLeft: 2, Outcome: trail.DrainAbandoned, Requester: "bob", RequesterClass: trail.RequesterKubectl}}
	five, one := int64(5), int64(1)
	o.Settings = []trail.SettingsInForce{
		{KubeVirt: &trail.KubeVirtSettings{Version: "v1.7.0"}, Descheduler: &trail.DeschedulerSettings{LimitPerNode: &five}},
		{From: noon.Add(-5 * time.Hour), KubeVirt: &trail.KubeVirtSettings{Version: "v1.8.0"}, Descheduler: &trail.DeschedulerSettings{LimitPerNode: &five}},
		{From: noon.Add(-150 * time.Minute), KubeVirt: &trail.KubeVirtSettings{Version: "v1.8.0"}, Descheduler: &trail.DeschedulerSettings{LimitPerNode: &one}},
	}
	return o
}

// TestLately lists what happened, the newest first: what is of one sort is one line, and a needless move names what followed it.
func TestLately(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, h := range eventfulDay().Lately() {
		var vms []string
		for _, vm := range h.VMs {
			vms = append(vms, vm.Name)
		}
		lines = append(lines, fmt.Sprintf("%s | %s +%d | %s | %s | %s | %s", h.What, strings.Join(vms, " "), h.More, strings.Join(h.Nodes, " "), h.Who, h.Text, strings.Join(h.Then, "; ")))
	}
	require.Equal(t, []string{
		"Moved | hot +0 | worker-2 worker-3 | descheduler | descheduler, took 10 s | ",
		"Moved without need, and overloaded its target | db +0 | worker-1 worker-2 | descheduler | descheduler: worker-2 was at 40 %, then at 55 %, over its threshold of 50 % | team/hot left worker-2 9 min 50 s later (descheduler)",
		"Migration failed, 3 times | db +0 | worker-1 | descheduler | descheduler: 3 × data transfer, libvirt error | ",
		"Moved: 20 VMs | up-0 up-1 up-2 up-3 up-4 +15 | worker-5 | KubeVirt | workload update, took 10 s | ",
		"Settings changed |  +0 |  |  | descheduler limit per node: 5 -> 1 | ",
		"Migration failed | lone +0 | worker-4 | alice (kubectl) | user: data transfer, no progress | ",
		"Drain: abandoned |  +0 | worker-6 | bob (kubectl) | 4 of 6 VMs gone, 1 of them shut down or lost, after 1 h 0 min | ",
		"Guest lost: evicted | batch +0 | worker-6 | bob (kubectl) | the VM was shut down, not moved, as the VM has no eviction strategy; it has not started again | ",
		"KubeVirt upgraded |  +0 |  |  | KubeVirt version: v1.7.0 -> v1.8.0 | ",
	}, lines)
}

// TestChecks names what is left to look at: the VM that was lost, the node that went over its threshold, the VM that nobody retries, the node with
// guests left. What is an incident is not named again.
func TestChecks(t *testing.T) {
	t.Parallel()
	o := eventfulDay()
	var lines []string
	for _, c := range o.Checks(nil) {
		lines = append(lines, strings.TrimPrefix(c.VM.String(), "/")+c.Node+" "+c.Text)
	}
	require.Equal(t, []string{
		"team/batch was lost on worker-6 at 2026-11-21 08:00:00Z (evicted, asked by bob (kubectl)): the VM was shut down, not moved, as the VM has no eviction strategy; it has not started again. Look at what runs in it.",
		"worker-2 went over the descheduler's threshold when VMs came (team/db). The last time: worker-2 was at 40 %, then at 55 %, over its threshold of 50 %. Look at its load now.",
		"team/lone stays on worker-4: its last migration failed at 2026-11-21 09:00:00Z (data transfer, no progress), and nobody retries it. The data transfer fails: read what virt-handler and virt-launcher log on both nodes, then check the migration network, its bandwidth, and how fast the guest writes its memory; a MigrationPolicy may allow post-copy, which loses the guest if the transfer breaks after the switch.",
		"worker-6 was not emptied: its drain was abandoned at 2026-11-21 08:00:00Z with 2 VMs left. Drain it again, or uncordon it.",
	}, lines)
	o.Stuck = []trail.Evacuation{newStuck("lone", "worker-4", trail.CauseNoProgress, time.Hour)}
	require.Len(t, o.Checks(o.Incidents()), 3)
}

// TestEvictionsLeftToAnOwner keeps a VM whose VMI was deleted before anybody moved it, and that was started again, apart from one whose evacuation was withdrawn: the first has
// to be looked at.
func TestEvictionsLeftToAnOwner(t *testing.T) {
	t.Parallel()
	left := func(vm string, outcome trail.Outcome) trail.Unmoved {
		return trail.Unmoved{Evacuation: trail.Evacuation{
			Namespace: "team", VMI: vm, Node: "n1", Strategy: trail.StrategyExternal, RequesterClass: trail.RequesterDescheduler, MarkedAt: noon.Add(-3 * time.Minute),
			EndedAt: noon.Add(-2 * time.Minute), Outcome: outcome,
		}}
	}
	withdrawn, deleted := left("withdrawn", trail.OutcomeCancelled), left("deleted", trail.OutcomeVMIGone)
	deleted.StartedAt, deleted.StartedOn = deleted.EndedAt, "n3"
	o := &trail.Overview{At: noon, From: noon.Add(-time.Hour), Unmoved: []trail.Unmoved{withdrawn}}
	recording := &trail.RecorderStatus{State: trail.RecorderRecording}
	require.Equal(t, trail.SeverityInfo, o.Headline(nil, recording).Severity)
	o.Unmoved = append(o.Unmoved, deleted)
	require.Equal(t, trail.SeverityWarning, o.Headline(nil, recording).Severity)
	checks := o.Checks(nil)
	require.Len(t, checks, 2)
	require.Equal(t, "team/deleted", checks[0].VM.String())
	require.Contains(t, checks[0].Text, "was shut down on n1 at 2026-11-21 11:58:00Z, not moved: descheduler had asked to evict it")
	require.Contains(t, checks[0].Text, "Who deleted its VMI is not recorded; it started again on n3, at once.")
	require.Contains(t, checks[1].Text, "was left to its owner; cancelled at")
	for _, c := range checks {
		require.Contains(t, c.Advice, "ownerReferences")
		require.Contains(t, c.Advice, "prefer-no-eviction")
	}
}
