package trail_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestReadNodeLabels(t *testing.T) {
	t.Parallel()
	for pool, labels := range map[string]map[string]string{
		"":                     {"topology.kubernetes.io/zone": "a"},
		"worker":               {"node-role.kubernetes.io/worker": ""},
		"control-plane,worker": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""},
		"gpu,infra":            {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": "", "node-role.kubernetes.io/gpu": ""},
		"spot":                 {"node-role.kubernetes.io/gpu": "", "eks.amazonaws.com/nodegroup": "spot"},
		"first":                {"karpenter.sh/nodepool": "first", "cloud.google.com/gke-nodepool": "second"},
	} {
		labels["topology.kubernetes.io/region"], labels["node.kubernetes.io/instance-type"] = "east", "metal"
		d := trail.ReadNodeLabels(labels)
		require.Equal(t, &trail.LabelsDetail{Zone: labels["topology.kubernetes.io/zone"], Region: "east", InstanceType: "metal", Pool: pool, Labels: labels}, d)
		for key := range maps.Keys(labels) {
			require.True(t, trail.IsRecordedLabel(key), key)
		}
	}
	require.False(t, trail.IsRecordedLabel("cpu-feature.node.kubevirt.io/vmx"))
	require.Equal(t, "a/b=1,c=2", trail.ReadNodeLabels(map[string]string{"c": "2", "a/b": "1"}).String())
}

// TestWhyNamesZones moves a VM to a node of another zone and pool, and back, and asks why.
func TestWhyNamesZones(t *testing.T) {
	t.Parallel()
	h := newHistory()
	for node, labels := range map[string]map[string]string{
		"n1": {"topology.kubernetes.io/zone": "east-1", "karpenter.sh/nodepool": "general"},
		"n2": {"topology.kubernetes.io/zone": "east-2", "karpenter.sh/nodepool": "gpu"},
		"n3": {"topology.kubernetes.io/zone": "east-2", "karpenter.sh/nodepool": "gpu"},
		"n4": nil,
	} {
		h.changeNode(0, node, func(n *tracker.NodeObservation) { n.Labels = labels })
	}
	h.changeVM(time.Minute, "db", nil)
	for i, c := range []struct{ to, status, place string }{
		{"n1", "On n1 (zone east-1) for 8 min", ""},
		{"n2", "On n2 (zone east-2) for 8 min", "That is in another zone (east-2, before: east-1) and another pool (gpu, before: general)."},
		{"n3", "On n3 (zone east-2) for 8 min", ""}, // of the same zone and pool
		{"n4", "On n4 for 8 min", ""},               // whose labels name none
		{"n1", "On n1 (zone east-1) for 8 min", ""},
	} {
		begin := time.Duration(10*i) * time.Minute
		if i > 0 {
			h.createMigration(begin, fmt.Sprint(i), "db", byUser)
			h.runMigration(begin+time.Second, begin+time.Minute, fmt.Sprint(i), c.to)
		}
		a := h.deriveAt(begin+10*time.Minute-time.Second).Why("shop", "db")
		require.Contains(t, a.Brief.Status, c.status)
		if c.place == "" {
			require.NotContains(t, a.Paragraph, "another")
			continue
		}
		require.Contains(t, a.Paragraph, c.place)
	}
}
