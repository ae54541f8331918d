package nodesim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Node is a simulated node.
type Node struct {
	Name   string
	Labels map[string]string // apart from those of a worker with KubeVirt
	CPU    string            // allocatable; empty: 32
	Memory string            // allocatable; empty: 64Gi
}

// machineType is what q35 means on every node.
const machineType = "pc-q35-rhel9.6.0"

// node is a Node that runs.
type node struct {
	Node
	kubelet kubernetes.Interface
	down    atomic.Bool // its kubelet and its virt-handler are silent
}

// addressOf is an address that follows from a node's name. Nothing listens on it.
func addressOf(node string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	return fmt.Sprintf("192.168.10.%d", 1+h.Sum32()%250)
}

// newNodeObject is the node as its kubelet and its virt-handler have labelled it. All nodes have the same CPU: a guest can move anywhere.
func (n Node) newNodeObject(now time.Time) *corev1.Node {
	const model = "Skylake-Server-IBRS"
	labels := map[string]string{
		"kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "zone-a",
		"kubevirt.io/schedulable":                            "true",
		"machine-type.node.kubevirt.io/q35":                  "true",
		"machine-type.node.kubevirt.io/" + machineType:       "true",
		"cpu-model.node.kubevirt.io/" + model:                "true",
		"cpu-model-migration.node.kubevirt.io/" + model:      "true",
		"host-model-cpu.node.kubevirt.io/" + model:           "true",
		"host-model-required-features.node.kubevirt.io/apic": "true",
		"cpu-feature.node.kubevirt.io/apic":                  "true",
		"cpu-vendor.node.kubevirt.io/Intel":                  "true",
		"cpu-timer.node.kubevirt.io/tsc-frequency":           "2400000000",
		"cpu-timer.node.kubevirt.io/tsc-scalable":            "true",
	}
	maps.Copy(labels, n.Labels)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cmp.Or(n.CPU, "32")), corev1.ResourceMemory: resource.MustParse(cmp.Or(n.Memory, "64Gi")),
		corev1.ResourcePods: resource.MustParse("250"), corev1.ResourceEphemeralStorage: resource.MustParse("200Gi"),
	}
	for _, device := range []corev1.ResourceName{"devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net"} {
		room[device] = resource.MustParse("1k")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: map[string]string{annotationHeartbeat: toAPITime(now).Format(time.RFC3339)}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: nodeConditions(toAPITime(now)),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addressOf(n.Name)}, {Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo:  corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", OSImage: "simulated", KubeletVersion: "v1.37.0"},
		},
	}
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

// registerNode makes the node known, with its lease. A node of an earlier run is taken over.
func (n *node) registerNode(ctx context.Context, now time.Time) error {
	if _, err := n.kubelet.CoreV1().Nodes().Create(ctx, n.newNodeObject(now), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("join node %s: %w", n.Name, err)
	}
	return n.renewLease(ctx, now)
}

// renewLease renews the lease, by which kube-controller-manager knows that the node lives.
func (n *node) renewLease(ctx context.Context, now time.Time) error {
	leases, at := n.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease), metav1.NewMicroTime(now)
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: n.Name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: new(int32(40)), RenewTime: &at},
		}, metav1.CreateOptions{})
	} else if err == nil {
		lease.Spec.RenewTime = &at
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew lease of node %s: %w", n.Name, err)
	}
	return nil
}

// sendHeartbeat is the heartbeat of the virt-handler, without which virt-controller takes the node for unschedulable. The kubelet writes it: a
// policy of KubeVirt wants virt-handler to have the token of a pod on that node.
func (n *node) sendHeartbeat(ctx context.Context, now time.Time) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{"kubevirt.io/schedulable":"true"}}}`, annotationHeartbeat, toAPITime(now).Format(time.RFC3339))
	if _, err := n.kubelet.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("beat for node %s: %w", n.Name, err)
	}
	return nil
}

// renewConditions renews the conditions, as a kubelet that was gone for a while has to: kube-controller-manager made them unknown.
func (n *node) renewConditions(ctx context.Context, now time.Time) error {
	object, err := n.kubelet.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", n.Name, err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	object.Status.Conditions = nodeConditions(toAPITime(now))
	if _, err := n.kubelet.CoreV1().Nodes().UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of node %s: %w", n.Name, err)
	}
	return nil
}

// keepNodeAlive renews what says that the node lives until the context ends.
func (s *Simulator) keepNodeAlive(ctx context.Context, n *node) {
	tick := time.NewTicker(s.pace.LeaseStep)
	defer tick.Stop()
	for beats := 1; ; beats++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if n.down.Load() {
				continue
			}
			err := errors.Join(n.renewLease(ctx, now), n.renewConditions(ctx, now))
			if beats%3 == 0 {
				err = errors.Join(err, n.sendHeartbeat(ctx, now))
			}
			if err != nil && ctx.Err() == nil {
				s.log.Warn("node not renewed", "node", n.Name, "err", err)
			}
		}
	}
}
