package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestNodeOfASilentKubelet reads a node as the node lifecycle controller leaves it, and a pod of it that is being deleted.
func TestNodeOfASilentKubelet(t *testing.T) {
	t.Parallel()
	o := decodeObject([]byte(`{"metadata": {"name": "n3", "uid": "u", "resourceVersion": "7"},
		"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-11-21T00:10:05Z"}, {"key": "a", "effect": "NoSchedule", "timeAdded": null}]},
		"status": {"conditions": [{"type": "MemoryPressure", "status": "Unknown"},
			{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-11-21T00:10:00Z"}]}}`), &slimNode{})
	require.NoError(t, o.err)
	n, ok := o.observe(tracker.Seen{}).(tracker.NodeObservation)
	require.True(t, ok)
	require.Equal(t, []tracker.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute", AddedAt: time.Date(2026, 11, 21, 0, 10, 5, 0, time.UTC)}, {Key: "a", Effect: "NoSchedule"}}, n.Taints)
	require.Equal(t, &tracker.Condition{
		Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.", ChangedAt: time.Date(2026, 11, 21, 0, 10, 0, 0, time.UTC),
	}, n.Ready)

	o = decodeObject([]byte(`{"metadata": {"name": "virt-launcher-a", "namespace": "shop", "uid": "p", "resourceVersion": "8",
		"deletionTimestamp": "2026-11-21T00:16:05Z", "deletionGracePeriodSeconds": 60}, "status": {"phase": "Running"}}`), &slimPod{})
	require.NoError(t, o.err)
	facts := tracker.New("c").Observe(o.observe(tracker.Seen{At: time.Date(2026, 11, 21, 0, 15, 6, 0, time.UTC)}))
	last := facts[len(facts)-1]
	require.Equal(t, trail.ReasonPodTerminating, last.Reason)
	require.Equal(t, time.Date(2026, 11, 21, 0, 15, 5, 0, time.UTC), last.OccurredAt, "when its deletion was asked for, not when its grace ends")
}
