//go:build lab

package cluster_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/lab/cluster"
)

// TestRestarts kills the API server and virt-controller: evictions go on afterwards.
func TestRestarts(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t)
	for _, name := range []string{"calm-1", "calm-2"} {
		require.NoError(t, c.CreateVM(ctx, cluster.VM{Namespace: namespace, Name: name}))
		awaitRunning(ctx, t, c, name)
	}

	c.API.KillServer()
	c.API.StartServer()
	evictLater(ctx, t, c, "calm-1")
	awaitMigrations(ctx, t, c, "calm-1", "Succeeded", 1)

	controller, err := c.Component("virt-controller")
	require.NoError(t, err)
	controller.Kill()
	require.False(t, controller.Running())
	evictLater(ctx, t, c, "calm-2")
	require.NoError(t, controller.Start())
	awaitMigrations(ctx, t, c, "calm-2", "Succeeded", 1)
}

// evictLater evicts the launcher pod of a VM as soon as virt-api is asked again.
func evictLater(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	require.NoError(t, c.Await(ctx, name+" is marked", func(ctx context.Context) (bool, error) {
		pod, err := c.LauncherPod(ctx, namespace, name)
		if err != nil {
			return false, nil
		}
		answer, err := c.Evict(ctx, c.Admin(), namespace, pod, nil)
		return answer.Code == 429, err
	}))
}
