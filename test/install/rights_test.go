package install_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evictrail/evictrail/collector"
)

// listRights writes each right of a rendering's roles on a line of its own: where, what, and the verbs.
func listRights(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for _, o := range parseObjects(t, text) {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // rules are the same for both
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
		for _, rule := range role.Rules {
			for _, what := range slices.Concat(rule.Resources, rule.NonResourceURLs) {
				if len(rule.APIGroups) > 0 && rule.APIGroups[0] != "" {
					what += "." + rule.APIGroups[0]
				}
				for _, name := range rule.ResourceNames {
					what += "/" + name
				}
				where := "cluster"
				if o.GetKind() == "Role" {
					where = o.GetNamespace()
				}
				lines = append(lines, fmt.Sprintf("%s: %s: %s", where, what, strings.Join(rule.Verbs, ",")))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// TestRights lists all there are: who adds one adds it here, and to the table of docs/install.md.
func TestRights(t *testing.T) {
	t.Parallel()
	watched := []string{
		"cluster: events: list,watch",
		"cluster: evictionrequests.lifecycle.k8s.io: list,watch",
		"cluster: evictions.lifecycle.k8s.io: list,watch",
		"cluster: kubevirts.kubevirt.io: list,watch",
		"cluster: migrationpolicies.migrations.kubevirt.io: list,watch",
		"cluster: nodes: list,watch",
		"cluster: pods: list,watch",
		"cluster: virtualmachineinstancemigrations.kubevirt.io: list,watch",
		"cluster: virtualmachineinstances.kubevirt.io: list,watch",
		"evictrail: leases.coordination.k8s.io/evictrail: get,update",
		"evictrail: leases.coordination.k8s.io: create",
	}
	reviews := []string{"cluster: subjectaccessreviews.authorization.k8s.io: create", "cluster: tokenreviews.authentication.k8s.io: create"}
	const (
		name        = "cluster: namespaces/kube-system: get"
		descheduler = "openshift-kube-descheduler-operator: configmaps/descheduler: list,watch"
		prometheus  = "cluster: /metrics: get" // of Prometheus, not of evictrail
		events      = "cluster: events: create"
	)
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"by default", []string{"testdata/small.yaml"}, slices.Concat(watched, reviews, []string{name})},
		{"the cluster has a name", []string{"testdata/small.yaml", "--set=cluster=prod"}, slices.Concat(watched, reviews, []string{name})},
		{"nobody is asked who calls", []string{"testdata/small.yaml", "--set=auth=none"}, append(slices.Clone(watched), name)},
		{"everything", []string{"testdata/full.yaml"}, slices.Concat(watched, reviews, []string{name, descheduler, prometheus, events})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := slices.Sorted(slices.Values(tt.want))
			require.Equal(t, want, listRights(t, renderChart(t, chart, tt.args...)))
		})
	}
}

// TestNoRightIsForSomethingElse: all that is read in the whole cluster is watched by the collector, nothing is written, and
// nothing is meant by an asterisk.
func TestNoRightIsForSomethingElse(t *testing.T) {
	t.Parallel()
	for _, right := range listRights(t, renderChart(t, chart, "testdata/full.yaml")) {
		require.NotContains(t, right, "*")
		require.NotContains(t, right, "secrets")
		if what, everywhere := strings.CutPrefix(right, "cluster: "); everywhere && strings.HasSuffix(right, "list,watch") {
			resource, _, _ := strings.Cut(strings.TrimSuffix(what, ": list,watch"), ".")
			require.True(t, collector.Watches(resource), right)
		}
		require.NotRegexp(t, "patch|delete|escalate|impersonate|bind", right)
	}
}

// TestRightsAreThoseOfItsAccount: every role is bound, to the ServiceAccount with which the pods run.
func TestRightsAreThoseOfItsAccount(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/full.yaml", "--set-json=serviceMonitor.readers=[]")
	roles, bound := 0, 0
	for _, o := range parseObjects(t, text) {
		switch o.GetKind() {
		case "ClusterRole", "Role":
			roles++
		case "ClusterRoleBinding", "RoleBinding":
			bound++
			var binding rbacv1.ClusterRoleBinding
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding))
			require.Equal(t, o.GetName(), binding.RoleRef.Name)
			require.Equal(t, strings.TrimSuffix(o.GetKind(), "Binding"), binding.RoleRef.Kind)
			require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "evictrail", Namespace: namespace}}, binding.Subjects)
		}
	}
	require.Equal(t, 3, roles)
	require.Equal(t, roles, bound)
	require.Equal(t, "evictrail", parsePodTemplates(t, text)["StatefulSet"].Spec.ServiceAccountName)
}
