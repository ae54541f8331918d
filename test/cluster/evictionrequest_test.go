package cluster_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/lifecycle/v1alpha1"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// servesEvictionRequests has the API server serve lifecycle.k8s.io/v1alpha1, which it does not by default, and store
// objects in a form that a test can change.
var servesEvictionRequests = []string{
	"--feature-gates=EvictionRequestAPI=true",
	"--runtime-config=lifecycle.k8s.io/v1alpha1=true",
	"--storage-media-type=application/json",
}

// evictorAccount is the ServiceAccount of the imperative evictor, a controller of kube-controller-manager, which
// Kubernetes 1.37 does not have yet.
const evictorAccount = "imperative-eviction-responder-controller"

const evictorRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: ` + evictorAccount + `, namespace: kube-system}
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
subjects: [{kind: ServiceAccount, namespace: kube-system, name: ` + evictorAccount + `}]
`

// flusher is a responder that the owner of the storage runs.
const flusher = "storage.example.com/flush"

// evictionSite is a site whose test plays the controllers of EvictionRequests, which Kubernetes 1.37 does not have:
// the API server checks what they write.
type evictionSite struct {
	*site
	typed.LifecycleV1alpha1Interface
}

// request has a requester want a pod to be evicted.
func (s evictionSite) request(name, requester, pod string, uid types.UID) {
	s.t.Helper()
	_, err := s.EvictionRequests(shop).Create(s.t.Context(), &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target: lifecyclev1alpha1.EvictionRequestTarget{
				Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod, UID: uid},
			},
			Requester: requester,
			Intent:    lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// updateStatus changes the status of the Eviction as its controller or a responder does.
func (s evictionSite) updateStatus(name string, change func(*lifecyclev1alpha1.EvictionStatus)) {
	s.t.Helper()
	e, err := s.Evictions(shop).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	change(&e.Status)
	_, err = s.Evictions(shop).UpdateStatus(s.t.Context(), e, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

// makeEviction makes the Eviction of a pod, with two responders of which the first is active.
func (s evictionSite) makeEviction(name, pod string, uid types.UID, requesters ...string) {
	s.t.Helper()
	_, err := s.Evictions(shop).Create(s.t.Context(), &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: lifecyclev1alpha1.EvictionSpec{
			Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod, UID: uid}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.updateStatus(name, func(e *lifecyclev1alpha1.EvictionStatus) {
		e.ObservedGeneration = new(int64(1))
		for _, r := range requesters {
			e.Requesters = append(
				e.Requesters,
				lifecyclev1alpha1.Requester{Name: r, Intent: lifecyclev1alpha1.RequesterIntentEviction},
			)
		}
		e.TargetResponders = []lifecyclev1alpha1.TargetResponder{
			{Name: flusher, Priority: new(int32(10_000)), State: lifecyclev1alpha1.ResponderStateActive},
			{
				Name:     lifecyclev1alpha1.EvictionResponderImperativeEviction,
				Priority: new(int32(100)),
				State:    lifecyclev1alpha1.ResponderStateInactive,
			},
		}
		e.Responders = []lifecyclev1alpha1.ResponderStatus{
			{
				Name:      flusher,
				StartTime: new(metav1.Now()),
			},
			{Name: lifecyclev1alpha1.EvictionResponderImperativeEviction},
		}
	})
}

const evictionFactsQuery = `
SELECT kind, reason, what, value
FROM evictrail_v1.facts
WHERE object_kind IN ('EvictionRequest', 'Eviction')`

// evictionFact is what is compared of a fact about an eviction.
type evictionFact struct{ Kind, Reason, What, Value string }

// TestEvictionRequests has two requesters want the pod of a VM evicted. One withdraws, a responder sends no more
// heartbeats, and the evictor of Kubernetes has its turn, which calls pods/eviction: that the VM is moved is what the
// other requester wanted.
func TestEvictionRequests(t *testing.T) {
	t.Parallel()
	plain := newSite(t, siteOptions{flags: servesEvictionRequests})
	s := evictionSite{plain, kubetest.ClientOf(t, plain.Admin()).LifecycleV1alpha1()}
	s.Namespace(shop, nil)
	s.makeNodes("worker-1")
	s.makeVM("db-1", "LiveMigrate", "worker-1")
	s.Apply(evictorRights)
	url := storetest.NewURL(t)
	s.startEvictrail(url, "--cluster", "prod")
	s.awaitReady()

	const eviction, evictor = "pod-1-db-1", lifecyclev1alpha1.EvictionResponderImperativeEviction
	pod := launcherPodName("db-1")
	object, err := s.Client().CoreV1().Pods(shop).Get(t.Context(), pod, metav1.GetOptions{})
	require.NoError(t, err)
	s.request("upgrade", "acme.io/upgrade", pod, object.UID)
	s.request("balance", "acme.io/balance", pod, object.UID)
	s.request("other", "acme.io/upgrade", "web-0", "3d7fdff1-3fe5-48b9-b106-1ee24b0277f6")
	s.makeEviction(eviction, pod, object.UID, "acme.io/upgrade", "acme.io/balance")
	for range 3 { // heartbeats, of which the first has a message
		s.updateStatus(eviction, func(e *lifecyclev1alpha1.EvictionStatus) {
			e.Responders[0].HeartbeatTime, e.Responders[0].Message = new(metav1.Now()), new("flushing 3 disks")
		})
		time.Sleep(1100 * time.Millisecond) // their times have a resolution of 1 s
	}
	withdrawn := []byte(`{"spec":{"intent":"Withdrawn"}}`)
	_, err = s.EvictionRequests(shop).Patch(t.Context(), "balance", types.MergePatchType, withdrawn, metav1.PatchOptions{})
	require.NoError(t, err)
	s.updateStatus(eviction, func(e *lifecyclev1alpha1.EvictionStatus) {
		for i := range e.Requesters {
			if e.Requesters[i].Name == "acme.io/balance" {
				e.Requesters[i].Intent = lifecyclev1alpha1.RequesterIntentWithdrawn
			}
		}
	})
	// The API server hands over to the next responder 20 min after the last heartbeat, not before: the responder was
	// started, and last heard of, 21 min ago.
	stale := time.Now().UTC().Add(-21 * time.Minute).Truncate(time.Second)
	s.RewriteStored("/registry/evictions/"+shop+"/"+eviction, func(stored map[string]any) {
		responder := stored["status"].(map[string]any)["responders"].([]any)[0].(map[string]any)
		responder["startTime"], responder["heartbeatTime"] = stale.Format(time.RFC3339), stale.Format(time.RFC3339)
	})
	s.updateStatus(eviction, func(e *lifecyclev1alpha1.EvictionStatus) {
		e.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateInterrupted
		e.TargetResponders[1].State = lifecyclev1alpha1.ResponderStateActive
		e.Responders[1].StartTime = new(metav1.Now())
	})

	as := s.ServiceAccount("kube-system", evictorAccount)
	as.UserAgent = "kube-controller-manager/v1.38.0"
	refused := s.evictVM(as, "db-1", nil)
	requireRefused(t, refused, `Eviction triggered evacuation of VMI "shop/db-1"`)
	for attempt := range 25 { // the evictor counts its attempts in its message
		s.updateStatus(eviction, func(e *lifecyclev1alpha1.EvictionStatus) {
			e.Responders[1].HeartbeatTime = new(metav1.Now())
			e.Responders[1].Message = new(
				fmt.Sprintf(
					"%q pod deletion via the /eviction subresource failed (attempts=%d): %v",
					pod,
					attempt+1,
					refused,
				),
			)
		})
	}
	s.updateStatus(
		eviction,
		func(e *lifecyclev1alpha1.EvictionStatus) { e.Responders[1].CompletionTime = new(metav1.Now()) },
	)
	s.updateStatus(eviction, func(e *lifecyclev1alpha1.EvictionStatus) {
		e.TargetResponders[1].State = lifecyclev1alpha1.ResponderStateCompleted
		e.Conditions = []metav1.Condition{
			{
				Type:               string(lifecyclev1alpha1.EvictionConditionTargetEvicted),
				Status:             metav1.ConditionTrue,
				Reason:             string(lifecyclev1alpha1.EvictionConditionReasonPodTerminal),
				LastTransitionTime: metav1.Now(),
			},
		}
	})
	require.NoError(t, s.EvictionRequests(shop).Delete(t.Context(), "upgrade", metav1.DeleteOptions{}))
	awaitNoNewEvents(t, url)

	var facts []evictionFact
	messages := map[string]int{}
	for _, f := range loadRows[evictionFact](t, url, evictionFactsQuery) {
		if responder, is := strings.CutPrefix(f.What, "message/"); is {
			messages[responder[:strings.LastIndex(responder, "/")]]++
			continue
		}
		facts = append(facts, f)
	}
	require.Equal(t, map[string]int{flusher: 1, evictor: 20}, messages)
	require.ElementsMatch(t, []evictionFact{
		{"eviction_intent", "eviction_wanted", "intent/acme.io/upgrade", "Eviction"},
		{"eviction_intent", "eviction_wanted", "intent/acme.io/balance", "Eviction"},
		{"eviction_intent", "eviction_wanted", "intent/acme.io/upgrade", "Eviction"}, // as the Eviction has it
		{"eviction_intent", "eviction_wanted", "intent/acme.io/balance", "Eviction"},
		{"eviction_progress", "responder_active", "state/" + flusher, "Active"},
		{"eviction_progress", "responder_inactive", "state/" + evictor, "Inactive"},
		{"eviction_intent", "withdrawn", "intent/acme.io/balance", "Withdrawn"},
		{"eviction_intent", "withdrawn", "intent/acme.io/balance", "Withdrawn"},
		{"eviction_progress", "responder_interrupted", "state/" + flusher, "Interrupted"},
		{"eviction_progress", "responder_active", "state/" + evictor, "Active"},
		{"eviction_progress", "responder_completed", "state/" + evictor, "Completed"},
		{"eviction_condition", "condition_set", "condition/TargetEvicted", "True:PodTerminal"},
		{"eviction_intent", "deleted", "gone", "true"},
	}, facts)
	require.Equal(t, []requestRow{
		{
			"db-1",
			"worker-1",
			"acme.io/upgrade",
			"eviction_request",
			new("kube-controller-manager/v1.38.0"),
			nil,
			"marked",
			new(429),
			"audit",
			"observed",
		},
	}, loadRows[requestRow](t, url, requestsQuery))
	require.Equal(
		t,
		[]requestRow{
			{
				VMI:        "db-1",
				Node:       "worker-1",
				Requester:  "acme.io/upgrade",
				Class:      "eviction_request",
				Confidence: "observed",
			},
		},
		loadRows[requestRow](
			t,
			url,
			"SELECT vmi, node, requester, requester_class, confidence FROM evictrail_v1.evacuations",
		),
	)
	require.Contains(
		t,
		s.fetchMetrics(),
		`evictrail_facts_total{kind="EvictionRequest",stage="skipped"} 1`,
		"web-0 is the pod of no VM",
	)

	program, err := build.Evictrail()
	require.NoError(t, err)
	why := exec.CommandContext(t.Context(), program, "why", "shop/db-1", "--verbose", "--cluster", "prod", "--database-url", url)
	text, err := why.CombinedOutput()
	require.NoError(t, err, "%s", text)
	t.Logf("%s", text)
	said := strings.Join(strings.Fields(string(text)), " ") // lines are wrapped
	for _, want := range []string{
		"acme.io/upgrade (EvictionRequest) asked to evict it from worker-1; KubeVirt accepted at ",
		"system:serviceaccount:kube-system:" + evictorAccount + " called for EvictionRequests",
		"acme.io/upgrade asked to evict pod " + pod + " (EvictionRequest upgrade).",
		"acme.io/balance asked to evict pod " + pod + " (EvictionRequest balance).",
		"acme.io/balance withdrew its request to evict pod " + pod + " (EvictionRequest balance).",
		"Responder " + flusher + " was interrupted: its last heartbeat was at " + stale.Format("2006-01-02 15:04:05Z"),
		"The evictor of Kubernetes (" + evictor + ") has its turn",
		"Responder " + flusher + " reports: flushing 3 disks",
		"Its later messages are not recorded.",
		"The eviction of pod " + pod + " by EvictionRequests is done (PodTerminal).",
		"acme.io/upgrade no longer asks to evict pod " + pod + ": its EvictionRequest was deleted",
	} {
		require.Contains(t, said, want)
	}
}
