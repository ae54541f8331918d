package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestWhyNode asks why VMs left a node: while it is drained, after that, and of one that nobody drained.
func TestWhyNode(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.changeNode(0, "n1", nil)
	for _, vm := range []string{"a", "b", "c"} {
		h.changeVM(0, vm, nil)
		h.observePod(0, "virt-launcher-"+vm, vm, "n1", "", nil)
	}
	h.changeNode(time.Minute, "n1", func(n *tracker.NodeObservation) { n.Unschedulable = true })
	for _, vm := range []string{"a", "b"} {
		h.observeRequest(2*time.Minute, "k-"+vm, "virt-launcher-"+vm, "alice", `Eviction triggered evacuation of VMI "shop/`+vm+`"`, func(o *tracker.RequestObservation) { o.Detail.Agent = "kubectl/v1.35" })
		h.markVM(2*time.Minute, vm, "")
		h.createMigration(2*time.Minute, vm, vm, nil)
		h.failMigration(3*time.Minute, vm)
	}
	a := h.deriveAt(10 * time.Minute).WhyNode("n1")
	require.Equal(t, "n1: At 2026-11-21 00:01:00Z alice (kubectl) began to drain n1 of 3 VMs. It goes on: 3 of 3 VMs are left after 9m0s. "+
		"Since 2026-11-21 00:01:00Z KubeVirt marked 2 VMs to leave it: 2 open. 3 VMs are there now.", a.Paragraph)
	require.Equal(t, "n1", a.Node)
	require.Empty(t, a.Namespace+a.VMI)
	require.NotEmpty(t, a.Evidence)
	require.Equal(t, trail.KindNodeCordoned, a.Evidence[0].Kind)

	h.changeVM(11*time.Minute, "c", func(v *tracker.VMIObservation) { v.Gone = true })
	h.changeNode(12*time.Minute, "n1", func(n *tracker.NodeObservation) { n.Unschedulable = false })
	require.Contains(t, h.deriveAt(50*time.Minute).WhyNode("n1").Paragraph, "The drain of n1 was given up after ")
	require.Equal(t, "n9: Nobody was seen to drain it. 0 VMs are there now.", h.deriveAt(10*time.Minute).WhyNode("n9").Paragraph)
}
