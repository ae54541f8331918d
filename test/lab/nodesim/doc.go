// Package nodesim plays the nodes of a KubeVirt cluster: kubelet, virt-handler and virt-launcher. The API server, the scheduler,
// virt-api and virt-controller are real and find in the API what they would find on a cluster with machines.
//
// Example: a launcher pod is bound to worker-1. After Pace.PodStart its status says Running and ready; virt-controller makes the VMI
// Scheduled; after Pace.Boot the VMI is Running. virt-controller hands a migration over by filling status.migrationState; the target's
// virt-handler answers with an address, the source's with a start, and after the time that the VM's Script names the migration ends as
// the Script says. virt-controller moves the VirtualMachineInstanceMigration by itself, from what it sees.
//
// Invariants:
//   - What happens next to a pod or a VMI is its stage: a pure function of the objects. The memory of a Simulator is only when an
//     object entered its stage, and the order of a VM's migrations.
//   - Every change carries the resourceVersion that it was derived from. Who comes too late reads again.
//   - Kubelets write as system:node:<node>, virt-handlers as their ServiceAccount: roles, audit and webhooks see who they expect.
//
// Start reading at simulator.go:
//   - simulator.go: watches, the queue, and who owns the goroutines
//   - script.go: what a test says about a VM; pace.go: how long the ordinary steps take
//   - vmi.go: what is read of a VMI; stage.go: what its virt-handler does next; handler.go: the changes
//   - migration.go: the changes of a live migration; event.go: the Kubernetes Events of virt-handler
//   - pod.go: what the kubelet does next to a pod; kubelet.go: its changes
//   - node.go: node objects, leases and heartbeats
//   - load.go: node load as Prometheus sees it
package nodesim
