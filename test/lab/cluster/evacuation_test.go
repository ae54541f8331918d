//go:build lab

// The tests of this package start whole clusters, for which programs are built first. `go test ./...` leaves them out:
//
//	go test -tags lab ./lab/cluster -v -timeout 30m -lab.kubevirt v1.8.4

package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/nodesim"
)

var kubeVirt = flag.String("lab.kubevirt", "v1.8.4", "version of KubeVirt")

const namespace = "demo"

// TestEvacuation evicts a VM that can move and one that cannot, as a user, and sees what virt-controller makes of it.
func TestEvacuation(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t)
	c.Nodes.SetScript(namespace, "stuck-1", nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeFail, After: 2 * time.Second}))
	for _, name := range []string{"calm-1", "calm-2", "stuck-1"} {
		require.NoError(t, c.CreateVM(ctx, cluster.VM{Namespace: namespace, Name: name, Node: "worker-1"}))
	}
	for _, name := range []string{"calm-1", "calm-2", "stuck-1"} {
		awaitRunning(ctx, t, c, name)
	}

	source := evictVM(ctx, t, c, "calm-1")
	done := awaitMigrations(ctx, t, c, "calm-1", "Succeeded", 1)
	require.Equal(t, source.node, readText(&done[0], "metadata", "annotations", "kubevirt.io/evacuationMigration"))
	require.NoError(t, c.Await(ctx, "calm-1 is elsewhere and not marked", func(ctx context.Context) (bool, error) {
		vmi, err := c.VMI(ctx, namespace, "calm-1")
		return err == nil && readText(vmi, "status", "nodeName") != source.node && readText(vmi, "status", "evacuationNodeName") == "", err
	}))
	require.NoError(t, c.Await(ctx, "the source pod is done", func(ctx context.Context) (bool, error) {
		_, err := c.LauncherPod(ctx, namespace, "calm-1")
		return err == nil, nil
	}))
	t.Logf("calm-1: %s", formatPhases(&done[0]))

	evictVM(ctx, t, c, "stuck-1")
	failed := awaitMigrations(ctx, t, c, "stuck-1", "Failed", 3)
	for i, backoff := range []time.Duration{20 * time.Second, 40 * time.Second} {
		t.Logf("stuck-1: %s", formatPhases(&failed[i]))
		waited := phaseTime(t, &failed[i+1], "Scheduling").Sub(phaseTime(t, &failed[i], "Failed"))
		require.GreaterOrEqual(t, waited, backoff-time.Second, "backoff after failure %d", i+1)
		require.Less(t, waited, backoff+15*time.Second, "backoff after failure %d", i+1)
		t.Logf("stuck-1: %s from failure %d to the next target pod", waited, i+1)
	}
	vmi, err := c.VMI(ctx, namespace, "stuck-1")
	require.NoError(t, err)
	require.NotEmpty(t, readText(vmi, "status", "evacuationNodeName"), "the mark stays")
}

// startCluster starts a cluster that ends with the test.
func startCluster(t *testing.T, change ...func(*cluster.Options)) *cluster.Cluster {
	t.Helper()
	o := cluster.Options{KubeVirt: *kubeVirt, Nodes: cluster.Workers(3)}
	for _, f := range change {
		f(&o)
	}
	began := time.Now()
	h, err := cluster.NewHost(t.Context(), "", os.Stderr)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.Stop()
		if t.Failed() {
			t.Logf("what was written stays in %s", h.Dir)
			return
		}
		require.NoError(t, os.RemoveAll(h.Dir))
	})
	c, err := cluster.Start(h, o)
	require.NoError(t, err)
	t.Logf("started in %s, in %s", time.Since(began).Round(time.Second), h.Dir)
	return c
}

func awaitRunning(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	require.NoError(t, c.Await(ctx, name+" runs", func(ctx context.Context) (bool, error) {
		vmi, err := c.VMI(ctx, namespace, name)
		return err == nil && readText(vmi, "status", "phase") == "Running" && cluster.Condition(vmi, "Ready") == "True" &&
			cluster.Condition(vmi, "LiveMigratable") == "True", nil
	}))
}

// place is a launcher pod and its node.
type place struct{ pod, node string }

// evictVM evicts the launcher pod of a VM as alice, and returns where the VM was.
func evictVM(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) place {
	t.Helper()
	vmi, err := c.VMI(ctx, namespace, name)
	require.NoError(t, err)
	pod, err := c.LauncherPod(ctx, namespace, name)
	require.NoError(t, err)
	answer, err := c.Evict(ctx, c.User("alice", "system:masters"), namespace, pod, nil)
	require.NoError(t, err)
	require.Equal(t, 429, answer.Code, answer.Message)
	require.Contains(t, answer.Message, "Eviction triggered evacuation of VMI")
	marked, err := c.VMI(ctx, namespace, name)
	require.NoError(t, err)
	require.Equal(t, readText(vmi, "status", "nodeName"), readText(marked, "status", "evacuationNodeName"))
	return place{pod, readText(vmi, "status", "nodeName")}
}

// awaitMigrations waits until so many migrations of a VM are in a phase, and returns them.
func awaitMigrations(ctx context.Context, t *testing.T, c *cluster.Cluster, vm, phase string, count int) []unstructured.Unstructured {
	t.Helper()
	var found []unstructured.Unstructured
	require.NoError(t, c.Await(ctx, fmt.Sprintf("%d migrations of %s are %s", count, vm, phase), func(ctx context.Context) (bool, error) {
		all, err := c.MigrationsOf(ctx, namespace, vm)
		found = slices.DeleteFunc(all, func(m unstructured.Unstructured) bool { return readText(&m, "status", "phase") != phase })
		return len(found) >= count, err
	}))
	return found
}

func readText(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// readTransitions returns status.phaseTransitionTimestamps.
func readTransitions(o *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "phaseTransitionTimestamps")
	var out []map[string]any
	for _, entry := range list {
		if entry, ok := entry.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

func formatPhases(o *unstructured.Unstructured) string {
	var all []string
	for _, entry := range readTransitions(o) {
		all = append(all, fmt.Sprintf("%v %v", entry["phase"], entry["phaseTransitionTimestamp"]))
	}
	return o.GetName() + ": " + strings.Join(all, ", ")
}

// phaseTime returns when a migration came into a phase.
func phaseTime(t *testing.T, o *unstructured.Unstructured, phase string) time.Time {
	t.Helper()
	for _, entry := range readTransitions(o) {
		if entry["phase"] == phase {
			value, err := time.Parse(time.RFC3339, fmt.Sprint(entry["phaseTransitionTimestamp"]))
			require.NoError(t, err)
			return value
		}
	}
	require.Failf(t, "no such phase", "%s has no %s", o.GetName(), phase)
	return time.Time{}
}
