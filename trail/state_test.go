package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnnotationMode(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.3.1": AnnotatedByAttempt, "v1.5.2": AnnotatedByAttempt, "v1.6.0": AnnotatedByAttempt, "v1.6.0-rc.1": AnnotatedByAttempt,
		"v1.6.1": AnnotatedByMark, "v1.6.4": AnnotatedByMark, "v1.7.0": AnnotatedByMark, "v1.9.0": AnnotatedByMark, "v2.0.0": AnnotatedByMark,
		"": AnnotatedUnknown, "devel": AnnotatedUnknown,
	} {
		require.Equal(t, want, KubeVirtSettings{Version: version}.AnnotationMode(), version)
	}
}

func TestDrainBlockedCause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"DisksNotLiveMigratable cannot migrate VMI: PVC data is not shared": "DisksNotLiveMigratable",
		"NotMigratable": "NotMigratable", "Levitating it floats": string(ReasonOther), "": "",
	} {
		require.Equal(t, want, DrainBlocked{NotMigratable: text}.Cause(), text)
	}
}

func TestStateBeginsWithWhoNeedsSomebodyMost(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	evacuation := func(vmi string, failed int, age time.Duration) Evacuation {
		return Evacuation{Namespace: "shop", VMI: vmi, Node: "n1", MarkedAt: at.Add(-age), FailedAttempts: failed, Attempts: failed, InProgress: "true"}
	}
	s := NewState(StateRows{
		Guests:      map[string]int{"n1": 3, "n2": 1},
		Evacuations: []Evacuation{evacuation("young", 0, time.Minute), evacuation("old", 0, time.Hour), evacuation("failing", 2, time.Second)},
		Migrations: []Migration{
			{WaitReason: WaitQuota, CreatedAt: at.Add(-time.Minute)}, {WaitReason: WaitQuota, CreatedAt: at.Add(-time.Hour)}, {CreatedAt: at},
			{SchedulingAt: at, SourceNode: "n1", TargetNode: "n2"},
		},
		Cooling: []Cooling{{VMI: "a", Node: "n2", Effective: time.Minute}, {VMI: "b", Node: "n2", Effective: time.Hour}},
		Blocked: []DrainBlocked{{Node: "n1", Blocker: BlockerPDB}, {Node: "n1", Blocker: BlockerPDB}},
		Drains:  []Drain{{Node: "n1", StartedAt: at.Add(-time.Hour)}},
	}, NewEnv(nil), at)
	require.Equal(t, []string{"failing", "old", "young"}, []string{s.Evacuations[0].VMI, s.Evacuations[1].VMI, s.Evacuations[2].VMI})
	require.Equal(t, "b", s.Cooling[0].VMI)
	require.Equal(t, &NodeState{
		VMIs: 3, Marked: 3, Retrying: 1, Outgoing: 1, Slots: SlotState{InUse: 3, Oldest: at.Add(-time.Hour)}, DrainSince: at.Add(-time.Hour),
		Remaining: map[Blocker]int{BlockerPDB: 2},
	}, s.Nodes["n1"])
	require.Equal(t, &NodeState{VMIs: 1, InCooldown: 2, Incoming: 1}, s.Nodes["n2"])
	require.Equal(t, map[WaitReason]PendingState{
		WaitQuota: {Count: 2, Oldest: at.Add(-time.Hour)}, WaitQueued: {Count: 1, Oldest: at},
	}, s.Pending)
	require.Equal(t, 1, s.Running)
	require.Equal(t, []int{defaultPerCluster, defaultOutboundPerNode}, []int{s.PerCluster, s.PerNode})
}

func TestReturnsOfThePastHours(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	move := func(vmi, from, to string, trigger Trigger, ago time.Duration) Migration {
		return Migration{Namespace: "shop", VMI: vmi, SourceNode: from, TargetNode: to, Trigger: trigger, FinishedAt: at.Add(-ago)}
	}
	got := returnsOf([]Migration{
		move("there-and-back", "a", "b", TriggerDescheduler, 3*time.Hour), move("there-and-back", "b", "a", TriggerDescheduler, 2*time.Hour),
		move("there-and-back", "a", "b", TriggerDescheduler, time.Hour),
		move("brought-back", "a", "b", TriggerDescheduler, 2*time.Hour), move("brought-back", "b", "a", TriggerUser, time.Hour),
		move("drained-away", "a", "b", TriggerDrain, 2*time.Hour), move("drained-away", "b", "a", TriggerDescheduler, time.Hour),
		move("long-ago", "a", "b", TriggerDescheduler, 9*time.Hour), move("long-ago", "b", "a", TriggerDescheduler, 7*time.Hour),
		move("late", "a", "b", TriggerDescheduler, 8*time.Hour), move("late", "b", "a", TriggerDescheduler, time.Hour),
	}, 6*time.Hour, at)
	require.Equal(t, []VMCount{{Namespace: "shop", VMI: "there-and-back", Count: 2}}, got)
}
