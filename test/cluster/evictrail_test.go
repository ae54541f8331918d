package cluster_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/deploy"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// namespace is evictrail's own, and the name of its ServiceAccount.
const (
	namespace = "evictrail"
	account   = "evictrail"
)

// policyMap is the ConfigMap with the descheduler's policy.
const (
	policyNamespace = "openshift-kube-descheduler-operator"
	policyName      = "descheduler"
)

// rights renders those that evictrail ships with: its chart's, where it watches the descheduler's policy and asks the cluster who may
// read.
var rights = sync.OnceValues(func() (string, error) {
	helm, err := build.Helm().Build()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(helm, "template", "evictrail", build.Root()+"/deploy/chart", "--namespace", namespace,
		"--values", build.Root()+"/deploy/kustomize/base/values.yaml", "--set", "auth=kubernetes",
		"--set", "descheduler.configMap.namespace="+policyNamespace, "--set", "descheduler.configMap.name="+policyName,
		"--show-only", "templates/clusterrole.yaml", "--show-only", "templates/role.yaml").Output()
	return string(out), err
})

// renderShippedRights returns the rights that evictrail ships with.
func renderShippedRights(t *testing.T) string {
	t.Helper()
	manifest, err := rights()
	require.NoError(t, err, "render the chart")
	return manifest
}

// leaseName names evictrail's lease.
const leaseName = namespace + "/evictrail"

// site is a cluster with a place for evictrail: its address, which the API server sends audit events to, and its ServiceAccount
// with its rights.
type site struct {
	*kubetest.Cluster
	t   *testing.T
	dir string
	ca  *kubetest.Authority

	address, reviews string // of evictrail: its own, and of its observer
	secret           string // file: by which the API server is known
	token, cert, key string // files
	kubeconfig       string
	client           *http.Client
	runs             int // of evictrail
}

// pathSecret is the end of the path by which evictrail knows the API server.
const pathSecret = "a-path-that-nobody-else-knows"

// auditSoon has audit events come after a second at most.
const auditSoon = "--audit-webhook-batch-max-wait=1s"

// siteOptions say what a site is like.
type siteOptions struct {
	rules   string   // of the audit policy, before those that evictrail generates
	deaf    bool     // nobody sends audit events to evictrail
	version string   // of KubeVirt; empty: v1.8.4
	flags   []string // of the kube-apiserver
}

// newSite starts a cluster with the audit policy and the audit webhook that evictrail generates, and with KubeVirt's virt-api.
func newSite(t *testing.T, o siteOptions) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), address: ports.Free(t), reviews: ports.Free(t)}
	var err error
	s.ca, err = kubetest.NewAuthority("evictrail-ca")
	require.NoError(t, err)
	server, err := s.ca.Server("evictrail.evictrail.svc")
	require.NoError(t, err)
	s.cert, s.key, err = server.Write(s.dir, "tls")
	require.NoError(t, err)
	s.token = filepath.Join(s.dir, "token")
	require.NoError(t, os.WriteFile(s.token, []byte("of-the-api-server\n"), 0o600))
	s.secret = filepath.Join(s.dir, "admission")
	require.NoError(t, os.WriteFile(s.secret, []byte(pathSecret+"\n"), 0o600))
	s.client = clientTrusting(t, s.ca)

	policy, webhook := s.renderManifest(deploy.AuditPolicy), s.renderManifest(deploy.AuditWebhook)
	policy = strings.Replace(policy, "rules:\n", "rules:\n"+o.rules, 1)
	const tokenFile = "/etc/kubernetes/evictrail/token"
	require.Contains(t, webhook, tokenFile)
	webhook = strings.Replace(webhook, tokenFile, s.token, 1)
	options := kubetest.Options{AuditPolicy: policy, Flags: o.flags}
	if !o.deaf {
		options.AuditWebhook, options.Flags = webhook, slices.Concat(o.flags, []string{auditSoon})
	}
	s.Cluster = kubetest.Start(t, options)
	s.prepareCluster(cmp.Or(o.version, "v1.8.4"))
	s.kubeconfig = s.Kubeconfig(s.ServiceAccount(namespace, account), namespace)
	return s
}

// prepareCluster makes what evictrail needs in an empty cluster: its namespaces, its ServiceAccount with its rights, and virt-api of a version of KubeVirt.
func (s *site) prepareCluster(kubeVirt string) {
	s.t.Helper()
	for _, name := range []string{namespace, policyNamespace, "kubevirt"} {
		s.Namespace(name, nil)
	}
	s.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: " + account + ", namespace: " + namespace + "}}")
	s.Apply(renderShippedRights(s.t))
	startVirtAPI(s.t, s.Cluster, kubeVirt)
}

// renderManifest generates one of evictrail's manifests for the site's address.
func (s *site) renderManifest(name string) string {
	s.t.Helper()
	o := deploy.DefaultOptions()
	o.URL, o.ObserverURL, o.Secret, o.CA = "https://"+s.address, "https://"+s.reviews, pathSecret, s.ca.PEM
	text, err := deploy.YAML(name, o)
	require.NoError(s.t, err)
	return text
}

func base64PEM(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }

func clientTrusting(t *testing.T, ca *kubetest.Authority) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca.PEM))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// startEvictrail starts evictrail on a database, at the site's address.
func (s *site) startEvictrail(url string, args ...string) *kubetest.Process {
	s.t.Helper()
	program, err := build.Evictrail()
	require.NoError(s.t, err)
	s.runs++
	return kubetest.StartProcess(s.t, filepath.Join(s.dir, fmt.Sprintf("evictrail-%d.log", s.runs)), program, append([]string{
		"run", "--kubeconfig", s.kubeconfig, "--database-url", url, "--listen", s.address,
		"--tls-cert-file", s.cert, "--tls-key-file", s.key, "--audit-token-file", s.token, "--eviction-observer", "--admission-listen", s.reviews, "--admission-secret-file", s.secret,
		"--spool-dir", filepath.Join(s.dir, "spool"),
	}, args...)...)
}

// unreadyReason asks evictrail what is not ready: empty where nothing is.
func (s *site) unreadyReason(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/readyz", http.NoBody)
	if err != nil {
		return err.Error()
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		return ""
	}
	var text strings.Builder
	_, _ = text.WriteString(answer.Status + "\n")
	_ = answer.Write(&text)
	return text.String()
}

// awaitReady waits until evictrail is ready.
func (s *site) awaitReady() {
	s.t.Helper()
	awaitNoProblem(s.t, 100*time.Millisecond, func() string { return s.unreadyReason(s.t.Context()) }, "evictrail gets ready")
}

// awaitNoProblem waits for a minute until nothing is wrong, and fails with what was wrong last.
func awaitNoProblem(t *testing.T, tick time.Duration, wrong func() string, what string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for problem := wrong(); problem != ""; problem = wrong() {
		require.True(t, time.Now().Before(deadline), "%s: %s", what, problem)
		time.Sleep(tick)
	}
}

// loadRows reads the rows of a query.
func loadRows[T any](t *testing.T, url, query string) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	found, err := conn.Query(t.Context(), "SELECT to_json(q) FROM ("+query+") q")
	require.NoError(t, err)
	texts, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
	require.NoError(t, err)
	out := make([]T, len(texts))
	for i, text := range texts {
		require.NoError(t, json.Unmarshal(text, &out[i]))
	}
	return out
}
