package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/store/storetest"
)

// eventRights are what the chart grants with notify.kubernetesEvents.
const eventRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: evictrail-events}
rules:
- {apiGroups: [""], resources: [events], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: evictrail-events}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: evictrail-events}
subjects: [{kind: ServiceAccount, namespace: ` + namespace + `, name: ` + account + `}]
`

const evacuationManifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: %[1]s
  namespace: shop
  labels: {kubevirt.io/vmi-name: %[2]s}
  annotations: {kubevirt.io/evacuationMigration: %[3]s}
spec: {vmiName: %[2]s}
`

// listOwnEvents returns the Events that evictrail wrote.
func (s *site) listOwnEvents() []corev1.Event {
	s.t.Helper()
	list, err := s.Client().CoreV1().Events(metav1.NamespaceAll).List(s.t.Context(), metav1.ListOptions{FieldSelector: "source=evictrail"})
	require.NoError(s.t, err)
	return list.Items
}

// TestKubernetesEvents writes that a VM is stuck as an Event on its VMI: not without the right, once it is there, and no second time, also where
// evictrail does not know that it did.
func TestKubernetesEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	s.Namespace(shop, nil)
	s.makeNodes("worker-1", "worker-2")
	uid := s.makeVM("db-1", "LiveMigrate", "worker-1")
	url := storetest.NewURL(t)
	s.startEvictrail(url, "--cluster", "prod", "--kubernetes-events")
	s.awaitReady()
	count := func(query string) int {
		return loadRows[struct{ N int }](t, url, "SELECT count(*) AS n FROM "+query)[0].N
	}
	require.Eventually(t, func() bool { return count("evictrail.receivers") == 1 }, time.Minute, 200*time.Millisecond, "what happens from now on is sent")
	time.Sleep(time.Second) // phases bear whole seconds

	s.patchObject(vmis, "db-1", `{"status":{"evacuationNodeName":"worker-1"}}`)
	s.Apply(fmt.Sprintf(evacuationManifest, "evac-1", "db-1", "worker-1"))
	newMover(t, s.controllerConfig(), []string{"db-1"}, 100*time.Millisecond).runMigration(t.Context(), t, "db-1", "evac-1", failed)
	require.Eventually(t, func() bool {
		for line := range strings.Lines(s.fetchMetrics()) {
			if n, is := strings.CutPrefix(line, `evictrail_notices_total{receiver="kubernetes-events",result="failed"} `); is {
				return strings.TrimSpace(n) != "0"
			}
		}
		return false
	}, time.Minute, time.Second, "it has no right yet")
	require.Empty(t, s.listOwnEvents())

	s.Apply(eventRights)
	require.Eventually(t, func() bool { return len(s.listOwnEvents()) == 1 }, time.Minute, 500*time.Millisecond)
	e := s.listOwnEvents()[0]
	require.Equal(t, "EvacuationStuck", e.Reason)
	require.Equal(t, corev1.EventTypeWarning, e.Type)
	require.Equal(t, corev1.ObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: shop, Name: "db-1", UID: uid}, e.InvolvedObject)
	require.Contains(t, e.Message, "shop/db-1 is to leave worker-1, and 1 attempt failed")

	require.Eventually(t, func() bool { return count("evictrail.deliveries") == 1 }, time.Minute, 200*time.Millisecond)
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	_, err = admin.Exec(t.Context(), "DELETE FROM evictrail.deliveries")
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now()")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count("evictrail.deliveries") == 1 }, time.Minute, 200*time.Millisecond, "it is sent again")
	require.Len(t, s.listOwnEvents(), 1, "under the same name")
	require.Zero(t, count("evictrail_v1.facts WHERE kind = 'kubernetes_event' AND detail->>'reason' = 'EvacuationStuck'"), "evictrail does not record what it says itself")
}
