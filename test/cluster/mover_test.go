package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// mover moves VMs to and fro, one after the other, as virt-controller does: a migration goes through its phases, with the time of each in its status,
// and of those that are over the five youngest are kept. Where the API server is away it tries again until it is back.
type mover struct {
	vms    []string
	client dynamic.Interface
	rest   time.Duration // between two phases
	kept   []string      // migrations that are over, the oldest first

	mu    sync.Mutex
	moved []transition
}

// transition is a phase that a migration entered: with its second, what was written last of that migration.
type transition struct {
	UID   string    `json:"migration_uid"`
	Phase string    `json:"phase"`
	At    time.Time `json:"at"`
}

// keeps is how many migrations of a VM that are over KubeVirt keeps.
const keeps = 5

// steps are the phases of a migration. Every third fails.
var (
	steps  = []string{"Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"}
	failed = []string{"Pending", "Scheduling", "Scheduled", "Failed"}
)

const migrationManifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: %[1]s
  namespace: shop
  labels: {kubevirt.io/vmi-name: %[2]s}
spec: {vmiName: %[2]s}
`

func newMover(t *testing.T, config *rest.Config, vms []string, pause time.Duration) *mover {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return &mover{vms: vms, client: client, rest: pause}
}

// A mover goes on to its next VM after some moves: hours of a test are not the life of a handful of VMs with thousands of migrations each.
const (
	vmsOfMover = 10
	movesOnEnd = 5
)

// run moves its VMs again and again until ctx ends, and finishes the move that it is in.
func (m *mover) run(ctx context.Context, t *testing.T) {
	t.Helper()
	for n := 1; ctx.Err() == nil; n++ {
		phases := steps
		if n%3 == 0 {
			phases = failed
		}
		vm := m.vms[n/movesOnEnd%len(m.vms)]
		m.runMigration(context.WithoutCancel(ctx), t, vm, fmt.Sprintf("%s-%d", vm, n), phases)
	}
}

// runMigration makes one migration and has it go through phases.
func (m *mover) runMigration(ctx context.Context, t *testing.T, vm, name string, phases []string) {
	t.Helper()
	objects, err := kubetest.Objects(fmt.Sprintf(migrationManifest, name, vm))
	require.NoError(t, err)
	all := m.client.Resource(migrations).Namespace(shop)
	uid := ""
	m.retryWrite(ctx, t, func() error {
		_, err := all.Create(ctx, objects[0], metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		got, err := all.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			uid = string(got.GetUID())
		}
		return err
	})
	var times []map[string]any
	for _, phase := range phases {
		time.Sleep(m.rest)
		at := time.Now().UTC().Truncate(time.Second)
		times = append(times, map[string]any{"phase": phase, "phaseTransitionTimestamp": at.Format(time.RFC3339)})
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": phase, "phaseTransitionTimestamps": times}})
		require.NoError(t, err)
		m.retryWrite(ctx, t, func() error {
			_, err := all.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		})
		m.mu.Lock()
		m.moved = append(m.moved, transition{uid, phase, at})
		m.mu.Unlock()
	}
	if m.kept = append(m.kept, name); len(m.kept) > keeps {
		m.retryWrite(ctx, t, func() error {
			if err := all.Delete(ctx, m.kept[0], metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
		m.kept = m.kept[1:]
	}
}

// retryWrite tries until the API server takes it.
func (m *mover) retryWrite(ctx context.Context, t *testing.T, write func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := write()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Errorf("write about %s: %v", m.vms[0], err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// crowd are movers at work.
type crowd struct {
	movers []*mover
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// startCrowd has so many VMs moved at any time, each change after a pause. The VMs are made.
func (s *site) startCrowd(movers int, pause time.Duration) *crowd {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	c := &crowd{stop: stop}
	for i := range movers {
		vms := make([]string, vmsOfMover)
		for j := range vms {
			vms[j] = fmt.Sprintf("vm-%d-%d", i+1, j+1)
			s.makeVM(vms[j], "LiveMigrate", "worker-1")
		}
		m := newMover(s.t, s.User("system:serviceaccount:kubevirt:kubevirt-controller", "system:masters"), vms, pause)
		c.movers = append(c.movers, m)
		c.work.Go(func() { m.run(ctx, s.t) })
	}
	s.t.Cleanup(func() { c.stopMovers() })
	return c
}

// stopMovers waits until every mover has finished its migration, and returns all transitions.
func (c *crowd) stopMovers() []transition {
	c.stop()
	c.work.Wait()
	var out []transition
	for _, m := range c.movers {
		out = append(out, m.moved...)
	}
	return out
}

// countTransitions returns how many transitions there were so far.
func (c *crowd) countTransitions() int {
	n := 0
	for _, m := range c.movers {
		m.mu.Lock()
		n += len(m.moved)
		m.mu.Unlock()
	}
	return n
}
