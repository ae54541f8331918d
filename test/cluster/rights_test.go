package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// ownCalls has the API server log every call of evictrail.
const ownCalls = `
- level: Metadata
  users: ["system:serviceaccount:evictrail:evictrail"]
`

// right is one verb on one resource, or on one object of it.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.namespace + "/" + r.name
	}
	return text
}

// allowsCall reports whether the right allows a call.
func (r right) allowsCall(call right) bool {
	return r.verb == call.verb && r.group == call.group && r.resource == call.resource &&
		(r.namespace == "" || r.namespace == call.namespace) && (r.name == "" || r.name == call.name)
}

// parseRights returns the rights of a manifest one by one.
func parseRights(t *testing.T, manifest string) []right {
	t.Helper()
	objects, err := kubetest.Objects(manifest)
	require.NoError(t, err)
	var out []right
	for _, o := range objects {
		if isRole(o) {
			out = append(out, rightsOf(t, o)...)
		}
	}
	return out
}

func isRole(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ClusterRole" || o.GetKind() == "Role"
}

func rightsOf(t *testing.T, o *unstructured.Unstructured) []right {
	t.Helper()
	var role rbacv1.ClusterRole // the rules of a Role are alike
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
	var out []right
	for _, r := range role.Rules {
		require.Empty(t, r.NonResourceURLs)
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, name := range names {
						out = append(out, right{verb, group, resource, o.GetNamespace(), name})
					}
				}
			}
		}
	}
	return out
}

// removeRight returns the manifest without one right: its rule is split where it grants others as well.
func removeRight(t *testing.T, manifest string, gone right) string {
	t.Helper()
	objects, err := kubetest.Objects(manifest)
	require.NoError(t, err)
	var out strings.Builder
	for _, o := range objects {
		if isRole(o) {
			var split []any
			for _, r := range rightsOf(t, o) {
				if r == gone {
					continue
				}
				rule := map[string]any{"verbs": []any{r.verb}, "apiGroups": []any{r.group}, "resources": []any{r.resource}}
				if r.name != "" {
					rule["resourceNames"] = []any{r.name}
				}
				split = append(split, rule)
			}
			require.NoError(t, unstructured.SetNestedSlice(o.Object, split, "rules"))
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		_, _ = fmt.Fprintf(&out, "---\n%s\n", text)
	}
	return out.String()
}

// countCalls are those that evictrail made, by what was answered.
func (s *site) countCalls() map[right]int {
	s.t.Helper()
	out := map[right]int{}
	for line := range bytes.Lines(s.AuditLog()) {
		var e struct {
			Verb string
			User struct{ Username string }
			Ref  struct{ APIGroup, Resource, Subresource, Namespace, Name string } `json:"objectRef"`
			Code struct{ Code int }                                                `json:"responseStatus"`
		}
		if json.Unmarshal(line, &e) != nil || e.User.Username != "system:serviceaccount:"+namespace+":"+account || e.Ref.Resource == "" {
			continue
		}
		resource := e.Ref.Resource
		if e.Ref.Subresource != "" {
			resource += "/" + e.Ref.Subresource
		}
		out[right{e.Verb, e.Ref.APIGroup, resource, e.Ref.Namespace, e.Ref.Name}] = e.Code.Code
	}
	return out
}

// everything are the flags with which evictrail makes every call that it can make.
var everything = []string{"--descheduler-configmap", policyNamespace + "/" + policyName, "--leader-elect", "--leader-lease", leaseName, "--auth", "kubernetes"}

// renewal is the call that a leader makes again and again.
var renewal = right{"update", "coordination.k8s.io", "leases", namespace, "evictrail"}

// isReview reports whether a right is for asking who somebody is and what that one may do.
func isReview(r right) bool { return strings.HasSuffix(r.resource, "reviews") }

const readers = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [kubevirt.io], resources: [virtualmachineinstances], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: reader}]
`

// getEvacuations asks evictrail's API with a token of the cluster, and returns the answer.
func (s *site) getEvacuations(token string) (status int, text string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "https://"+s.address+"/api/v1/evacuations", http.NoBody)
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, string(raw)
}

// forgetLease has the next evictrail make the lease again.
func (s *site) forgetLease() {
	s.t.Helper()
	err := s.Client().CoordinationV1().Leases(namespace).Delete(s.t.Context(), "evictrail", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(s.t, err)
	}
}

// TestRights has evictrail run with the rights that it ships with: it is ready, each call is covered by a right, and each right
// is used. Without any single one of them it is not ready, or says what is refused. The API server is one that cannot send a list
// as part of a watch, as those before Kubernetes v1.34 can't: both ways of listing must be allowed.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{rules: ownCalls, flags: []string{
		"--feature-gates=WatchList=false,EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true",
	}})
	s.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + policyName + ", namespace: " + policyNamespace + "}, data: {policy.yaml: \"{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy}\"}}")
	url := storetest.NewURL(t)
	s.Apply(readers)
	token := s.Token("kube-system", "reader", "evictrail")
	p := s.startEvictrail(url, everything...)
	s.awaitReady()
	status, text := s.getEvacuations(token)
	require.Equal(t, http.StatusOK, status, text)
	require.Eventually(t, func() bool { return s.countCalls()[renewal] != 0 }, 3*time.Minute, 500*time.Millisecond, "the lease is renewed")
	require.NoError(t, p.Stop())

	all := parseRights(t, renderShippedRights(t))
	calls := s.countCalls()
	for call, code := range calls {
		require.NotEqual(t, http.StatusForbidden, code, "%s", call)
		require.True(t, slices.ContainsFunc(all, func(r right) bool { return r.allowsCall(call) }), "no right covers %s", call)
	}
	for _, r := range all {
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(calls)), r.allowsCall), "nothing needs the right %s", r)
	}
	t.Logf("%d rights, each used", len(all))

	for _, r := range all {
		s.Apply(removeRight(t, renderShippedRights(t), r))
		s.forgetLease()
		p := s.startEvictrail(url, everything...)
		var problem string
		require.Eventually(t, func() bool {
			status, text := s.getEvacuations(token)
			require.True(t, !isReview(r) || status != http.StatusOK, "without the right to %s who reads is let in", r)
			problem = strings.ReplaceAll(s.unreadyReason(t.Context())+p.Output()+text, `\"`, `"`)
			return strings.Contains(problem, "forbidden") && strings.Contains(problem, `"`+r.resource+`"`)
		}, time.Minute, 200*time.Millisecond, "without the right to %s nothing is said", r)
		if r.resource != renewal.resource && !isReview(r) { // without the lease it records, and does not derive
			require.NotEmpty(t, s.unreadyReason(t.Context()), "without the right to %s it is ready", r)
		}
		p.Kill()
	}
}
