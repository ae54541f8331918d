// Package kubetest starts a Kubernetes control plane of a test's own: etcd and kube-apiserver, built from source out of the module
// test/kube, as processes that can be killed. RBAC, admission and auditing are on and work as everywhere; KubeVirt's kinds are
// installed without KubeVirt. There is no node, no scheduler and no controller: a pod is what a test makes of it, and nothing is
// collected as garbage.
//
//	c := kubetest.Start(t, kubetest.Options{})
//	c.KillServer() // as a crash does
//	c.StartServer()
//
// Everything listens on 127.0.0.1 alone, on ports that were free. The first use builds the programs (test/build), which takes some
// minutes of two cores and is done once for all packages.
//
//   - cluster.go: starting, killing, and forgetting history
//   - user.go: who asks: certificates of any user and group, tokens of ServiceAccounts, kubeconfigs; authority.go signs them
//   - tb.go: what a control plane needs of who started it: a test, or a program (test/lab)
//   - process.go: programs in the background; orphan_linux.go has them die with their parent
//   - object.go: manifests into the cluster; kubevirt.yaml has KubeVirt's kinds
package kubetest
