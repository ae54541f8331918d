package nodesim

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const unpaused = corev1.PodConditionType("kubevirt.io/virtual-machine-unpaused")

// newLauncherPod is a launcher pod on a node, the target of a migration where that is not empty.
func newLauncherPod(name, node, migration string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: "p1", Labels: map[string]string{"kubevirt.io": "virt-launcher", labelCreatedBy: "u1"}},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "compute", Image: "virt-launcher"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: unpaused}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if migration != "" {
		p.Labels[labelMigrationJob] = migration
	}
	return p
}

// TestPodStages: a launcher pod starts, is ready when its gate is, and ends with its guest.
func TestPodStages(t *testing.T) {
	t.Parallel()
	v := parseVMI(t, handedOver)
	p := newLauncherPod("source", "worker-1", "", corev1.PodPending)
	require.Equal(t, podStart, nextPodStage(p, v, Migration{}))
	p = runPod(podStart, p, noon)
	require.False(t, conditionTrue(p, corev1.PodReady), "the gate is not there yet")
	require.Equal(t, podIdle, nextPodStage(p, v, Migration{}))

	setCondition(p, unpaused, true, "", metav1.NewTime(noon))
	require.Equal(t, podReady, nextPodStage(p, v, Migration{}))
	p = runPod(podReady, p, noon)
	require.True(t, conditionTrue(p, corev1.PodReady))

	v.Status.Migration.Completed = true
	require.Equal(t, podExit, nextPodStage(p, v, Migration{}), "the guest has left")
	require.Equal(t, podExit, nextPodStage(p, nil, Migration{}), "the VMI is gone")
	p.DeletionTimestamp = &metav1.Time{Time: noon}
	require.Equal(t, podExit, nextPodStage(p, v, Migration{}))
	p = runPod(podExit, p, noon)
	require.Equal(t, corev1.PodSucceeded, p.Status.Phase)
	require.Equal(t, podRemove, nextPodStage(p, v, Migration{}))
}

func TestTargetPodStages(t *testing.T) {
	t.Parallel()
	p := runPod(podStart, newLauncherPod("target", "worker-2", "m1", corev1.PodPending), noon)
	for _, tt := range []struct {
		name   string
		script Migration
		change func(*migrationState)
		want   podStage
	}{
		{name: "under way", want: podIdle},
		{name: "crashes while it prepares", script: Migration{Outcome: OutcomeCrash}, want: podCrash},
		{name: "ends with a failed migration", change: func(m *migrationState) { m.Failed = true }, want: podExit},
		{name: "of another migration", change: func(m *migrationState) { m.UID, m.Failed = "m2", true }, want: podIdle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := parseVMI(t, handedOver)
			if tt.change != nil {
				tt.change(v.Status.Migration)
			}
			require.Equal(t, tt.want, nextPodStage(p, v, tt.script))
		})
	}
}
