package manifests_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/plugin/pkg/audit/webhook"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/deploy"
)

// auditEndpoint is POST /audit; it sends what it receives to a channel.
func auditEndpoint(access api.Access) (http.Handler, <-chan collector.AuditReport) {
	taken := make(chan collector.AuditReport, 1)
	take := func(_ context.Context, body io.Reader) (any, bool, error) {
		report, err := collector.AuditReader{Now: time.Now(), Take: func(collector.Request) error { return nil }}.Read(body)
		taken <- report
		return report, false, err
	}
	return api.Server{Audit: &api.Audit{Take: take, Access: access}}.Handler(), taken
}

// writeKubeconfig writes the manifest into a directory to which its placeholders then point, with a few changes to its text.
func writeKubeconfig(t *testing.T, o deploy.Options, dir string, oldnew ...string) string {
	t.Helper()
	text := strings.NewReplacer(append(oldnew, "/etc/kubernetes/evictrail", dir)...).Replace(renderManifest(t, deploy.AuditWebhook, o))
	path := filepath.Join(dir, "audit-webhook.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sendEvent sends one event as a kube-apiserver with that kubeconfig does, trying once.
func sendEvent(t *testing.T, kubeconfig string) bool {
	t.Helper()
	backend, err := webhook.NewBackend(kubeconfig, auditv1.SchemeGroupVersion, wait.Backoff{Steps: 1}, nil)
	require.NoError(t, err)
	now := metav1.NowMicro()
	return backend.ProcessEvents(&audit.Event{
		Level: audit.LevelMetadata, AuditID: "4c3e5e9c-8d3b-4bd4-a6e3-d1ef8ed0b0c5", Stage: audit.StageResponseComplete, Verb: "create",
		RequestURI: "/api/v1/namespaces/shop/pods/virt-launcher-db-1-x7k2p/eviction", User: authenticationv1.UserInfo{Username: "alice"},
		ObjectRef:                &audit.ObjectReference{APIVersion: "v1", Resource: "pods", Subresource: "eviction", Namespace: "shop", Name: "virt-launcher-db-1-x7k2p"},
		RequestReceivedTimestamp: now, StageTimestamp: now,
	})
}

func TestAuditWebhook(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	knowsToken := api.Access{Tokens: func() ([]string, error) { return []string{"old", "right"}, nil }}
	knowsCertificate := api.Access{Certificates: true, Clients: []string{"client"}}
	const token, certificate = "tokenFile: ", "\n    # client-"
	byCertificate := []string{token, "# " + token, certificate, "\n    client-"}
	tests := []struct {
		name    string
		access  api.Access
		token   string
		client  string // whose certificate is put in place
		changes []string
		arrives bool
	}{
		{name: "with a token", access: knowsToken, token: "right\n", arrives: true},
		{name: "with another token", access: knowsToken, token: "wrong\n"},
		{name: "with a token where certificates are asked for", access: knowsCertificate, token: "right\n"},
		{name: "with a certificate", access: knowsCertificate, client: "client", changes: byCertificate, arrives: true},
		{name: "with a certificate of another name", access: knowsCertificate, client: "kubelet", changes: byCertificate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			handler, taken := auditEndpoint(tt.access)
			server := ca.serveHTTPS(t, "evictrail.evictrail.svc", handler)
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(tt.token), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), ca.pem, 0o600))
			if tt.client != "" {
				ca.writeCertificate(t, dir, tt.client)
				require.NoError(t, os.Rename(filepath.Join(dir, tt.client+".crt"), filepath.Join(dir, "client.crt")))
				require.NoError(t, os.Rename(filepath.Join(dir, tt.client+".key"), filepath.Join(dir, "client.key")))
			}
			// As its comment says: the address in place of the host.
			config := writeKubeconfig(t, deploy.DefaultOptions(), dir, append(tt.changes, "https://evictrail.evictrail.svc:443", server.URL)...)
			require.Equal(t, tt.arrives, sendEvent(t, config))
			if tt.arrives {
				require.Equal(t, collector.AuditReport{Lines: 1, Taken: 1}, receiveValue(t, taken))
			} else {
				require.Empty(t, taken)
			}
		})
	}
}

func TestAuditWebhookToURL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	handler, taken := auditEndpoint(api.Access{Tokens: func() ([]string, error) { return []string{"right"}, nil }})
	server := ca.serveHTTPS(t, "127.0.0.1", handler)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("right"), 0o600))
	o := deploy.DefaultOptions()
	o.URL, o.CA = server.URL+"/", ca.pem
	require.True(t, sendEvent(t, writeKubeconfig(t, o, dir)))
	require.Equal(t, 1, receiveValue(t, taken).Taken)

	o.CA = newAuthority(t).pem
	require.False(t, sendEvent(t, writeKubeconfig(t, o, dir)), "only to an evictrail whose certificate that CA signed")
}

// TestAuditWebhookWithoutItsFiles shows what docs/audit.md warns of: the API server does not start.
func TestAuditWebhookWithoutItsFiles(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), deploy.DefaultOptions()
	_, err := webhook.NewBackend(writeKubeconfig(t, o, dir), auditv1.SchemeGroupVersion, wait.Backoff{Steps: 1}, nil)
	require.ErrorContains(t, err, filepath.Join(dir, "ca.crt"))
	o.CA = newAuthority(t).pem
	_, err = webhook.NewBackend(writeKubeconfig(t, o, dir), auditv1.SchemeGroupVersion, wait.Backoff{Steps: 1}, nil)
	require.ErrorContains(t, err, filepath.Join(dir, "token"))
}
