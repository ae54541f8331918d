package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
)

// TestRun runs the service on a cluster that stands still at the end of a recording, stops it, and starts it again.
func TestRun(t *testing.T) {
	t.Parallel()
	rec, err := recording.Open(evictrail.Recordings(), "k-blocked-slot", nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	kubeconfig := writeKubeconfig(t, cluster.URL)

	url := storetest.NewURL(t)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url}
	first := startRun(t, args, nil)
	require.Contains(t, first.getBody(t, "/metrics"), `evictrail_watch_synced{resource="virtualmachineinstances"} 1`)
	require.Equal(t, "ok\n", first.getBody(t, "/livez"))
	require.Eventually(t, func() bool { return strings.Contains(first.getBody(t, "/api/v1/names?kind=cluster"), `"c1"`) }, 2*time.Minute, 20*time.Millisecond)
	require.Contains(t, first.getBody(t, "/metrics"), `route="/api/v1/names"`)
	problems, err := promlint.New(strings.NewReader(first.getBody(t, "/metrics"))).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, exitFound, first.stop())
	code, out, stderr := runCommand(t, "evacuations", "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "nbr-2")
	before := readPublicViews(t, url)
	require.Empty(t, before["gaps"])

	second := startRun(t, args, nil)
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 1 }, 2*time.Minute, 20*time.Millisecond,
		"the time between is a gap")
	require.Equal(t, exitFound, second.stop())
	after := readPublicViews(t, url)
	require.Equal(t, before["events"], withoutGaps(after["events"]), "nothing else is new")
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: SERVER}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, "SERVER", server)), 0o600))
	return file
}

func withoutGaps(events []string) []string {
	var out []string
	for _, e := range events {
		if !strings.Contains(e, `"kind": "gap_`) {
			out = append(out, e)
		}
	}
	return out
}

// service is a run of this process that is ready.
type runningService struct {
	base   string // URL
	client *http.Client
	stop   func() int
}

func (s runningService) getBody(t *testing.T, path string) string {
	t.Helper()
	_, body := s.doRequest(t, http.MethodGet, path, "")
	return body
}

// isReady reports whether the service says that it may be asked, and be sent what is to be kept.
func (s runningService) isReady(t *testing.T) bool {
	t.Helper()
	code, _ := s.doRequest(t, http.MethodGet, "/readyz", "")
	return code == http.StatusOK
}

func (s runningService) postBody(t *testing.T, path, body string, header ...string) (int, string) {
	t.Helper()
	return s.doRequest(t, http.MethodPost, path, body, header...)
}

func (s runningService) doRequest(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// startRun runs the service until it is ready; trusted says whose certificate it serves with, nil that it serves none.
func startRun(t *testing.T, args []string, trusted *x509.CertPool) runningService {
	t.Helper()
	log, stop := startUnready(t, args)
	s := runningService{base: "http://", client: http.DefaultClient, stop: stop}
	if trusted != nil {
		s.base = "https://"
		s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	}
	s.base += address.FindStringSubmatch(log.String())[1]
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" }, 2*time.Minute, 20*time.Millisecond, log)
	return s
}

// address finds where the service listens in its log.
var address = regexp.MustCompile(`addr=(\S+)`)

// startUnready runs the service until it records, whatever it can see of its cluster.
func startUnready(t *testing.T, args []string) (*lockedBuilder, func() int) {
	t.Helper()
	if !slices.Contains(args, "--spool-dir") {
		args = append(slices.Clone(args), "--spool-dir", t.TempDir())
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := &lockedBuilder{}
	code := make(chan int, 1)
	go func() { code <- executeCommand(ctx, args, io.Discard, log) }()
	stop := sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { _ = stop() })
	require.Eventually(t, func() bool { return address.MatchString(log.String()) }, 2*time.Minute, 5*time.Millisecond, log)
	return log, stop
}

// lockedBuilder is a text that is read while it is written.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
