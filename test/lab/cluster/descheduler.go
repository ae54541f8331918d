package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/lab/nodesim"
)

// Descheduler says how the descheduler runs.
type Descheduler struct {
	Every      time.Duration // between two cycles
	PerNode    int           // most evictions of a node under way; zero: no limit
	Total      int           // most evictions under way; zero: no limit
	Prometheus string        // URL; empty: the load of the simulated nodes, Cluster.LoadURL
	Query      string        // empty: nodesim.MetricNodeLoad
	Low, High  int           // percent around the mean load: below Low a node takes VMs, above High it loses them; both zero: 10 and 10
	Foreground bool          // without the gate EvictionsInBackground
}

// deschedulerRights are those of the descheduler's own manifests, and its account.
const deschedulerRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: kube-system, name: descheduler-sa}
---
apiVersion: v1
kind: Secret
metadata: {namespace: kube-system, name: descheduler-prometheus}
stringData: {prometheusAuthToken: of-the-lab}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: descheduler-cluster-role}
rules:
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, update]}
- {apiGroups: [""], resources: [nodes, namespaces, persistentvolumeclaims], verbs: [get, watch, list]}
- {apiGroups: [""], resources: [pods], verbs: [get, watch, list, delete]}
- {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [get, watch, list]}
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get, watch, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: descheduler-cluster-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: descheduler-cluster-role}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: descheduler-sa}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: kube-system, name: descheduler-role}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: kube-system, name: descheduler-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: descheduler-role}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: descheduler-sa}]
`

// StartDescheduler starts the descheduler. It evicts in its first cycle already, as far as nodes are uneven by then. The URL of its
// metrics, whose certificate it signs itself, comes back.
func (c *Cluster) StartDescheduler(ctx context.Context, d Descheduler) (metrics string, err error) {
	metrics, err = c.AddDescheduler(ctx, d)
	if err != nil {
		return "", err
	}
	p, err := c.Component("descheduler")
	if err != nil {
		return "", err
	}
	return metrics, p.Start()
}

// policyFile is the name of the file with the descheduler's policy.
const policyFile = "descheduler-policy.yaml"

// PolicyFile is the path of the policy of the descheduler that AddDescheduler wrote.
func (c *Cluster) PolicyFile() string { return filepath.Join(c.host.Dir, policyFile) }

// AddDescheduler prepares the descheduler, as StartDescheduler does, for somebody who has to know where its metrics will be before Component("descheduler")
// is started.
func (c *Cluster) AddDescheduler(ctx context.Context, d Descheduler) (metrics string, err error) {
	if _, err := c.Build(ctx, build.Descheduler()); err != nil {
		return "", err
	}
	objects, err := kubetest.Objects(deschedulerRights)
	if err != nil {
		return "", err
	}
	if err := c.createObjects(ctx, objects...); err != nil {
		return "", err
	}
	kubeconfig, err := c.Kubeconfig(c.serviceAccount("kube-system", "descheduler-sa"), "kube-system")
	if err != nil {
		return "", err
	}
	policy, err := c.writeFile(policyFile, []byte(d.renderPolicy(c.LoadURL)))
	if err != nil {
		return "", err
	}
	// It looks for the authority of Prometheus in its working folder: build.Descheduler.
	dir := filepath.Join(c.host.Dir, "descheduler")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), c.API.CA.PEM, 0o600); err != nil {
		return "", err
	}
	port, err := c.freePort()
	if err != nil {
		return "", err
	}
	_, err = c.addComponent("descheduler", "--kubeconfig="+kubeconfig, "--policy-config-file="+policy, "--descheduling-interval="+d.Every.String(),
		"--feature-gates=EvictionsInBackground="+strconv.FormatBool(!d.Foreground), "--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port), "--cert-dir="+dir, "--v=3")
	return fmt.Sprintf("https://127.0.0.1:%d/metrics", port), err
}

// renderPolicy is the profile of KubeVirt's users: LowNodeUtilization by deviation from the mean, virtual machines included.
func (d Descheduler) renderPolicy(loadURL string) string {
	url, query, low, high := cmp.Or(d.Prometheus, loadURL), cmp.Or(d.Query, nodesim.MetricNodeLoad), d.Low, d.High
	if low == 0 && high == 0 {
		low, high = 10, 10
	}
	limits := ""
	if d.PerNode > 0 {
		limits += fmt.Sprintf("maxNoOfPodsToEvictPerNode: %d\n", d.PerNode)
	}
	if d.Total > 0 {
		limits += fmt.Sprintf("maxNoOfPodsToEvictTotal: %d\n", d.Total)
	}
	return fmt.Sprintf(`apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: kubevirt.io/schedulable=true
%smetricsProviders:
- source: Prometheus
  prometheus:
    url: %q
    authToken: {secretReference: {namespace: %s, name: descheduler-prometheus}}
profiles:
- name: KubeVirtRelieveAndMigrate
  pluginConfig:
  - name: LowNodeUtilization
    args:
      useDeviationThresholds: true
      thresholds: {MetricResource: %d}
      targetThresholds: {MetricResource: %d}
      metricsUtilization: {source: Prometheus, prometheus: {query: %q}}
      evictableNamespaces: {exclude: [kube-system, kubevirt]}
  - name: DefaultEvictor
    args: {evictLocalStoragePods: true}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
    filter: {enabled: [DefaultEvictor]}
`, limits, url, metav1.NamespaceSystem, low, high, query)
}
