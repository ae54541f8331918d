package plugins_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// evictrailService is the service of the chart, whose pod is at an address, and two accounts: viewer is bound to the role that
// docs/plugins.md grants.
const evictrailService = `
apiVersion: v1
kind: Service
metadata: {name: evictrail, namespace: evictrail}
spec:
  ports: [{name: https, port: 443, targetPort: https}]
---
apiVersion: v1
kind: Pod
metadata: {name: evictrail-0, namespace: evictrail}
spec: {nodeName: worker-1, containers: [{name: evictrail, image: evictrail}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: evictrail-1, namespace: evictrail, labels: {kubernetes.io/service-name: evictrail}}
addressType: IPv4
endpoints:
- addresses: [%[1]s]
  conditions: {ready: true}
  targetRef: {kind: Pod, name: evictrail-0, namespace: evictrail}
ports: [{name: https, port: %[2]s, protocol: TCP}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: evictrail}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: evictrail}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: evictrail}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: evictrail-reader}
subjects: [{kind: ServiceAccount, name: viewer, namespace: evictrail}]
`

// TestHeadlampThroughARealAPIServer asks through the service proxy of a kube-apiserver, as users with and without the role that the
// documentation grants. No token arrives, and nothing can be written.
func TestHeadlampThroughARealAPIServer(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var tokens, asked atomic.Int64
	handler := api.Server{Readers: api.ForAll(answers.Reader{Reader: s.Reader})}.Handler()
	pod := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(pod.Close)
	egress := filepath.Join(t.TempDir(), "egress.yaml")
	require.NoError(t, os.WriteFile(egress, fmt.Appendf(nil, passToPod, startTunnel(t, pod.Listener.Addr().String())), 0o600))
	cluster := kubetest.Start(t, kubetest.Options{Flags: []string{"--egress-selector-config-file=" + egress}})
	cluster.Namespace("evictrail", nil)
	cluster.Apply(readDocumentedRole(t))
	cluster.Apply(fmt.Sprintf(evictrailService, podIP, podPort))
	pods := cluster.Client().CoreV1().Pods("evictrail") // there is no kubelet that says where the pod is
	known, err := pods.Get(t.Context(), "evictrail-0", metav1.GetOptions{})
	require.NoError(t, err)
	known.Status.PodIP, known.Status.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
	_, err = pods.UpdateStatus(t.Context(), known, metav1.UpdateOptions{})
	require.NoError(t, err)

	viewer := cluster.ServiceAccount("evictrail", "viewer")
	h := &headlamp{apiServer: passToAPIServer(t, viewer), dress: lightDress}
	b := openTab(t, h.start(t), refusal)
	b.openPage(url.Values{"settings": {"evictrail"}})
	b.fillIn("cluster", loopCluster)
	b.pressButton("Save")
	b.openVM(loopVM, "answered")
	b.requireAnswer(t, loopVM, loopCluster)
	b.openVM("demo/nobody", "unknown")
	require.Zero(t, tokens.Load(), "the API server removes them")
	require.Positive(t, asked.Load())

	stranger := &headlamp{apiServer: passToAPIServer(t, cluster.ServiceAccount("evictrail", "stranger")), dress: lightDress}
	b = openTab(t, stranger.start(t), refusal)
	b.openVM(loopVM, "refused")
	require.Contains(t, b.panelText(), `The cluster refused the question (403).services "https:evictrail:443" is forbidden: User "system:serviceaccount:evictrail:stranger" cannot get resource "services/proxy"`)

	before := asked.Load()
	client, err := rest.HTTPClientFor(viewer)
	require.NoError(t, err)
	answer, err := client.Post(viewer.Host+serviceOf+"/api/v1/acknowledgements", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Equal(t, before, asked.Load(), "it does not reach evictrail")
}

// readDocumentedRole returns the role of docs/plugins.md.
func readDocumentedRole(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/plugins.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)   ```yaml\n(   apiVersion: rbac.*?)   ```").FindSubmatch(page)
	require.NotNil(t, block)
	return string(block[1])
}

// passToAPIServer returns a handler that passes requests on to an API server as a user, as Headlamp's own server does.
func passToAPIServer(t *testing.T, user *rest.Config) http.Handler {
	t.Helper()
	to, err := url.Parse(user.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(user)
	require.NoError(t, err)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

// The address at which the API server believes the pod of evictrail to be. It passes nothing on to loopback addresses.
const (
	podIP   = "10.0.0.7"
	podPort = "8443"
)

// passToPod is the configuration of a kube-apiserver that reaches pods through a proxy.
const passToPod = `
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`

// startTunnel starts a proxy through which connections to the pod (HTTP's CONNECT) end at an address, and returns its socket.
func startTunnel(t *testing.T, address string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "tunnel")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != net.JoinHostPort(podIP, podPort) {
			http.Error(w, "only the pod can be reached", http.StatusBadGateway)
			return
		}
		pod, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = pod.Close() }()
		caller, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = caller.Close() }()
		if _, err := io.WriteString(caller, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(pod, buffered)
			_ = pod.Close()
		}()
		_, _ = io.Copy(caller, pod)
	})
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: patience}}
	server.Start()
	t.Cleanup(server.Close)
	return socket
}
