package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/store/storetest"
)

// controllerConfig is KubeVirt's, which a restore or a rebuild of the cluster does not end.
func (s *site) controllerConfig() *rest.Config {
	return s.User("system:serviceaccount:kubevirt:kubevirt-controller", "system:masters")
}

// accountConfig is evictrail's ServiceAccount by a certificate, which a rebuilt cluster knows, too.
func (s *site) accountConfig() *rest.Config {
	return s.User("system:serviceaccount:"+namespace+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// migrateVM has a VM moved by a migration that succeeds.
func (s *site) migrateVM(vm, migration, to string) {
	s.t.Helper()
	newMover(s.t, s.controllerConfig(), []string{vm}, time.Millisecond).runMigration(s.t.Context(), s.t, vm, migration, steps)
	s.patchObject(vmis, vm, fmt.Sprintf(`{"status":{"nodeName":%q,"evacuationNodeName":null}}`, to))
}

// recordedPresent says what is recorded of the present: where each guest is, and what is to be evacuated.
func recordedPresent(t *testing.T, url string) string {
	t.Helper()
	type guest struct{ VMI, UID, Node string }
	var out []string
	for _, g := range loadRows[guest](t, url, `SELECT vmi, vmi_uid AS uid, node FROM evictrail_v1.placements WHERE to_at IS NULL ORDER BY vmi`) {
		out = append(out, fmt.Sprintf("%s/%s on %s", g.VMI, g.UID, g.Node))
	}
	for _, g := range loadRows[guest](t, url, `SELECT vmi, node FROM evictrail_v1.evacuations WHERE ended_at IS NULL ORDER BY vmi`) {
		out = append(out, g.VMI+" is to leave "+g.Node)
	}
	return strings.Join(out, ", ")
}

// describeCluster says the same of the cluster.
func (s *site) describeCluster() string {
	s.t.Helper()
	list, err := s.Dynamic().Resource(vmis).Namespace(shop).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	var guests, marks []string
	for _, o := range list.Items {
		status := o.Object["status"].(map[string]any)
		guests = append(guests, fmt.Sprintf("%s/%s on %s", o.GetName(), o.GetUID(), status["nodeName"]))
		if node, marked := status["evacuationNodeName"].(string); marked && node != "" {
			marks = append(marks, o.GetName()+" is to leave "+node)
		}
	}
	return strings.Join(append(guests, marks...), ", ")
}

// awaitRecorded waits until what is recorded of the present is what the cluster says.
func (s *site) awaitRecorded(url string) {
	s.t.Helper()
	want := s.describeCluster()
	awaitNoProblem(s.t, 100*time.Millisecond, func() string {
		if got := recordedPresent(s.t, url); got != want {
			return "recorded: " + got + "\npresent: " + want
		}
		return ""
	}, "the record is what the cluster says")
}

// awaitBreaks waits until these causes of breaks are recorded, as gaps that are over.
func awaitBreaks(t *testing.T, url string, want ...string) {
	t.Helper()
	const query = `SELECT cause FROM evictrail_v1.gaps WHERE source = 'evictrail' AND cause IN ('cluster_restored', 'cluster_rebuilt', 'database_rewound') AND closed_at IS NOT NULL ORDER BY opened_at`
	awaitNoProblem(t, 100*time.Millisecond, func() string {
		got := []string{}
		for _, g := range loadRows[gapRow](t, url, query) {
			got = append(got, g.Cause)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprint("breaks: ", got)
		}
		return ""
	}, "the break is visible")
}

// loadEpoch returns the number of the epoch in which the cluster is recorded.
func loadEpoch(t *testing.T, url string) int {
	t.Helper()
	return loadRows[struct{ Epoch int }](t, url, "SELECT epoch FROM evictrail.clusters")[0].Epoch
}

// fetchMetrics returns what evictrail shows Prometheus.
func (s *site) fetchMetrics() string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "https://"+s.address+"/metrics", http.NoBody)
	require.NoError(s.t, err)
	answer, err := s.client.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return string(text)
}

// TestEtcdRestored records, puts etcd back to a backup, and goes on: what happened after the backup stays in the record, with a break behind it, and the
// present is what the cluster says. Once the cluster is seen at once, once only when it has come further than it had been.
func TestEtcdRestored(t *testing.T) {
	t.Parallel()
	for name, outrun := range map[string]bool{"at once": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteOptions{})
			s.Namespace(shop, nil)
			s.makeNodes("worker-1", "worker-2")
			for _, vm := range []string{"db-1", "db-2", "db-3"} {
				s.makeVM(vm, "LiveMigrate", "worker-1")
			}
			url := storetest.NewURL(t)
			g, through := newGate(t, s.accountConfig())
			s.kubeconfig = s.Kubeconfig(through, namespace)
			p := s.startEvictrail(url, "--cluster", "prod")
			s.awaitReady()
			s.migrateVM("db-2", "before", "worker-2")
			requireRefused(t, s.evictVM(s.Admin(), "db-1", nil), "Eviction triggered evacuation of VMI")
			s.awaitRecorded(url)

			backup := s.Backup()
			s.migrateVM("db-1", "lost", "worker-2")
			s.migrateVM("db-2", "undone", "worker-1")
			s.makeVM("db-4", "LiveMigrate", "worker-2")
			require.NoError(t, s.Dynamic().Resource(vmis).Namespace(shop).Delete(t.Context(), "db-3", metav1.DeleteOptions{}))
			requireRefused(t, s.evictVM(s.Admin(), "db-4", nil), "Eviction triggered evacuation of VMI")
			s.awaitRecorded(url)
			before := s.Revision()

			g.blockTraffic()
			s.Restore(backup)
			for n := 0; outrun && s.Revision() <= before; n++ {
				s.patchObject(vmis, "db-3", fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n))
			}
			g.allowTraffic()
			require.Contains(t, s.describeCluster(), "db-1 is to leave worker-1")
			s.awaitRecorded(url)
			awaitBreaks(t, url, "cluster_restored")
			require.Equal(t, 1, loadEpoch(t, url))
			require.Contains(t, s.fetchMetrics(), `evictrail_epochs_total{cause="cluster_restored"} 1`)
			s.awaitReady()
			requireEnds(t, url)

			s.migrateVM("db-1", "again", "worker-2") // it takes a step that was undone once more
			s.migrateVM("db-2", "lost", "worker-1")  // a migration of that name was undone
			require.NoError(t, s.Dynamic().Resource(vmis).Namespace(shop).Delete(t.Context(), "db-3", metav1.DeleteOptions{}))
			s.awaitRecorded(url)
			require.NoError(t, p.Stop())
			s.startEvictrail(url, "--cluster", "prod")
			s.awaitReady()
			awaitNoNewEvents(t, url)
			s.awaitRecorded(url)
			awaitBreaks(t, url, "cluster_restored")
			type moved struct {
				Migration, VMI, Outcome string
			}
			require.Equal(t, []moved{
				{"before", "db-2", "succeeded"}, {"lost", "db-1", "succeeded"}, {"undone", "db-2", "succeeded"}, {"again", "db-1", "succeeded"}, {"lost", "db-2", "succeeded"},
			}, loadRows[moved](t, url, `SELECT migration, vmi, outcome FROM evictrail_v1.migrations ORDER BY created_at, migration, vmi`))
			require.Empty(t, loadRows[transition](t, url, "SELECT migration_uid, phase, at FROM evictrail_v1.migration_phases WHERE phase <> '' GROUP BY 1, 2, 3 HAVING count(*) > 1"), "nothing is doubled")
		})
	}
}

// requireEnds wants what is not in the backup to be recorded as gone, and nothing else.
func requireEnds(t *testing.T, url string) {
	t.Helper()
	type end struct{ Kind, Name, Reason string }
	require.Equal(t, []end{
		{"migration_gone", "lost", "not_restored"}, {"migration_gone", "undone", "not_restored"}, {"vmi_ended", "db-3", "deleted"}, {"vmi_ended", "db-4", "not_restored"},
	}, loadRows[end](t, url, `SELECT kind, coalesce(nullif(migration, ''), vmi) AS name, reason FROM evictrail.events WHERE kind IN ('vmi_ended', 'migration_gone') ORDER BY kind, name`))
}

// TestClusterRebuilt empties etcd under a running evictrail whose cluster has a name: what was there is closed, what is there is recorded, and a break lies between.
func TestClusterRebuilt(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{})
	s.Namespace(shop, nil)
	s.makeNodes("worker-1", "worker-2")
	for _, vm := range []string{"db-1", "db-2"} {
		s.makeVM(vm, "LiveMigrate", "worker-1")
	}
	url := storetest.NewURL(t)
	g, through := newGate(t, s.accountConfig())
	s.kubeconfig = s.Kubeconfig(through, namespace)
	s.startEvictrail(url, "--cluster", "prod")
	s.awaitReady()
	requireRefused(t, s.evictVM(s.Admin(), "db-2", nil), "Eviction triggered evacuation of VMI")
	s.awaitRecorded(url)

	g.blockTraffic()
	s.Rebuild()
	s.prepareCluster("v1.8.4")
	s.Namespace(shop, nil)
	s.makeNodes("worker-3")
	s.makeVM("db-1", "LiveMigrate", "worker-3")
	g.allowTraffic()
	s.awaitRecorded(url)
	awaitBreaks(t, url, "cluster_rebuilt")
	require.Equal(t, 1, loadEpoch(t, url))
	require.Contains(t, s.fetchMetrics(), `evictrail_epochs_total{cause="cluster_rebuilt"} 1`)
	s.awaitReady()
	requireRefused(t, s.evictVM(s.Admin(), "db-1", nil), "Eviction triggered evacuation of VMI")
	s.awaitRecorded(url)
}
