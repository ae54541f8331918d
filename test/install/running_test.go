package install_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// machine runs the container of a pod as the kubelet does, but without a container: its arguments, its environment, the secrets
// where it looks for them, here below a folder of the test.
type machine struct {
	dir     string
	secrets map[string]map[string][]byte // by name and key
	listen  string
}

// buildCommand returns the environment and the command line of a pod's container.
func (m machine) buildCommand(t *testing.T, pod corev1.PodTemplateSpec) []string {
	t.Helper()
	program, err := build.Evictrail()
	require.NoError(t, err)
	container := pod.Spec.Containers[0]
	for _, mount := range container.VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i >= 0 {
			m.writeVolume(t, pod.Spec.Volumes[i], filepath.Join(m.dir, mount.MountPath))
		}
	}
	here := strings.NewReplacer("/etc/evictrail/", m.dir+"/etc/evictrail/", "=/var/lib/evictrail", "="+m.dir+"/var/lib/evictrail").Replace
	command, expand := []string{"env"}, []string{}
	for _, variable := range container.Env {
		value := here(variable.Value)
		if variable.ValueFrom != nil {
			value = map[string]string{"metadata.name": "evictrail-0", "metadata.namespace": namespace}[variable.ValueFrom.FieldRef.FieldPath]
		}
		command, expand = append(command, variable.Name+"="+value), append(expand, "$("+variable.Name+")", value)
	}
	command = append(command, program)
	for _, arg := range container.Args {
		arg = here(strings.NewReplacer(expand...).Replace(arg))
		command = append(command, strings.Replace(arg, "--listen=:8443", "--listen="+m.listen, 1))
	}
	return command
}

// writeVolume writes the files of a volume.
func (m machine) writeVolume(t *testing.T, volume corev1.Volume, dir string) {
	t.Helper()
	sources := []corev1.VolumeProjection{}
	switch {
	case volume.Secret != nil:
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: volume.Secret.SecretName}, Items: volume.Secret.Items,
		}})
	case volume.Projected != nil:
		sources = volume.Projected.Sources
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, source := range sources {
		for _, item := range source.Secret.Items {
			require.Contains(t, m.secrets[source.Secret.Name], item.Key, source.Secret.Name)
			require.NoError(t, os.WriteFile(filepath.Join(dir, item.Path), m.secrets[source.Secret.Name][item.Key], 0o400))
		}
	}
}

// runPod runs the container of a pod to its end.
func (m machine) runPod(t *testing.T, pod corev1.PodTemplateSpec) (string, error) {
	t.Helper()
	command := m.buildCommand(t, pod)
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	return string(out), err
}

// database is a Postgres that takes TLS connections only, for which this terminates TLS in front of that of the tests, and asks
// for a certificate of a client.
type database struct {
	url       string // without a password
	server    string // URL of the Postgres behind
	authority *kubetest.Authority
	client    kubetest.Certificate
}

func newDatabase(t *testing.T) database {
	t.Helper()
	authority, err := kubetest.NewAuthority("database-ca")
	require.NoError(t, err)
	cert, err := authority.Server("localhost")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert.Cert, cert.Key)
	require.NoError(t, err)
	client, err := authority.Client("evictrail")
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(authority.PEM))

	d := database{server: storetest.EmptyURL(t), authority: authority, client: client}
	behind, err := url.Parse(d.server)
	require.NoError(t, err)
	socket := filepath.Join(behind.Query().Get("host"), ".s.PGSQL."+behind.Query().Get("port"))
	network, address := "unix", socket
	if behind.Host != "" { // a Postgres that the tests were given by the user
		network, address = "tcp", behind.Host
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	d.url = "postgres://" + behind.User.Username() + "@localhost:" + l.Addr().(*net.TCPAddr).String()[len("127.0.0.1:"):] + behind.Path
	if name := behind.Query().Get("user"); name != "" {
		d.url = strings.Replace(d.url, "postgres://@", "postgres://"+name+"@", 1)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go terminateTLS(t.Context(), conn, config, network, address)
		}
	}()
	return d
}

// terminateTLS speaks Postgres' way into TLS: eight bytes ask for it, one allows it.
func terminateTLS(ctx context.Context, conn net.Conn, config *tls.Config, network, address string) {
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		return
	}
	if _, err := conn.Write([]byte("S")); err != nil {
		return
	}
	front := tls.Server(conn, config)
	if err := front.HandshakeContext(ctx); err != nil {
		return
	}
	behind, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer func() { _ = behind.Close() }()
	g, _ := errgroup.WithContext(ctx)
	for _, way := range [][2]net.Conn{{front, behind}, {behind, front}} {
		g.Go(func() error {
			_, err := io.Copy(way[0], way[1])
			_, _ = way[0].Close(), way[1].Close()
			return err
		})
	}
	_ = g.Wait()
}

// TestTheSchemaIsMadeFirst runs what helm runs: the Job before an upgrade, in vain where the database is somebody else, and then
// `helm test`.
func TestTheSchemaIsMadeFirst(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	other, err := kubetest.NewAuthority("database-ca")
	require.NoError(t, err)
	m := machine{dir: t.TempDir(), secrets: map[string]map[string][]byte{
		"pw": {"password": []byte("not asked for\n")}, "ca": {"ca.crt": d.authority.PEM}, "other-ca": {"ca.crt": other.PEM},
		"client": {"tls.crt": d.client.Cert, "tls.key": d.client.Key},
	}}
	const secrets = ",database.passwordSecret.name=pw,database.clientCertificateSecret=client,database.caSecret.name="
	text := renderChart(t, chart, "--set=database.url="+d.url+secrets+"ca")

	out, err := m.runPod(t, parsePodTemplates(t, text)["Pod"])
	require.Error(t, err)
	require.Contains(t, out, "run `evictrail schema up`")
	out, err = m.runPod(t, parsePodTemplates(t, text)["Job"])
	require.NoError(t, err, out)
	require.Contains(t, out, "applied schema ")
	out, err = m.runPod(t, parsePodTemplates(t, text)["Pod"])
	require.NoError(t, err, out)

	m.dir = t.TempDir()
	out, err = m.runPod(t, parsePodTemplates(t, renderChart(t, chart, "--set=database.url="+d.url+secrets+"other-ca"))["Job"])
	require.Error(t, err)
	require.Contains(t, out, "certificate signed by unknown authority")
}

// TestARecorderRuns: with the arguments, the files and the rights that the chart sets, a recorder becomes ready on a real API
// server, over TLS with the certificate of the chart.
func TestARecorderRuns(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	i := newInstallation(t)
	text := renderChart(t, chart, "--set=database.url="+d.url+",database.caSecret.name=ca,database.clientCertificateSecret=client,audit.enabled=true,audit.tokenSecret.name=tokens,"+
		"networkPolicy.apiServerCIDRs={0.0.0.0/0},descheduler.configMap.namespace=openshift-kube-descheduler-operator,descheduler.configMap.name=descheduler,auth=kubernetes")
	file := filepath.Join(t.TempDir(), "evictrail.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	i.runKubectl(t, "apply", "--server-side", "-f", file)
	certificate, err := i.Client().CoreV1().Secrets(namespace).Get(t.Context(), "evictrail-tls", metav1.GetOptions{})
	require.NoError(t, err)

	m := machine{dir: t.TempDir(), listen: ports.Free(t), secrets: map[string]map[string][]byte{
		"ca": {"ca.crt": d.authority.PEM}, "client": {"tls.crt": d.client.Cert, "tls.key": d.client.Key},
		"tokens": {"tokens": []byte("sesame\n")}, "evictrail-tls": certificate.Data,
	}}
	command := m.buildCommand(t, parsePodTemplates(t, text)["StatefulSet"])
	command = slices.Insert(command, 1, "KUBECONFIG="+i.Kubeconfig(i.ServiceAccount(namespace, "evictrail"), namespace))
	p := kubetest.StartProcess(t, filepath.Join(m.dir, "log"), command[0], command[1:]...)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate.Data["ca.crt"]))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { // the Service
			return (&net.Dialer{}).DialContext(ctx, "tcp", m.listen)
		},
	}}
	defer client.CloseIdleConnections()
	ask := func(method, path, token string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "https://evictrail.evictrail.svc"+path, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	require.Eventually(t, func() bool {
		status, _ := ask(http.MethodGet, "/readyz", "")
		return status == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
	status, _ := ask(http.MethodGet, "/livez", "")
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(http.MethodPost, "/audit", "guess")
	require.Equal(t, http.StatusUnauthorized, status)
	status, body := ask(http.MethodPost, "/audit", "sesame")
	require.NotEqual(t, http.StatusUnauthorized, status, body)
	lease, err := i.Client().CoordinationV1().Leases(namespace).Get(t.Context(), "evictrail", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, *lease.Spec.HolderIdentity, "evictrail-0")
	require.NotContains(t, p.Output(), "forbidden", "it has every right that it uses")
	require.NoError(t, p.Stop(), p.Output())
}
