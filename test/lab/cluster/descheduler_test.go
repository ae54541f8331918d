//go:build lab

package cluster_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// TestDescheduler has the descheduler evict from the node that its metric shows to be full, in the background.
func TestDescheduler(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t)
	for _, vm := range []struct {
		name, node string
		script     nodesim.Script
	}{
		{"stuck-1", "worker-1", nodesim.Script{Load: 0.3, Migrations: []nodesim.Migration{{Outcome: nodesim.OutcomeFail, After: 2 * time.Second}}}},
		{"calm-1", "worker-1", nodesim.Script{Load: 0.3}},
		{"idle-1", "worker-2", nodesim.Script{Load: 0.1}},
	} {
		c.Nodes.SetScript(namespace, vm.name, vm.script)
		require.NoError(t, c.CreateVM(ctx, cluster.VM{Namespace: namespace, Name: vm.name, Node: vm.node}))
		awaitRunning(ctx, t, c, vm.name)
	}
	require.InDelta(t, 0.6, c.Nodes.NodeLoads()["worker-1"], 0.01)

	_, err := c.StartDescheduler(ctx, cluster.Descheduler{Every: 10 * time.Second, PerNode: 1})
	require.NoError(t, err)
	require.NoError(t, c.Await(ctx, "a VM of worker-1 is marked by the descheduler", func(ctx context.Context) (bool, error) {
		for _, name := range []string{"stuck-1", "calm-1"} {
			vmi, err := c.VMI(ctx, namespace, name)
			if err != nil {
				return false, err
			}
			if readText(vmi, "status", "evacuationNodeName") == "worker-1" {
				t.Logf("%s is marked, by %q", name, vmi.GetAnnotations()["kubevirt.io/eviction-source"])
				return true, nil
			}
		}
		return false, nil
	}))
	audit, err := os.ReadFile(c.AuditFile())
	require.NoError(t, err)
	require.Contains(t, string(audit), "sigs.k8s.io/descheduler")
	require.Contains(t, string(audit), "system:serviceaccount:kube-system:descheduler-sa")
	require.Contains(t, string(audit), "Eviction triggered evacuation")
	require.Contains(t, string(audit), `"code":429`)
}
