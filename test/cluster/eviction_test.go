package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/deploy"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// evictors may evict, each in its own way of asking: two ServiceAccounts with tokens, and a user with a certificate.
const evictors = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: descheduler, namespace: kube-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: cluster-autoscaler, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: evictor}
rules:
- {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: evictors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: evictor}
subjects:
- {kind: ServiceAccount, namespace: kube-system, name: descheduler}
- {kind: ServiceAccount, namespace: kube-system, name: cluster-autoscaler}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: vm-admins}
`

// evictVM evicts the pod of a VM, and returns the answer: nil where the pod was deleted.
func (s *site) evictVM(as *rest.Config, vm string, words map[string]string, dryRun ...string) error {
	s.t.Helper()
	return kubetest.ClientOf(s.t, as).PolicyV1().Evictions(shop).Evict(s.t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: launcherPodName(vm), Namespace: shop, Annotations: words}, DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
	})
}

// requestRow is what is compared of an eviction request.
type requestRow struct {
	VMI        string  `json:"vmi"`
	Node       string  `json:"node"`
	Requester  string  `json:"requester"`
	Class      string  `json:"requester_class"`
	Agent      *string `json:"user_agent"`
	Reason     *string `json:"stated_reason"`
	Answer     string  `json:"answer"`
	Code       *int    `json:"answer_code"`
	Source     string  `json:"source"`
	Confidence string  `json:"confidence"`
}

const requestsQuery = "SELECT * FROM evictrail_v1.eviction_requests WHERE vmi <> 'probe' ORDER BY requested_at"

// awaitObserver waits until the API server has taken over the observer's configuration: it asks for evictions that are not meant.
func (s *site) awaitObserver(url string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_ = s.evictVM(s.Admin(), "probe", nil, metav1.DryRunAll)
		return len(loadRows[requestRow](s.t, url, "SELECT * FROM evictrail_v1.eviction_requests WHERE vmi = 'probe' AND source LIKE '%admission%'")) > 0
	}, time.Minute, 500*time.Millisecond, "the observer is asked")
}

// TestEvictionsByThreeUsers evicts VMs, for which a real API server asks virt-api and the observer, and which it reports to
// evictrail's audit webhook; once with both, once with the observer alone.
func TestEvictionsByThreeUsers(t *testing.T) {
	t.Parallel()
	const reason = "triggered by KubeVirtRelieveAndMigrate/LowNodeUtilization: node over its threshold"
	words := map[string]string{"requested-by": "sigs.k8s.io/descheduler", "reason": reason}
	const kubectl, autoscaler = "kubectl/v1.37.0 (linux/amd64) kubernetes/abcdef", "cluster-autoscaler/v1.35.0"
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		deaf bool
		want []requestRow
	}{
		"audit and observer": {want: []requestRow{
			{"db-1", "worker-1", "system:serviceaccount:kube-system:descheduler", "descheduler", text("descheduler/v0.36.0"), text(reason), "marked", new(429), "admission+audit", "observed"},
			{"db-2", "worker-1", "alice", "kubectl", text(kubectl), nil, "marked", new(429), "admission+audit", "observed"},
			{"db-1", "worker-1", "alice", "kubectl", text(kubectl), nil, "already_marked", new(429), "admission+audit", "observed"},
			{"db-3", "worker-2", "system:serviceaccount:kube-system:cluster-autoscaler", "cluster_autoscaler", text(autoscaler), nil, "allowed", new(201), "admission+audit", "observed"},
		}},
		"observer alone": {deaf: true, want: []requestRow{
			{"db-1", "worker-1", "system:serviceaccount:kube-system:descheduler", "descheduler", nil, text(reason), "marked", nil, "admission", "asserted"},
			{"db-2", "worker-1", "alice", "other", nil, nil, "marked", nil, "admission", "asserted"},
			{"db-1", "worker-1", "alice", "other", nil, nil, "unknown", nil, "admission", "asserted"},
			{"db-3", "worker-2", "system:serviceaccount:kube-system:cluster-autoscaler", "cluster_autoscaler", nil, nil, "unknown", nil, "admission", "asserted"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteOptions{deaf: c.deaf})
			s.Namespace(shop, nil)
			s.makeNodes("worker-1", "worker-2")
			for _, vm := range []string{"db-1", "db-2", "probe"} {
				s.makeVM(vm, "LiveMigrate", "worker-1")
			}
			s.makeVM("db-3", "None", "worker-2")
			s.Apply(evictors)
			s.Apply(s.renderManifest(deploy.Observer))
			url := storetest.NewURL(t)
			s.startEvictrail(url)
			s.awaitReady()
			s.awaitObserver(url)

			descheduler, scaler, alice := s.ServiceAccount("kube-system", "descheduler"), s.ServiceAccount("kube-system", "cluster-autoscaler"), s.User("alice", "vm-admins")
			descheduler.UserAgent, scaler.UserAgent, alice.UserAgent = "descheduler/v0.36.0", autoscaler, kubectl
			requireRefused(t, s.evictVM(descheduler, "db-1", words), `Eviction triggered evacuation of VMI "shop/db-1"`)
			requireRefused(t, s.evictVM(alice, "db-2", nil), `Eviction triggered evacuation of VMI "shop/db-2"`)
			requireRefused(t, s.evictVM(alice, "db-1", nil), `Evacuation in progress: Eviction triggered evacuation of VMI "shop/db-1"`)
			require.NoError(t, s.evictVM(scaler, "db-3", nil))

			awaitNoNewEvents(t, url)
			got := loadRows[requestRow](t, url, requestsQuery)
			require.Equal(t, c.want, got)
			var evacuations []requestRow
			for _, e := range loadRows[requestRow](t, url, "SELECT vmi, node, requester_class, confidence FROM evictrail_v1.evacuations ORDER BY marked_at") {
				evacuations = append(evacuations, requestRow{VMI: e.VMI, Node: e.Node, Class: e.Class})
			}
			require.Equal(t, []requestRow{{VMI: "db-1", Node: "worker-1", Class: "descheduler"}, {VMI: "db-2", Node: "worker-1", Class: c.want[1].Class}}, evacuations)
		})
	}
}

func requireRefused(t *testing.T, err error, text string) {
	t.Helper()
	require.True(t, apierrors.IsTooManyRequests(err), "got %v", err)
	require.ErrorContains(t, err, `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: `+text)
}

// TestEvictionsWithoutEvictrail has evictions asked for while the observer is away, and while it hangs: they are answered as
// ever, and wait for a second at most.
func TestEvictionsWithoutEvictrail(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	s.Namespace(shop, nil)
	s.makeNodes("worker-1")
	for _, vm := range []string{"probe", "away-1", "hangs-1", "back-1"} {
		s.makeVM(vm, "LiveMigrate", "worker-1")
	}
	for _, vm := range []string{"away-2", "hangs-2", "back-2"} {
		s.makeVM(vm, "None", "worker-1")
	}
	s.Apply(s.renderManifest(deploy.Observer))
	url := storetest.NewURL(t)
	p := s.startEvictrail(url)
	s.awaitReady()
	s.awaitObserver(url)

	// answered evicts a VM that virt-api marks and one that it lets go, and returns which took longest.
	answered := func(when string) time.Duration {
		began := time.Now()
		requireRefused(t, s.evictVM(s.Admin(), when+"-1", nil), "Eviction triggered evacuation")
		marked := time.Since(began)
		began = time.Now()
		require.NoError(t, s.evictVM(s.Admin(), when+"-2", nil))
		return max(marked, time.Since(began))
	}
	for range 3 { // connections are made, and the machine is warm
		_ = s.evictVM(s.Admin(), "probe", nil, metav1.DryRunAll)
	}
	there := answered("back")
	require.NoError(t, p.Pause())
	hangs := answered("hangs")
	require.NoError(t, p.Resume())
	p.Kill()
	away := answered("away")
	t.Logf("evictions took %s at most with evictrail, %s while it hung, %s while it was away", there, hangs, away)
	const slack = 500 * time.Millisecond // of a machine that does other things
	require.Less(t, hangs, there+time.Second+slack)
	require.Less(t, away, there+slack)
	log := string(s.AuditLog())
	require.Contains(t, log, `"failed-open.validating.webhook.admission.k8s.io/round_0_index_`)
	require.Contains(t, log, `"eviction-observer.evictrail.io"`)

	s.startEvictrail(url)
	s.awaitReady()
	awaitNoNewEvents(t, url)
	require.Eventually(t, func() bool {
		all := loadRows[requestRow](t, url, requestsQuery)
		return len(all) == 6 && !slices.ContainsFunc(all, func(r requestRow) bool { return r.Requester == "" || r.Answer == "unknown" }) // a mark shows a request, too, and what the observer saw is in the spool
	}, 2*time.Minute, time.Second, "the API server sends again what evictrail missed")
	for _, r := range loadRows[requestRow](t, url, requestsQuery) {
		require.Equal(t, "kubernetes-admin", r.Requester, r.VMI)
		want := "allowed"
		if strings.HasSuffix(r.VMI, "-1") {
			want = "marked"
		}
		require.Equal(t, want, r.Answer, r.VMI)
	}
}
