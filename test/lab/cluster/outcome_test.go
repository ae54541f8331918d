//go:build lab

package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// TestOutcomes has migrations end in each way that a Script knows, and sees what virt-controller makes of it.
func TestOutcomes(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, func(o *cluster.Options) {
		o.Migrations = map[string]any{"parallelMigrationsPerCluster": int64(20), "parallelOutboundMigrationsPerNode": int64(20)}
	})
	scripts := map[string]nodesim.Script{
		"crash-1": nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeCrash}),
		"stall-1": nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeStall, After: 3 * time.Second}),
		"abort-1": nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeStall}),
		"lose-1":  nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeLose, After: time.Second}),
		"never-1": nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeNeverReady}),
		"prep-1":  nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeStallPrepare}),
		"local-1": {NotMigratable: "DisksNotLiveMigratable"},
		"none-1":  {},
	}
	for name, script := range scripts {
		c.Nodes.SetScript(namespace, name, script)
		vm := cluster.VM{Namespace: namespace, Name: name}
		if name == "none-1" {
			vm.EvictionStrategy = "None"
		}
		require.NoError(t, c.CreateVM(ctx, vm))
	}
	uid := map[string]string{}
	for name := range scripts {
		require.NoError(t, c.Await(ctx, name+" runs", func(ctx context.Context) (bool, error) {
			vmi, err := c.VMI(ctx, namespace, name)
			if err != nil || readText(vmi, "status", "phase") != "Running" || cluster.Condition(vmi, "Ready") != "True" {
				return false, nil
			}
			uid[name] = string(vmi.GetUID())
			return true, nil
		}))
	}

	// Refused, and granted.
	answer := evictOnce(ctx, t, c, "local-1")
	require.Equal(t, 429, answer.Code)
	require.Contains(t, answer.Message, "not live-migratable")
	answer = evictOnce(ctx, t, c, "none-1")
	require.Equal(t, 201, answer.Code)
	awaitRestart(ctx, t, c, "none-1", uid["none-1"])

	for _, name := range []string{"crash-1", "stall-1", "abort-1", "lose-1", "never-1", "prep-1"} {
		evictVM(ctx, t, c, name)
	}
	awaitMigrations(ctx, t, c, "never-1", "Scheduling", 1)
	awaitMigrations(ctx, t, c, "prep-1", "PreparingTarget", 1)
	awaitMigrations(ctx, t, c, "crash-1", "Failed", 1)
	awaitMigrations(ctx, t, c, "stall-1", "Failed", 1)
	require.NoError(t, c.Await(ctx, "the migration of stall-1 has its reason", func(ctx context.Context) (bool, error) {
		all, err := c.MigrationsOf(ctx, namespace, "stall-1")
		return err == nil && readText(&all[0], "status", "migrationState", "failureReason") == "Live migration stuck for 4 seconds and has been aborted" ||
			readText(&all[0], "status", "migrationState", "failureReason") == "Live migration stuck for 3 seconds and has been aborted", err
	}))
	awaitRestart(ctx, t, c, "lose-1", uid["lose-1"])

	running := awaitMigrations(ctx, t, c, "abort-1", "Running", 1)
	migrations := c.API.Dynamic().Resource(cluster.Migrations).Namespace(namespace)
	require.NoError(t, migrations.Delete(ctx, running[0].GetName(), metav1.DeleteOptions{}))
	require.NoError(t, c.Await(ctx, "the aborted migration is gone", func(ctx context.Context) (bool, error) {
		_, err := migrations.Get(ctx, running[0].GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}))

	require.NoError(t, c.API.Dynamic().Resource(cluster.VMs).Namespace(namespace).Delete(ctx, "prep-1", metav1.DeleteOptions{}))
	require.NoError(t, c.Await(ctx, "nothing of prep-1 is left", func(ctx context.Context) (bool, error) {
		_, err := c.VMI(ctx, namespace, "prep-1")
		pods, err2 := c.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=prep-1"})
		return apierrors.IsNotFound(err) && err2 == nil && len(pods.Items) == 0, err2
	}))
}

// evictOnce evicts the launcher pod of a VM and returns the answer, whatever it is.
func evictOnce(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) cluster.Answer {
	t.Helper()
	pod, err := c.LauncherPod(ctx, namespace, name)
	require.NoError(t, err)
	answer, err := c.Evict(ctx, c.Admin(), namespace, pod, nil)
	require.NoError(t, err)
	t.Logf("%s: %d %s", name, answer.Code, answer.Message)
	return answer
}

// awaitRestart waits until a VM runs with another VMI.
func awaitRestart(ctx context.Context, t *testing.T, c *cluster.Cluster, name, old string) {
	t.Helper()
	require.NoError(t, c.Await(ctx, name+" runs again", func(ctx context.Context) (bool, error) {
		vmi, err := c.VMI(ctx, namespace, name)
		return err == nil && string(vmi.GetUID()) != old && readText(vmi, "status", "phase") == "Running", nil
	}))
}
