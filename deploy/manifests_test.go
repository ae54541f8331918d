package deploy_test

import (
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/evictrail/evictrail/deploy"
)

// parseDocuments decodes a manifest, each document by its kind.
func parseDocuments(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var document map[string]any
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, text)
		out[document["kind"].(string)] = document
	}
}

// findPath goes down by keys and, in a list, to its first item.
func findPath(v any, keys ...string) any {
	for _, key := range keys {
		if list, ok := v.([]any); ok {
			v = list[0]
		}
		v = v.(map[string]any)[key]
	}
	return v
}

func generateManifest(t *testing.T, name string, o deploy.Options) map[string]map[string]any {
	t.Helper()
	text, err := deploy.YAML(name, o)
	require.NoError(t, err)
	return parseDocuments(t, text)
}

func TestEveryManifestIsExplainedAndYAML(t *testing.T) {
	t.Parallel()
	kinds := map[string][]string{
		deploy.AuditPolicy:    {"Policy"},
		deploy.AuditWebhook:   {"Config"},
		deploy.Observer:       {"ValidatingWebhookConfiguration"},
		deploy.EvictionReason: {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	}
	require.Len(t, deploy.Manifests(), len(kinds))
	for _, m := range deploy.Manifests() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			text, err := deploy.YAML(m.Name, deploy.DefaultOptions())
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(text, "# "), "begins with what it is for: %.40s", text)
			require.True(t, strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n"))
			require.NotContains(t, text, "{{")
			require.NotContains(t, text, "<no value>")
			for line := range strings.Lines(text) {
				require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "no spaces at the end of a line")
				require.LessOrEqual(t, len(line), 140, line)
			}
			found := parseDocuments(t, text)
			require.Len(t, found, len(kinds[m.Name]))
			for _, kind := range kinds[m.Name] {
				require.Contains(t, found, kind)
			}
		})
	}
}

func TestWhereEvictrailIs(t *testing.T) {
	t.Parallel()
	ca := newCertificate(t)
	service := deploy.DefaultOptions()
	service.Namespace, service.Service, service.Port, service.CA = "observability", "recorder", 8443, ca

	cluster := findPath(generateManifest(t, deploy.AuditWebhook, service)["Config"], "clusters", "cluster")
	require.Equal(t, "https://recorder.observability.svc:8443/audit", findPath(cluster, "server"))
	require.Equal(t, "recorder.observability.svc", findPath(cluster, "tls-server-name"))
	require.Equal(t, base64.StdEncoding.EncodeToString(ca), findPath(cluster, "certificate-authority-data"))
	require.Nil(t, findPath(cluster, "certificate-authority"))

	client := findPath(generateManifest(t, deploy.Observer, service)["ValidatingWebhookConfiguration"], "webhooks", "clientConfig")
	require.Equal(t, map[string]any{"namespace": "observability", "name": "recorder", "port": 9443., "path": "/admission"}, findPath(client, "service"), "a port of its own")
	require.Equal(t, base64.StdEncoding.EncodeToString(ca), findPath(client, "caBundle"))
	require.Nil(t, findPath(client, "url"))

	outside := deploy.DefaultOptions()
	outside.URL = "https://evictrail.example:8443/prod/"
	cluster = findPath(generateManifest(t, deploy.AuditWebhook, outside)["Config"], "clusters", "cluster")
	require.Equal(t, "https://evictrail.example:8443/prod/audit", findPath(cluster, "server"))
	require.Nil(t, findPath(cluster, "tls-server-name"))
	require.Nil(t, findPath(cluster, "certificate-authority-data"))
	require.NotEmpty(t, findPath(cluster, "certificate-authority"), "a path to fill in")

	outside.ObserverURL, outside.Secret = "https://evictrail.example:9443/prod/", "not-guessed-by-anybody"
	client = findPath(generateManifest(t, deploy.Observer, outside)["ValidatingWebhookConfiguration"], "webhooks", "clientConfig")
	require.Equal(t, map[string]any{"url": "https://evictrail.example:9443/prod/admission/not-guessed-by-anybody"}, client)
}

func TestOnlyCertificatesGetIntoAManifest(t *testing.T) {
	t.Parallel()
	ca := newCertificate(t)
	o := deploy.DefaultOptions()
	o.CA = slices.Concat([]byte("# our CA\n"), encodePEM("PRIVATE KEY", []byte("secret")), ca)
	cluster := findPath(generateManifest(t, deploy.AuditWebhook, o)["Config"], "clusters", "cluster")
	require.Equal(t, base64.StdEncoding.EncodeToString(ca), findPath(cluster, "certificate-authority-data"))
	client := findPath(generateManifest(t, deploy.Observer, o)["ValidatingWebhookConfiguration"], "webhooks", "clientConfig")
	require.Equal(t, base64.StdEncoding.EncodeToString(ca), findPath(client, "caBundle"))
}

func TestThePolicyAndItsBindingHaveOneName(t *testing.T) {
	t.Parallel()
	o := deploy.DefaultOptions()
	o.PolicyName = "why.example.com"
	documents := generateManifest(t, deploy.EvictionReason, o)
	require.Equal(t, "why.example.com", findPath(documents["ValidatingAdmissionPolicy"], "metadata", "name"))
	require.Equal(t, "why.example.com", findPath(documents["ValidatingAdmissionPolicyBinding"], "spec", "policyName"))
}

func TestUnknownManifest(t *testing.T) {
	t.Parallel()
	_, err := deploy.YAML("audit", deploy.DefaultOptions())
	require.ErrorContains(t, err, "manifest audit")
}
