package cluster_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// shop is the namespace of the VMs that tests make.
const shop = "shop"

const vmManifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata:
  name: %[1]s
  namespace: shop
  annotations: {kubevirt.io/latest-observed-api-version: v1}
spec: {evictionStrategy: %[2]s}
status:
  phase: Running
  nodeName: %[3]s
  conditions:
  - {type: LiveMigratable, status: "True"}
  phaseTransitionTimestamps:
  - {phase: Running, phaseTransitionTimestamp: %[4]q}
`

const launcherManifest = `
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  namespace: shop
  labels: {kubevirt.io: virt-launcher, kubevirt.io/created-by: %[3]q}
  annotations: {kubevirt.io/domain: %[2]s}
  ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, name: %[2]s, uid: %[3]q, controller: true}]
spec:
  nodeName: %[4]s
  terminationGracePeriodSeconds: 0
  containers: [{name: compute, image: virt-launcher}]
`

// launcherPodName names the virt-launcher pod of a VM.
func launcherPodName(vm string) string { return "virt-launcher-" + vm + "-x7k2p" }

// patchObject changes an object of the namespace shop by a merge patch.
func (s *site) patchObject(kind schema.GroupVersionResource, name, patch string, subresource ...string) {
	s.t.Helper()
	_, err := s.Dynamic().Resource(kind).Namespace(shop).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	require.NoError(s.t, err, "%s %s", kind.Resource, name)
}

// makeNodes makes nodes.
func (s *site) makeNodes(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.Apply("{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}")
	}
}

// makeVM makes a VM that runs on a node, as its VMI and its pod, in the namespace shop. It returns the UID of the VMI.
func (s *site) makeVM(name, strategy, node string) types.UID {
	s.t.Helper()
	s.Apply(fmt.Sprintf(vmManifest, name, strategy, node, time.Now().UTC().Format(time.RFC3339)))
	vmi, err := s.Dynamic().Resource(vmis).Namespace(shop).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	s.Apply(fmt.Sprintf(launcherManifest, launcherPodName(name), name, vmi.GetUID(), node))
	s.patchObject(pods, launcherPodName(name), `{"status":{"phase":"Running"}}`, "status")
	return vmi.GetUID()
}
