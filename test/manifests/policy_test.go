package manifests_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditing "k8s.io/apiserver/pkg/audit"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/deploy"
)

func newPolicyEvaluator(t *testing.T) auditing.PolicyRuleEvaluator {
	t.Helper()
	p, err := auditpolicy.LoadPolicyFromBytes([]byte(renderManifest(t, deploy.AuditPolicy, deploy.DefaultOptions())))
	require.NoError(t, err)
	return auditpolicy.NewPolicyRuleEvaluator(p)
}

// evaluatePolicy asks the policy about a request as the API server's filters see it: verb, resource and subresource are what it
// makes of method and path.
func evaluatePolicy(t *testing.T, p auditing.PolicyRuleEvaluator, who user.Info, method, uri string) auditing.RequestAuditConfig {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, uri, http.NoBody)
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(r)
	require.NoError(t, err)
	attributes, err := filters.GetAuthorizerAttributes(request.WithUser(request.WithRequestInfo(r.Context(), info), who))
	require.NoError(t, err)
	return p.EvaluatePolicyRule(attributes)
}

var (
	alice   = &user.DefaultInfo{Name: "alice", Groups: []string{"vm-admins", "system:authenticated"}}
	kubelet = &user.DefaultInfo{Name: "system:node:worker-1", Groups: []string{"system:nodes", "system:authenticated"}}
)

// newServiceAccount is a service account.
func newServiceAccount(namespace, name string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

func TestAuditPolicy(t *testing.T) {
	t.Parallel()
	p := newPolicyEvaluator(t)
	tests := []struct {
		name  string
		who   user.Info
		does  string // method and path
		level audit.Level
	}{
		{"an eviction", alice, "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/eviction", audit.LevelRequest},
		{"an eviction by the descheduler", newServiceAccount("openshift-kube-descheduler-operator", "openshift-descheduler-operand"), "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/eviction", audit.LevelRequest},
		{"an eviction as a dry run", alice, "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/eviction?dryRun=All", audit.LevelRequest},
		{"an eviction by a kubelet", kubelet, "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/eviction", audit.LevelRequest},
		{"a pod that is made", alice, "POST /api/v1/namespaces/shop/pods", audit.LevelNone},
		{"a pod that is deleted", alice, "DELETE /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p", audit.LevelNone},
		{"a pod that is bound", alice, "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/binding", audit.LevelNone},
		{"a shell in a pod", alice, "POST /api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/exec?command=sh", audit.LevelNone},
		{"a Secret that is made", alice, "POST /api/v1/namespaces/shop/secrets", audit.LevelNone},
		{"a Secret that is changed", alice, "PATCH /api/v1/namespaces/shop/secrets/db", audit.LevelNone},
		{"a token that is made", alice, "POST /api/v1/namespaces/shop/serviceaccounts/default/token", audit.LevelNone},

		{"a migration that is made", alice, "POST /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstancemigrations", audit.LevelMetadata},
		{"a migration that is deleted", alice, "DELETE /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstancemigrations/db-1-m", audit.LevelMetadata},
		{"a migration's status", newServiceAccount("kubevirt", "kubevirt-controller"), "PUT /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstancemigrations/db-1-m/status", audit.LevelNone},
		{"a migration's finalizer", newServiceAccount("kubevirt", "kubevirt-controller"), "PATCH /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstancemigrations/db-1-m", audit.LevelNone},
		{"migrations that are watched", newServiceAccount("kubevirt", "kubevirt-controller"), "GET /apis/kubevirt.io/v1/virtualmachineinstancemigrations?watch=true", audit.LevelNone},
		{"a VMI that is patched", newServiceAccount("kubevirt", "kubevirt-controller"), "PATCH /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/db-1", audit.LevelNone},
		{"a VM that is made", alice, "POST /apis/kubevirt.io/v1/namespaces/shop/virtualmachines", audit.LevelNone},

		{"virtctl migrate", alice, "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db-1/migrate", audit.LevelMetadata},
		{"a VMI that is migrated", alice, "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/db-1/migrate", audit.LevelMetadata},
		{"an evacuation that is cancelled", alice, "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/db-1/evacuate/cancel", audit.LevelMetadata},
		{"an evacuation that is cancelled by the VM's name", alice, "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db-1/evacuate/cancel", audit.LevelMetadata},
		{"a VM that is restarted", alice, "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db-1/restart", audit.LevelNone},
		{"a VM's console", alice, "GET /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/db-1/console", audit.LevelNone},

		{"kubectl cordon", alice, "PATCH /api/v1/nodes/worker-1", audit.LevelMetadata},
		{"a node that is replaced", newServiceAccount("openshift-machine-config-operator", "machine-config-controller"), "PUT /api/v1/nodes/worker-1", audit.LevelMetadata},
		{"a node changed by its kubelet", kubelet, "PATCH /api/v1/nodes/worker-1", audit.LevelNone},
		{"a node's status by its kubelet", kubelet, "PATCH /api/v1/nodes/worker-1/status", audit.LevelNone},
		{"a node's status by somebody", alice, "PATCH /api/v1/nodes/worker-1/status", audit.LevelNone},
		{"a node tainted as lost", newServiceAccount("kube-system", "node-controller"), "PATCH /api/v1/nodes/worker-1", audit.LevelNone},
		{"a node changed by the controller manager", &user.DefaultInfo{Name: "system:kube-controller-manager"}, "PUT /api/v1/nodes/worker-1", audit.LevelNone},
		{"the heartbeat of virt-handler", newServiceAccount("kubevirt", "kubevirt-handler"), "PATCH /api/v1/nodes/worker-1", audit.LevelNone},
		{"a node changed by a drain controller in kube-system", newServiceAccount("kube-system", "kured"), "PATCH /api/v1/nodes/worker-1", audit.LevelMetadata},
		{"a node that is read", alice, "GET /api/v1/nodes/worker-1", audit.LevelNone},
		{"a node that is deleted", alice, "DELETE /api/v1/nodes/worker-1", audit.LevelNone},

		{"discovery", alice, "GET /apis", audit.LevelNone},
		{"a probe", &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, "GET /livez", audit.LevelNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			method, uri, _ := strings.Cut(tt.does, " ")
			got := evaluatePolicy(t, p, tt.who, method, uri)
			require.Equal(t, tt.level, got.Level)
			require.Contains(t, got.OmitStages, audit.StageRequestReceived, "one event for each request")
			require.NotContains(t, got.OmitStages, audit.StageResponseComplete)
		})
	}
}

// TestPolicyAndReaderAgree takes the audit logs of the built-in recordings, which come of a wider policy: what evictrail
// reads is written down by its policy, evictions with their bodies.
func TestPolicyAndReaderAgree(t *testing.T) {
	t.Parallel()
	p := newPolicyEvaluator(t)
	logs, err := fs.Glob(evictrail.Recordings(), "*/audit.jsonl.gz")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	read := map[audit.Level]int{}
	for _, name := range logs {
		file, err := evictrail.Recordings().Open(name)
		require.NoError(t, err)
		plain, err := gzip.NewReader(file)
		require.NoError(t, err)
		lines := bufio.NewScanner(plain)
		lines.Buffer(nil, collector.MaxAudit)
		for lines.Scan() {
			var e auditv1.Event
			require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
			level := evaluatePolicy(t, p, &user.DefaultInfo{Name: e.User.Username, Groups: e.User.Groups}, methodOf(t, e.Verb), e.RequestURI).Level
			if isEventRead(t, lines.Bytes()) {
				read[level]++
				require.NotEqual(t, audit.LevelNone, level, "evictrail reads this, the policy leaves it out:\n%s", lines.Text())
				require.Equal(t, e.ObjectRef.Subresource == "eviction", level == audit.LevelRequest, lines.Text())
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, file.Close())
	}
	require.Positive(t, read[audit.LevelRequest])
	require.Positive(t, read[audit.LevelMetadata])
}

// methodOf returns the HTTP method of a verb that a recording has.
func methodOf(t *testing.T, verb string) string {
	t.Helper()
	methods := map[string]string{"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete}
	require.Contains(t, methods, verb)
	return methods[verb]
}

// isEventRead reports whether evictrail has a use for an audit event.
func isEventRead(t *testing.T, line []byte) bool {
	t.Helper()
	later := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) // than any recording
	report, err := collector.AuditReader{Now: later, Take: func(collector.Request) error { return nil }}.Read(bytes.NewReader(line))
	require.NoError(t, err)
	require.Zero(t, report.Refused, report.First)
	return report.Taken == 1
}
