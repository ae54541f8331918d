package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// auditLog returns the audit log of a recording, unpacked.
func auditLog(t *testing.T, name string) string {
	t.Helper()
	packed, err := fs.ReadFile(evictrail.Recordings(), name+"/audit.jsonl.gz")
	require.NoError(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	return string(text)
}

// writeCertificate makes a certificate for loopback that signs itself.
func writeCertificate(t *testing.T, dir string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "evictrail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	pemCert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	require.NoError(t, os.WriteFile(certFile, pemCert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pemCert))
	return certFile, keyFile, pool
}

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestObserverIsNotOpenToTheNetwork refuses to start where anyone who reaches the observer could report what nobody asked for.
func TestObserverIsNotOpenToTheNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, _ := writeCertificate(t, dir)
	https := []string{"--tls-cert-file", certFile, "--tls-key-file", keyFile}
	secret, guessed := filepath.Join(dir, "secret"), filepath.Join(dir, "guessed")
	require.NoError(t, os.WriteFile(secret, []byte("0123456789abcdef0123\n"), 0o600))
	require.NoError(t, os.WriteFile(guessed, []byte("admin\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nobody is known":            {https, "anyone who reaches it could record evictions that nobody asked for"},
		"nobody is known, auth none": {append([]string{"--auth=none"}, https...), "anyone who reaches it could record evictions that nobody asked for"},
		"the secret in the clear":    {[]string{"--admission-secret-file", secret}, "the secret would be sent in the clear"},
		"a secret that is guessed":   {append([]string{"--admission-secret-file", guessed}, https...), "20 to 128 lower-case letters"},
		"no secret in the file":      {append([]string{"--admission-secret-file", os.DevNull}, https...), "is empty"},
		"names without a CA":         {append([]string{"--admission-secret-file", secret, "--admission-client=x"}, https...), "give the CA of the certificates"},
		"certificates without HTTPS": {[]string{"--admission-client-ca-file", certFile}, "client certificates need HTTPS"},
		"an address that is none":    {[]string{"--admission-listen=9443"}, "expected HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runCommand(t, append([]string{"run", "--eviction-observer", "--admission-listen=0.0.0.0:0", "--kubeconfig=none"}, c.args...)...)
			require.NotEqual(t, exitFound, code)
			require.Contains(t, stderr, c.want)
		})
	}
}

// TestRunTakesRequests runs the service on a recorded cluster that stands still, over HTTPS, and reports requests to it in
// every way: the observer, a log file that it follows, and audit events sent to it with a token that changes during that time.
func TestRunTakesRequests(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "c-node-drain"
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	dir := t.TempDir()
	certFile, keyFile, pool := writeCertificate(t, dir)
	tokens, auditFile := filepath.Join(dir, "tokens"), filepath.Join(dir, "audit.log")
	require.NoError(t, os.WriteFile(tokens, []byte("first\n"), 0o600))
	lines := strings.SplitAfter(auditLog(t, name), "\n")
	require.NoError(t, os.WriteFile(auditFile, []byte(strings.Join(lines[:20], "")), 0o600))
	const known = "0123456789abcdef0123"
	secret, reviews := filepath.Join(dir, "secret"), freeAddress(t)
	require.NoError(t, os.WriteFile(secret, []byte(known+"\n"), 0o600))
	url := storetest.NewURL(t)
	s := startRun(t, []string{
		"run", "--kubeconfig", writeKubeconfig(t, cluster.URL), "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url,
		"--tls-cert-file", certFile, "--tls-key-file", keyFile, "--audit-token-file", tokens, "--audit-file", auditFile,
		"--eviction-observer", "--admission-listen", reviews, "--admission-secret-file", secret,
	}, pool)
	count := func(where string) int {
		return len(queryRows[map[string]any](t, url, "SELECT 1 AS n FROM evictrail_v1.eviction_requests WHERE "+where))
	}
	followed := strings.Count(strings.Join(lines[:20], ""), `"subresource":"eviction"`)
	require.Eventually(t, func() bool { return count("source = 'audit'") == followed }, 2*time.Minute, 20*time.Millisecond, "the followed log")

	code, body := s.postBody(t, "/audit", strings.Join(lines, ""))
	require.Equal(t, http.StatusUnauthorized, code, body)
	require.NoError(t, os.WriteFile(tokens, []byte("second\n"), 0o600))
	code, body = s.postBody(t, "/audit", strings.Join(lines, "")+"{\n", "Authorization", "Bearer second")
	require.Equal(t, http.StatusOK, code, body)
	var report struct{ Taken, Skipped, Refused int }
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	require.Equal(t, struct{ Taken, Skipped, Refused int }{54, 4, 1}, report)
	require.Eventually(t, func() bool { return count("source = 'audit'") == 52 }, 2*time.Minute, 20*time.Millisecond, "on disk when the answer came; those of the log are the same")

	review := func(uid, user string) string {
		return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"` + uid + `","operation":"CREATE","name":"virt-launcher-web-1-kqmfn",` +
			`"namespace":"demo","resource":{"group":"","version":"v1","resource":"pods"},"subResource":"eviction","userInfo":{"username":"` + user + `"},"object":{}}}`
	}
	code, _ = s.postBody(t, "/admission", review("f-0", "forged"))
	require.Equal(t, http.StatusNotFound, code, "who reads has no way to write")
	code, _ = s.postBody(t, "/admission/"+known, review("f-1", "forged"))
	require.Equal(t, http.StatusNotFound, code)
	observer := s
	observer.base = "https://" + reviews
	for i, path := range []string{"/admission", "/admission/guessed"} {
		code, _ = observer.postBody(t, path, review(fmt.Sprint("f-", i+2), "forged"))
		require.Equal(t, http.StatusNotFound, code, path)
	}
	code, body = observer.postBody(t, "/admission/"+known, review("u-1", "carol"))
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u-1","allowed":true,"auditAnnotations":{"evictrail-review":"u-1"}}}`, body)
	require.Eventually(t, func() bool {
		return count("source = 'admission' AND requester = 'carol' AND confidence = 'asserted'") == 1
	}, 20*time.Second, 20*time.Millisecond)
	require.Zero(t, count("requester = 'forged'"))
	_, answer, _ := runCommand(t, "why", "demo/web-1", "--database-url", url)
	require.NotContains(t, answer, "forged")
	metrics := s.getBody(t, "/metrics")
	require.Contains(t, metrics, `evictrail_authz_denied_total{cause="bad_admission_path"} 2`)
	require.NotContains(t, metrics, known)
	require.Contains(t, metrics, `evictrail_admission_reviews_total{result="taken"} 1`)
	require.Contains(t, metrics, `evictrail_audit_events_total{result="refused"} 1`)
	require.Contains(t, metrics, "evictrail_audit_enabled 1")
	require.Equal(t, exitFound, s.stop())

	code, out, stderr := runCommand(t, "requests", "--database-url", url, "--vm", "demo/db-local")
	require.Equal(t, exitFound, code, stderr)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 3, "the head, 31 refusals in one row, one for a pod that was gone\n%s", out)
	require.Contains(t, out, "30")
}

// TestAuditImport imports logs in every state: the good part is stored, the rest is counted and shown.
func TestAuditImport(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "c-node-drain"
	url, dir := storetest.NewURL(t), t.TempDir()
	text := auditLog(t, name)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	code, _, stderr := runCommand(t, "audit", "import", file("a.log", text), "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "name it with --cluster")
	playBuiltin(t, url, name, "--no-audit")
	code, out, stderr := runCommand(t, "audit", "import", file("a.log", text), "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "58 lines: 54 taken, 0 known already, 4 about something else, 0 refused")
	code, out, _ = runCommand(t, "audit", "import", file("a.log", text), "--database-url", url)
	require.Equal(t, exitFound, code, "a replayed day")
	require.Contains(t, out, "0 taken, 54 known already")
	before := readPublicViews(t, url)

	// The log of another cluster among ours, and lines that are nothing.
	other := auditLog(t, "k-blocked-slot")
	code, out, stderr = runCommand(t, "audit", "import", file("mixed.log", "garbage\n"+other), file("nowhere.log", ""), filepath.Join(dir, "missing.log"), "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, out, "16 lines: 2 taken")
	require.Contains(t, out, "1 refused")
	require.Contains(t, stderr, "the first that was refused: line 1: bad JSON")
	require.Contains(t, stderr, "2 eviction requests in cluster c-node-drain are about pods that evictrail never saw")
	require.Contains(t, stderr, "missing.log: no such file")
	after := readPublicViews(t, url)
	require.Equal(t, before["evacuations"], after["evacuations"], "another cluster's log changes nothing of ours")
	require.Len(t, after["eviction_requests"], len(before["eviction_requests"])+2)

	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(strings.Repeat(text, 100)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	code, out, stderr = runCommand(t, "audit", "import", file("half.gz", packed.String()[:packed.Len()/2]), "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "cut short after line")
	require.Regexp(t, `[1-9]\d* known already`, out, "what was before the break")
}
