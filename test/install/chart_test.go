package install_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// valueSets are the files of values in testdata.
func valueSets(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	var sets []string
	for _, path := range all {
		if !strings.HasSuffix(path, ".golden.yaml") {
			sets = append(sets, path)
		}
	}
	require.Len(t, sets, 3)
	return sets
}

func TestLint(t *testing.T) {
	t.Parallel()
	for _, values := range valueSets(t) {
		out, err := runProgram(t, buildHelm, "lint", "--strict", chart, "--values", values)
		require.NoError(t, err, out)
	}
}

// madeSecret finds the secret that the chart makes for the observer's path, which is another each time.
var madeSecret = regexp.MustCompile(`(?m)(^      path: /admission/|^  secret: )[a-z0-9A-Z=]{48,64}$`)

func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, values := range valueSets(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			got := madeSecret.ReplaceAllString(renderChart(t, chart, values), "${1}MADE-AT-INSTALL")
			golden := strings.TrimSuffix(values, ".yaml") + ".golden.yaml"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "run go test ./install -update, and read the diff")
		})
	}
}

// TestGeneratedCertificate: the certificate that the chart makes is for the Service, and the observer's CA is its CA.
func TestGeneratedCertificate(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/small.yaml", "--set=tls.source=generated,tls.names={evictrail.example},observer.enabled=true,networkPolicy.apiServerCIDRs={0.0.0.0/0}")
	secret := findObject[corev1.Secret](t, text, "Secret", "evictrail-tls")
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	require.NoError(t, err)
	require.NotContains(t, string(secret.Data["ca.crt"]), "PRIVATE KEY")
	require.Len(t, secret.Data, 3, "the CA's key is kept nowhere")

	observer := findObject[admissionv1.ValidatingWebhookConfiguration](t, text, "ValidatingWebhookConfiguration", "evictrail-eviction-observer")
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(observer.Webhooks[0].ClientConfig.CABundle))
	for _, name := range []string{"evictrail.evictrail.svc", "evictrail.example", "localhost", "127.0.0.1"} {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
		require.NoError(t, err, name)
	}
	service := observer.Webhooks[0].ClientConfig.Service
	require.Equal(t, "evictrail.evictrail.svc", service.Name+"."+service.Namespace+".svc")
}

// TestObserverKnowsTheCA: by who makes the certificate.
func TestObserverKnowsTheCA(t *testing.T) {
	t.Parallel()
	const on = "--set=observer.enabled=true,networkPolicy.apiServerCIDRs={0.0.0.0/0},tls.source="
	observer := func(args ...string) admissionv1.ValidatingWebhookConfiguration {
		return findObject[admissionv1.ValidatingWebhookConfiguration](t, renderChart(t, chart, append([]string{"testdata/small.yaml"}, args...)...),
			"ValidatingWebhookConfiguration", "evictrail-eviction-observer")
	}
	require.Equal(t, "evictrail/evictrail", observer(on + "certManager").Annotations["cert-manager.io/inject-ca-from"])
	require.Equal(t, "true", observer(on + "serviceCA").Annotations["service.beta.openshift.io/inject-cabundle"])
	ca := "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
	require.Equal(t, ca, string(observer(on+"secret", "--set-string=tls.ca="+ca).Webhooks[0].ClientConfig.CABundle))
}

// TestObserverCannotHoldUpEvictions whatever else is set.
func TestObserverCannotHoldUpEvictions(t *testing.T) {
	t.Parallel()
	for _, o := range parseObjects(t, renderChart(t, chart, "testdata/full.yaml")) {
		require.NotEqual(t, "MutatingWebhookConfiguration", o.GetKind())
	}
	observer := findObject[admissionv1.ValidatingWebhookConfiguration](t, renderChart(t, chart, "testdata/full.yaml"), "ValidatingWebhookConfiguration", "evictrail-eviction-observer")
	require.Len(t, observer.Webhooks, 1)
	require.Equal(t, admissionv1.Ignore, *observer.Webhooks[0].FailurePolicy)
	require.EqualValues(t, 1, *observer.Webhooks[0].TimeoutSeconds)
	require.Equal(t, admissionv1.SideEffectClassNone, *observer.Webhooks[0].SideEffects)
}

// TestNothingReachesThePodsButWhatIsNamed reads the policies as a network plugin does: what selects a pod adds up.
func TestNothingReachesThePodsButWhatIsNamed(t *testing.T) {
	t.Parallel()
	text := renderChart(t, chart, "testdata/small.yaml", "--set-json=networkPolicy.prometheus=[]")
	for _, name := range []string{"evictrail", "evictrail-recorder"} {
		policy := findObject[networkingv1.NetworkPolicy](t, text, "NetworkPolicy", name)
		require.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, policy.Spec.PolicyTypes)
		require.Empty(t, policy.Spec.Ingress)
		for _, rule := range policy.Spec.Egress {
			require.NotEmpty(t, rule.Ports, "no rule is for every port")
		}
	}
	full := findObject[networkingv1.NetworkPolicy](t, renderChart(t, chart, "testdata/full.yaml"), "NetworkPolicy", "evictrail-recorder")
	require.Len(t, full.Spec.Ingress, 3, "Prometheus, users, API servers")
	for i, ports := range [][]string{{"https"}, {"https"}, {"https", "admission"}} {
		rule := full.Spec.Ingress[i]
		require.NotEmpty(t, rule.From, "no rule is for everybody")
		var open []string
		for _, port := range rule.Ports {
			open = append(open, port.Port.String())
		}
		require.Equal(t, ports, open, "reviews come from API servers alone")
	}
	require.Equal(t, "10.0.0.0/28", full.Spec.Ingress[2].From[0].IPBlock.CIDR)
}

// TestObserverIsKnownByItsPath: the webhook calls the path whose secret evictrail has, at the port that is for it alone.
func TestObserverIsKnownByItsPath(t *testing.T) {
	t.Parallel()
	on := []string{"testdata/small.yaml", "--set=observer.enabled=true,networkPolicy.apiServerCIDRs={0.0.0.0/0},tls.source=generated"}
	text := renderChart(t, chart, on...)
	made := string(findObject[corev1.Secret](t, text, "Secret", "evictrail-admission").Data["secret"])
	require.Regexp(t, "^[A-Za-z0-9]{48}$", made)
	service := findObject[admissionv1.ValidatingWebhookConfiguration](t, text, "ValidatingWebhookConfiguration", "evictrail-eviction-observer").Webhooks[0].ClientConfig.Service
	require.Equal(t, "/admission/"+made, *service.Path)
	ports := findObject[corev1.Service](t, text, "Service", "evictrail").Spec.Ports
	require.Equal(t, "admission", ports[1].Name)
	require.Equal(t, ports[1].Port, *service.Port)
	args := parsePodTemplates(t, text)["StatefulSet"].Spec.Containers[0].Args
	require.Contains(t, args, "--admission-listen=:9443")
	require.Contains(t, args, "--admission-secret-file=/etc/evictrail/admission/secret")
	again := renderChart(t, chart, on...)
	require.NotEqual(t, made, string(findObject[corev1.Secret](t, again, "Secret", "evictrail-admission").Data["secret"]), "each installation has its own")

	byCertificate := renderChart(t, chart, append(on, "--set=observer.clientCASecret.name=api-server-ca")...)
	require.NotContains(t, byCertificate, "evictrail-admission")
	service = findObject[admissionv1.ValidatingWebhookConfiguration](t, byCertificate, "ValidatingWebhookConfiguration", "evictrail-eviction-observer").Webhooks[0].ClientConfig.Service
	require.Equal(t, "/admission", *service.Path)
	require.Contains(t, parsePodTemplates(t, byCertificate)["StatefulSet"].Spec.Containers[0].Args, "--admission-client-ca-file=/etc/evictrail/admission/ca.crt")
}

// TestNotes are printed by helm install, which asks a cluster; a dry run on the client prints them as well.
func TestNotes(t *testing.T) {
	t.Parallel()
	notes := func(args ...string) string {
		out, err := runProgram(t, buildHelm, append([]string{"install", "evictrail", chart, "--namespace", namespace, "--dry-run=client", "--values"}, args...)...)
		require.NoError(t, err, out)
		_, notes, found := strings.Cut(out, "NOTES:\n")
		require.True(t, found, out)
		return notes
	}
	small := notes("testdata/small.yaml")
	require.Contains(t, small, "in the database of db.example/evictrail.")
	require.Contains(t, small, "Who asks for evictions, and with which words, is not seen yet")
	require.NotContains(t, small, "WARNING")
	full := notes("testdata/full.yaml", "--set=cluster=prod")
	require.Contains(t, full, `records this cluster as "prod"`)
	require.Contains(t, full, "get configmap evictrail-audit")
	require.NotContains(t, full, "is not seen yet")
	require.Contains(t, notes("testdata/small.yaml", "--set=auth=none"), "WARNING: auth is none")
}
