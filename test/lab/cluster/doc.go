// Package cluster runs a KubeVirt cluster on one machine, as ordinary processes on 127.0.0.1 and without root: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, virt-api with its webhooks, virt-controller and the descheduler are real and built from
// source; the nodes, with their kubelets, virt-handlers and virt-launchers, are simulated (nodesim). No guest runs anywhere.
//
// Example: three nodes, one VM whose migrations all fail. Its pod is evicted: virt-api marks the VMI and answers 429; virt-controller
// makes a migration, which the simulated virt-handler fails; virt-controller waits 20 s and makes the next.
//
//	h, err := cluster.NewHost(ctx, "", os.Stderr)
//	defer h.Stop()
//	c, err := cluster.Start(h, cluster.Options{KubeVirt: "v1.8.4", Nodes: cluster.Workers(3)})
//	c.Nodes.SetScript("demo", "db-1", nodesim.Always(nodesim.Migration{Outcome: nodesim.OutcomeFail}))
//	err = c.CreateVM(ctx, cluster.VM{Namespace: "demo", Name: "db-1"})
//	answer, err := c.Evict(ctx, c.User("alice", "system:masters"), "demo", pod)
//
// Everything that a run writes is in one folder: data of etcd, certificates, kubeconfigs, the audit log and what each component
// prints. The processes die with the one that started them. Programs are built once, into the user's cache (build).
//
// Start reading at cluster.go:
//   - cluster.go: starting; options.go: what can be chosen
//   - host.go: where it runs, and how it is stopped; what kubetest wants of a test, for a program
//   - user.go: certificates and kubeconfigs
//   - component.go: the processes apart from etcd and kube-apiserver, to be killed, paused and started again
//   - control_plane.go: kube-controller-manager and kube-scheduler
//   - kubevirt.go: virt-api, virt-controller and KubeVirt's configuration; manifest.go: what virt-operator would install
//   - descheduler.go: LowNodeUtilization on the load of the simulated nodes; load.go serves it
//   - vm.go: virtual machines; eviction.go: evictions
//   - wait.go: waiting for what the components do
//   - audit.go: the audit policy
package cluster
