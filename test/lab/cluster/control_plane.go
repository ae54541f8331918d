package cluster

import (
	"errors"
	"fmt"
)

// controllers are those that a KubeVirt cluster needs: nodes and their taints, garbage, namespaces, accounts, budgets, quotas, roles.
const controllers = "node-lifecycle-controller,taint-eviction-controller,garbage-collector-controller,pod-garbage-collector-controller," +
	"namespace-controller,serviceaccount-controller,disruption-controller,resourcequota-controller,clusterrole-aggregation-controller"

// startControlPlane starts kube-controller-manager and kube-scheduler. Neither serves anything.
func (c *Cluster) startControlPlane() error {
	manager, err := c.componentKubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	scheduler, err := c.componentKubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q}\n", scheduler)
	config, err := c.writeFile("kube-scheduler.yaml", []byte(text))
	if err != nil {
		return err
	}
	err = c.startComponent("kube-controller-manager", "--kubeconfig="+manager, "--authentication-kubeconfig="+manager,
		"--authorization-kubeconfig="+manager, "--controllers="+controllers, "--use-service-account-credentials=true", "--leader-elect=false",
		"--secure-port=0", "--node-monitor-period=5s", "--v=2")
	err2 := c.startComponent("kube-scheduler", "--config="+config, "--authentication-kubeconfig="+scheduler,
		"--authorization-kubeconfig="+scheduler, "--secure-port=0", "--v=2")
	return errors.Join(err, err2)
}
