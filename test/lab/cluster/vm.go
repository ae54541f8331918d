package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// The kinds of KubeVirt that a scenario reads.
var (
	VMs        = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	VMIs       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	Migrations = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}
)

// VM is a virtual machine to make.
type VM struct {
	Namespace, Name  string
	EvictionStrategy string            // empty: that of KubeVirt's configuration, LiveMigrate
	Node             string            // where it prefers to start; empty: anywhere
	Memory           string            // of the guest; empty: 2Gi
	Annotations      map[string]string // of the VMI, apart from the one that lets the descheduler evict it
}

// CreateVM makes a VM that runs. Its namespace is made where it does not exist.
func (c *Cluster) CreateVM(ctx context.Context, vm VM) error {
	if err := c.ensureNamespace(vm.Namespace); err != nil {
		return err
	}
	client, err := c.newDynamicClient()
	if err != nil {
		return err
	}
	if _, err := client.Resource(VMs).Namespace(vm.Namespace).Create(ctx, vm.toUnstructured(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create vm %s/%s: %w", vm.Namespace, vm.Name, err)
	}
	return nil
}

// ensureNamespace makes a namespace where it does not exist.
func (c *Cluster) ensureNamespace(name string) error {
	return c.host.Do(func() error {
		c.API.Namespace(name, nil)
		return nil
	})
}

func (vm VM) toUnstructured() *unstructured.Unstructured {
	annotations := map[string]any{"descheduler.alpha.kubernetes.io/evict": "true"}
	for key, value := range maps.All(vm.Annotations) {
		annotations[key] = value
	}
	spec := map[string]any{
		"domain": map[string]any{
			"cpu":    map[string]any{"cores": int64(1)},
			"memory": map[string]any{"guest": cmp.Or(vm.Memory, "2Gi")},
			"devices": map[string]any{
				"disks":      []any{map[string]any{"name": "root", "disk": map[string]any{"bus": "virtio"}}},
				"interfaces": []any{map[string]any{"name": "default", "masquerade": map[string]any{}}},
			},
		},
		"networks":                      []any{map[string]any{"name": "default", "pod": map[string]any{}}},
		"volumes":                       []any{map[string]any{"name": "root", "containerDisk": map[string]any{"image": "containerdisks/fedora:42"}}},
		"terminationGracePeriodSeconds": int64(30),
	}
	if vm.EvictionStrategy != "" {
		spec["evictionStrategy"] = vm.EvictionStrategy
	}
	if vm.Node != "" {
		spec["affinity"] = preferNode(vm.Node)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": map[string]any{"namespace": vm.Namespace, "name": vm.Name},
		"spec": map[string]any{
			"runStrategy": "Always",
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": vm.Name}, "annotations": annotations},
				"spec":     spec,
			},
		},
	}}
}

// preferNode is an affinity to a node that does not keep a migration from leaving it.
func preferNode(node string) map[string]any {
	return map[string]any{"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
		"weight": int64(100),
		"preference": map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/hostname", "operator": "In", "values": []any{node},
		}}},
	}}}}
}

// VMI returns a VMI as the API has it now.
func (c *Cluster) VMI(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := c.newDynamicClient()
	if err != nil {
		return nil, err
	}
	return client.Resource(VMIs).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// MigrationsOf returns the VirtualMachineInstanceMigrations of a VM that there are, in the order of their creation.
func (c *Cluster) MigrationsOf(ctx context.Context, namespace, vm string) ([]unstructured.Unstructured, error) {
	client, err := c.newDynamicClient()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(Migrations).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io/vmi-name=" + vm})
	if err != nil {
		return nil, err
	}
	return sortByCreation(list.Items), nil
}

func (c *Cluster) newDynamicClient() (dynamic.Interface, error) {
	return dynamic.NewForConfig(c.Admin())
}
