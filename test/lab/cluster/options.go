package cluster

import (
	"fmt"

	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// Options say what a cluster is made of.
type Options struct {
	KubeVirt     string         // version, as in build.KubeVirtVersions
	FeatureGates []string       // of KubeVirt
	Migrations   map[string]any // spec.configuration.migrations of KubeVirt: parallelMigrationsPerCluster, progressTimeout, ...
	Nodes        []nodesim.Node
	Pace         *nodesim.Pace // nil: nodesim.DefaultPace

	AuditPolicy  string   // empty: DefaultAuditPolicy
	AuditWebhook string   // text of the kubeconfig of who is sent audit events; empty: they only go to the log
	APIServer    []string // more flags of the kube-apiserver
}

// Workers returns that many nodes: worker-1, worker-2, ...
func Workers(count int) []nodesim.Node {
	var nodes []nodesim.Node
	for i := range count {
		nodes = append(nodes, nodesim.Node{Name: fmt.Sprintf("worker-%d", i+1)})
	}
	return nodes
}
