// Package cluster tests evictrail end to end: the built program, under its own ServiceAccount with the rights it ships with, on a
// real kube-apiserver with etcd, RBAC, auditing and KubeVirt's kinds (package kubetest), storing into a real Postgres.
//
//   - recordings_test.go: recordings are written into the API server object by object, and what evictrail makes of them is compared
//     with what really happened; player_test.go writes them, clock_test.go moves their times into the present
//   - virtapi_test.go: the part of KubeVirt that evictions meet
//   - evictrail_test.go: a cluster, its evictrail, its rights
package cluster
