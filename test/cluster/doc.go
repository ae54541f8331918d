// Package cluster tests evictrail end to end: the built program, under its own ServiceAccount with the rights it ships with, on a
// real kube-apiserver with etcd, RBAC, auditing and KubeVirt's kinds (package kubetest), storing into a real Postgres.
//
//   - recordings_test.go: recordings are written into the API server object by object, and what evictrail makes of them is compared
//     with what really happened; player_test.go writes them, clock_test.go moves their times into the present
//   - eviction_test.go: three users evict, seen by audit webhook and observer; and evictrail is never in the way
//   - evictionrequest_test.go: requesters want a VM's pod evicted by EvictionRequests (lifecycle.k8s.io), and who is named when it is moved
//   - rights_test.go: each right is needed, and none is missing
//   - outage_test.go: cut watches, a killed API server, an etcd that forgot, a killed evictrail; gate_test.go cuts, mover_test.go makes
//     the migrations that must not be lost
//   - epoch_test.go: etcd is put back to a backup, or emptied, under a running evictrail
//   - leader_test.go: two replicas, of which the one that derives is killed, ends, or hangs
//   - evictrail_test.go: a cluster, its evictrail, its rights; vm_test.go makes VMs, virtapi_test.go is the part of KubeVirt that evictions
//     meet
//
// By default it is a short form of some minutes; `make e2e` runs all: every recording at its own pace, and more of each outage.
package cluster
