package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// serveStandingCluster serves a recorded cluster that stands still, which knows callers.
func serveStandingCluster(t *testing.T, name string, callers *rights) string {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	objects := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		objects.Release(i)
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			callers.ServeHTTP(w, r)
			return
		}
		objects.ServeHTTP(w, r)
	}))
	t.Cleanup(cluster.Close)
	return cluster.URL
}

// TestRunAsksTheClusterAboutCallers runs the service as the chart does, reads it as several callers, and replaces its certificate during that time.
func TestRunAsksTheClusterAboutCallers(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const secret = "canary-token-81c3"
	callers := &rights{
		namespaces: map[string][]string{
			secret: {"demo"}, "elsewhere": {"other"}, "admin": {everythingThere}, "prometheus": {scrape}, "plain-admin": {everythingThere, scrape}, "of-vault": {everythingThere, scrape},
		},
		audiences: map[string]string{"prometheus": apiServer, "plain-admin": apiServer, "of-vault": "vault"},
	}
	dir := t.TempDir()
	certFile, keyFile, pool := writeCertificate(t, dir)
	log, stop := startUnready(t, []string{
		"run", "--kubeconfig", writeKubeconfig(t, serveStandingCluster(t, "k-blocked-slot", callers)), "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", storetest.NewURL(t),
		"--auth=kubernetes", "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--log-level", "debug",
	})
	base := "https://" + address.FindStringSubmatch(log.String())[1]
	trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	s := runningService{base, &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}, stop}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" }, 2*time.Minute, 20*time.Millisecond, log)
	require.Eventually(t, func() bool { // all was taken in, and derived
		code, body := s.doRequest(t, http.MethodGet, "/api/v1/evacuations", "", bearer("admin")...)
		return code == http.StatusOK && strings.Contains(body, "nbr-2")
	}, 20*time.Second, 20*time.Millisecond)
	for _, c := range []struct {
		name, path, token string
		code              int
	}{
		{"nobody", "/api/v1/names?kind=vm", "", http.StatusUnauthorized},
		{"nobody's page", "/", "", http.StatusUnauthorized},
		{"nobody's metrics", "/metrics", "", http.StatusUnauthorized},
		{"the metrics of who may not", "/metrics", secret, http.StatusForbidden},
		{"the metrics", "/metrics", "prometheus", http.StatusOK},
		{"a token for the API server", "/api/v1/names?kind=vm", "plain-admin", http.StatusUnauthorized},
		{"a token for the API server, at the page", "/", "plain-admin", http.StatusUnauthorized},
		{"the metrics, by a token for the API server", "/metrics", "plain-admin", http.StatusOK},
		{"a token for others", "/api/v1/names?kind=vm", "of-vault", http.StatusUnauthorized},
		{"the metrics, by a token for others", "/metrics", "of-vault", http.StatusUnauthorized},
		{"a VM of theirs", "/api/v1/vms/demo/nbr-1/why", secret, http.StatusOK},
		{"of another namespace", "/api/v1/vms/demo/nbr-1/why", "elsewhere", http.StatusForbidden},
	} {
		code, body := s.doRequest(t, http.MethodGet, c.path, "", bearer(c.token)...)
		require.Equal(t, c.code, code, "%s: %s", c.name, body)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12}}}
	_, err := old.Get(base + "/livez")
	require.ErrorContains(t, err, "protocol version")
	plain, err := http.Get("http" + strings.TrimPrefix(base, "https") + "/metrics")
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())
	require.Equal(t, http.StatusBadRequest, plain.StatusCode, "plain HTTP is refused")

	ca, token := writeFile(t, mustRead(t, certFile)), writeFile(t, []byte(secret+"\n"))
	code, out, stderr := runCommand(t, "evacuations", "--server", base, "--server-ca-file", ca, "--server-token-file", token)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "nbr-2")
	code, _, stderr = runCommand(t, "evacuations", "--server", base, "--server-ca-file", ca)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "give it with --server-token-file, such as `kubectl create token SERVICEACCOUNT --audience=evictrail > FILE`")
	code, _, stderr = runCommand(t, "evacuations", "--server", base, "--server-ca-file", ca, "--server-token-file", writeFile(t, []byte("expired")))
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "has that of --server-token-file expired?")

	replaceUnderLoad(t, base, certFile, keyFile, pool)
	require.Equal(t, exitFound, s.stop())
	require.NotContains(t, log.String(), secret)
	require.NotContains(t, log.String(), "level=ERROR")
}

// replaceUnderLoad replaces a certificate again and again while callers connect; the last one is that which is shown then.
func replaceUnderLoad(t *testing.T, base, certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var connected, failed atomic.Int64
	var shown atomic.Pointer[x509.Certificate]
	var mu sync.RWMutex // of the pool
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for ctx.Err() == nil {
				mu.RLock()
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool.Clone(), MinVersion: tls.VersionTLS13}}}
				answer, err := client.Get(base + "/livez")
				if err != nil {
					t.Errorf("connect: %v", err)
					failed.Add(1)
				} else {
					shown.Store(answer.TLS.PeerCertificates[0])
					_ = answer.Body.Close()
					connected.Add(1)
				}
				mu.RUnlock()
			}
		})
	}
	for range 5 {
		next := t.TempDir()
		cert, key, _ := writeCertificate(t, next)
		mu.Lock()
		require.True(t, pool.AppendCertsFromPEM(mustRead(t, cert)))
		mu.Unlock()
		require.NoError(t, os.Rename(key, keyFile)) // which does not fit the certificate any more
		time.Sleep(50 * time.Millisecond)
		raw := mustRead(t, cert)
		require.NoError(t, os.Rename(cert, certFile))
		require.Eventually(t, func() bool {
			now := shown.Load()
			return now != nil && bytes.Equal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: now.Raw}), raw)
		}, 10*time.Second, 5*time.Millisecond)
	}
	stop()
	callers.Wait()
	require.Zero(t, failed.Load())
	require.Greater(t, connected.Load(), int64(20))
	t.Logf("%d connections while the certificate was replaced five times, none failed", connected.Load())
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return raw
}

// TestWhatIsNotProtectedIsRefused starts services that others could read, or that would send secrets where others can read them.
func TestWhatIsNotProtectedIsRefused(t *testing.T) {
	t.Parallel()
	config := writeKubeconfig(t, "http://127.0.0.1:1")
	certFile, _, _ := writeCertificate(t, t.TempDir())
	token := writeFile(t, []byte("secret"))
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"other hosts", []string{"run", "--kubeconfig", config, "--listen", ":0"}, "say --auth=kubernetes, or --auth=none"},
		{"tokens in the clear", []string{"run", "--kubeconfig", config, "--listen", ":0", "--auth", "kubernetes"}, "tokens would be sent in the clear"},
		{"another way", []string{"run", "--kubeconfig", config, "--auth", "basic"}, "expected kubernetes or none"},
		{"half a certificate", []string{"run", "--kubeconfig", config, "--tls-cert-file", certFile}, "go together"},
		{"a demo for callers", []string{"demo", "--auth", "kubernetes"}, "no cluster that could say"},
		{"a password in the URL", []string{"timeline", "--database-url", "postgres://u:canary@127.0.0.1/e"}, "--database-password-file"},
		{"a password among its parameters", []string{"timeline", "--database-url", "postgres://u@127.0.0.1/e?password=canary"}, "--database-password-file"},
		{"a password in keywords", []string{"timeline", "--database-url", "host=127.0.0.1 password=canary"}, "--database-password-file"},
		{"a database that somebody else could be", []string{"timeline", "--database-url", "postgres://u@192.0.2.1/e"}, "add sslmode=verify-full to the URL"},
		{"a token over plain HTTP", []string{"timeline", "--server", "http://192.0.2.1", "--server-token-file", token}, "would be sent in the clear"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runCommand(t, c.args...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, c.says)
			require.NotContains(t, out+stderr, "canary")
			require.NotContains(t, out+stderr, "secret")
		})
	}
}

// TestHelpKeepsWhatTheEnvironmentHas reads help where the environment holds a secret.
func TestHelpKeepsWhatTheEnvironmentHas(t *testing.T) {
	t.Setenv("EVICTRAIL_DATABASE_URL", "postgres://u:canary@db.example/e")
	_, out, stderr := runCommand(t, "run", "--help")
	require.Contains(t, out, "--database-url")
	require.NotContains(t, out+stderr, "canary")
}

// TestLoopbackIsNotForOthersPages asks a service that only this machine reaches as a page elsewhere would have a browser ask.
func TestLoopbackIsNotForOthersPages(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	for auth, code := range map[string]int{"": http.StatusMisdirectedRequest, "none": http.StatusOK} {
		args := []string{
			"run", "--kubeconfig", writeKubeconfig(t, serveStandingCluster(t, "k-blocked-slot", &rights{})), "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", storetest.NewURL(t),
		}
		if auth != "" {
			args = append(args, "--auth", auth)
		}
		s := startRun(t, args, nil)
		for _, path := range []string{"/", "/metrics", "/api/v1/names?kind=cluster"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, http.NoBody)
			require.NoError(t, err)
			r.Host = "rebound.example:8080"
			answer, err := s.client.Do(r)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, code, answer.StatusCode, "%s", body)
			if auth == "" {
				var problem struct{ Detail string }
				require.NoError(t, json.Unmarshal(body, &problem))
				require.Contains(t, problem.Detail, "localhost")
			}
		}
		require.Equal(t, exitFound, s.stop())
	}
}
