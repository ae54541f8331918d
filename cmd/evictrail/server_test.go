package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// serveAPI serves a database until the test ends, below a path as a proxy would.
func serveAPI(t *testing.T, url string) string {
	t.Helper()
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	server := httptest.NewServer(http.StripPrefix("/below", api.Server{Readers: api.ForAll(answers.Reader{Reader: s.Reader}), Failed: func(err error) { t.Error(err) }}.Handler()))
	t.Cleanup(func() { server.Close(); s.Close() })
	return server.URL + "/below/"
}

// TestServerAnswersAsTheDatabase asks everything both ways and compares what is printed, to the byte, and the exit statuses.
func TestServerAnswersAsTheDatabase(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown", "k-blocked-slot")
	server := serveAPI(t, url)
	const cluster = "b-dual-retry-loop-v1.8"
	questions := [][]string{
		{"why", "demo/vm-d", "--cluster", cluster, "--at", "2026-11-21T00:45:07Z"},
		{"why", "demo/vm-d", "--cluster", cluster, "--at", "2026-11-21T00:45:07Z", "-o", "json"},
		{"why", "demo/vm-d", "--cluster", cluster},
		{"why", "demo/nobody"},
		{"search", "vm-d"}, {"search", "worker-2", "--cluster", "c-node-drain", "-o", "json"}, {"search", "nobody"}, {"search", "kubevirt-evac"}, {"search", "vm", "--cluster", "nowhere"},
		{"clusters"}, {"clusters", "--cluster", "nowhere"},
		{"why", "demo/vm-d", "--cluster", "nowhere"},
		{"why", "demo"},
		{"why", "demo/vm-d/x"},
		{"why-not", "demo/nbr-1", "--cluster", "k-blocked-slot"},
		{"why-not", "demo/nbr-1", "--cluster", "k-blocked-slot", "-o", "json"},
		{"why", "node", "worker-2", "--cluster", "c-node-drain", "--at", "2026-11-21T00:34:05Z"},
		{"why", "node", "worker-2", "--cluster", "c-node-drain", "-o", "json"},
		{"why-not", "node", "worker-2", "--cluster", "c-node-drain", "--at", "2026-11-21T00:34:05Z"},
		{"why-not", "node", "worker-2", "--cluster", "c-node-drain", "--at", "2026-11-21T00:34:05Z", "-o", "json"},
		{"why-not", "node", "worker-2"}, // several clusters
		{"why-not", "node", "nowhere"},
		{"why", "demo/vm-d", "--at", "yesterday"},
		{"whatif"}, // several clusters
		{"whatif", "--cluster", cluster},
		{"advise", "--cluster", cluster, "--weeks", "2"},
		{"alerts", "backtest", "--since", "2026-11-20"}, // several clusters
		{"alerts", "backtest", "--since", "2026-11-20", "--cluster", cluster},
		{"alerts", "backtest", "--since", "2026-11-20", "--cluster", "nowhere"},
		{"alerts", "backtest", "--since", "2026-11-20", "--until", "2026-11-20T01:00:00Z", "--cluster", cluster},
		{
			"alerts", "backtest", "--since", "2026-11-20", "--cluster", "g-churn-cooldown", "--rule", "EvictrailVMPingPong",
			"--threshold", "1,2=4", "--for", "0s,1m30s", "--step", "15s", "--evacuation-target", "99.5",
		},
		{
			"alerts", "backtest", "--since", "2026-11-20", "--cluster", "g-churn-cooldown", "--rule", "EvictrailVMPingPong",
			"--threshold", "1", "--for", "1m30s", "--until", "2026-11-21T00:40:00.123456Z", "-o", "json",
		},
		{"whatif", "--cluster", cluster, "--policy", "cooldown=on", "--policy", "node-limit=1 keep-mark", "-o", "json"},
		{"whatif", "--cluster", "g-churn-cooldown", "--sweep", "base=30s..5m/30s", "--keep-mark", "--cooldown", "cap=1h", "--since", "30d", "-o", "csv"},
		{"whatif", "--cluster", cluster, "--node", "worker-2", "-n", "demo", "--since", "2026-11-21", "--until", "2026-11-21T00:44:00Z"},
		{"whatif", "--cluster", cluster, "--until", "2020-01-01"},
		{"whatif", "--cluster", "nowhere"},
		{"settings"},
		{"settings", "--cluster", cluster, "--at", "2026-11-21T00:45:07Z", "-o", "json"},
		{"settings", "nope"},
		{"timeline", "--vm", "demo/vm-d", "--limit", "3"},
		{"timeline", "--since", "2026-11-21", "--until", "2026-11-22", "--limit", "0"},
		{"timeline", "--since", "2020-01-01", "--limit", "0"},
		{"timeline", "--since", "2026-11-21T00:44:00Z", "--until", "2040-01-01", "--limit", "0", "-o", "json"},
		{"timeline", "--since", "2026-11-21T00:44:00Z", "--until", "2040-01-01", "--limit", "0", "-o", "csv"},
		{"timeline", "--until", "2020-01-01"},
		{"timeline", "--limit", "1500"}, // more than a page
		{"requests", "-n", "demo", "--vm", "web-3"},
		{"evacuations", "--node", "worker-1", "--cluster", cluster},
		{"evacuations", "--cluster", "nowhere"},
		{"gaps", "--cluster", "nowhere", "-o", "json"},
	}
	for _, noun := range [][]string{{"requests"}, {"evacuations"}, {"migrations"}, {"cooldowns"}, {"loops"}, {"drains"}, {"drains", "--blockers"}, {"gaps"}, {"timeline"}} {
		for _, more := range [][]string{{}, {"-o", "json"}, {"-o", "csv"}, {"--limit", "0"}, {"--limit", "0", "-o", "json"}, {"--limit", "0", "-o", "csv"}, {"--cluster", "g-churn-cooldown"}} {
			questions = append(questions, append(append([]string{}, noun...), more...))
		}
	}
	atOnce := make(chan struct{}, 2) // one caller may ask two questions that take long at once
	for _, q := range questions {
		t.Run(strings.Join(q, " "), func(t *testing.T) {
			t.Parallel()
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			code, out, errs := runCommand(t, append(q, "--database-url", url)...)
			gotCode, gotOut, gotErrs := runCommand(t, append(q, "--server", server)...)
			require.Equal(t, code, gotCode, gotErrs)
			require.Equal(t, out, gotOut)
			require.Equal(t, errs, gotErrs)
		})
	}
}

// TestServerListsWhatIsLarge gathers rows of which a page of the usual size is too large, and cells that CSV could change.
func TestServerListsWhatIsLarge(t *testing.T) { //nolint:paralleltest // beside others the statement that reads all of it could take longer than one may
	storetest.SkipInShort(t)
	url := playedURL(t, "c-node-drain")
	execSQL(t, url, `UPDATE evictrail.events SET detail = jsonb_build_object('text', E'a\r\nb, "c"\r' || repeat('x', 300000)), evidence = E'\'=a\r\nb, "c"\r'
		WHERE id IN (SELECT id FROM evictrail.events ORDER BY occurred_at LIMIT 50)`)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: serveAPI(t, url)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	want, err := s.ListJSON(t.Context(), trail.ViewEvents, trail.Query{})
	require.NoError(t, err)
	got, err := c.ListJSON(t.Context(), trail.ViewEvents, trail.Query{})
	require.NoError(t, err)
	require.Len(t, got.Rows, len(want.Rows))
	for i := range want.Rows {
		require.Equal(t, sha256.Sum256(want.Rows[i]), sha256.Sum256(got.Rows[i]), i)
	}
	var wantText, gotText bytes.Buffer
	table, err := s.ListText(t.Context(), trail.ViewEvents, trail.Query{})
	require.NoError(t, err)
	require.NoError(t, api.WriteCSV(&wantText, table))
	table, err = c.ListText(t.Context(), trail.ViewEvents, trail.Query{})
	require.NoError(t, err)
	require.NoError(t, api.WriteCSV(&gotText, table))
	require.Equal(t, sha256.Sum256(wantText.Bytes()), sha256.Sum256(gotText.Bytes()))
}

// caOf writes the certificate that a server shows.
func caOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	return writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestWhomToAsk(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "<html>hello") }))
	t.Cleanup(other.Close)
	guarded := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintln(w, `{"title":"Unauthorized","status":401,"detail":"send a bearer token"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintln(w, `[{"at":"2026-11-21T00:00:00Z","sentence":"It was let in."}]`)
	}))
	t.Cleanup(guarded.Close)
	ca, token, empty := caOf(t, guarded), writeFile(t, []byte("secret\nother\n")), writeFile(t, nil)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"both", []string{"--server", other.URL, "--database-url", "postgres://x/y"}, exitUsage, "give one of them"},
		{"nobody", []string{"--database-url", ""}, exitUsage, "no database or server configured"},
		{"no URL", []string{"--server", "localhost:8080"}, exitUsage, "expected http://HOST:PORT"},
		{"a password in it", []string{"--server", "http://u:p@localhost:8080"}, exitUsage, "expected http://HOST:PORT"},
		{"away", []string{"--server", "http://127.0.0.1:1"}, exitError, "connection refused: is evictrail serving there?"},
		{"another", []string{"--server", other.URL}, exitError, "it does not answer as evictrail does (200 OK, text/html): is the URL right?"},
		{"not trusted", []string{"--server", guarded.URL}, exitError, "certificate signed by unknown authority"},
		{"no token", []string{"--server", guarded.URL, "--server-ca-file", ca}, exitError, "ask " + guarded.URL + ": send a bearer token: give it with --server-token-file, such as"},
		{"a token", []string{"--server", guarded.URL, "--server-ca-file", ca, "--server-token-file", token, "-o", "json"}, exitFound, ""},
		{"an empty token", []string{"--server", guarded.URL, "--server-token-file", empty}, exitUsage, "the first line is empty"},
		{"no CA", []string{"--server", guarded.URL, "--server-ca-file", token}, exitUsage, "expected certificates in PEM"},
		{"no file", []string{"--server", guarded.URL, "--server-ca-file", "/nowhere"}, exitUsage, "read CA of the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runCommand(t, append([]string{"timeline"}, c.args...)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
			if c.code == exitFound {
				require.Contains(t, out, "It was let in.")
			}
		})
	}
}

// TestTheEnvironmentSaysWhomToAsk prefers a flag, then the database.
func TestTheEnvironmentSaysWhomToAsk(t *testing.T) {
	storetest.SkipInShort(t)
	url := storetest.NewURL(t)
	server := serveAPI(t, url)
	t.Setenv("EVICTRAIL_SERVER", server)
	t.Setenv("EVICTRAIL_DATABASE_URL", "")
	code, _, stderr := runCommand(t, "gaps")
	require.Equal(t, exitNotFound, code, stderr)
	t.Setenv("EVICTRAIL_DATABASE_URL", "postgres://127.0.0.1:1/x")
	_, _, stderr = runCommand(t, "gaps")
	require.Contains(t, stderr, "database unavailable")
	code, _, stderr = runCommand(t, "gaps", "--server", server)
	require.Equal(t, exitNotFound, code, stderr)
	code, _, stderr = runCommand(t, "gaps", "--database-url", url)
	require.Equal(t, exitNotFound, code, stderr)
}

// TestCompletion completes names both ways, and stays silent where nobody answers.
func TestCompletion(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop-v1.8", "c-node-drain")
	server := serveAPI(t, url)
	for _, c := range []struct {
		name string
		typed,
		want []string
	}{
		{"clusters", []string{"timeline", "--cluster", "c"}, []string{"c-node-drain"}},
		{"namespaces", []string{"timeline", "--namespace", ""}, []string{"demo"}},
		{"VMs", []string{"timeline", "--vm", "demo/w"}, []string{"demo/web-1", "demo/web-2", "demo/web-3"}},
		{"VMs of a namespace", []string{"timeline", "-n", "demo", "--vm", "web-3"}, []string{"web-3"}},
		{"nodes", []string{"drains", "--node", "worker-2"}, []string{"worker-2"}},
		{"VMs of a cluster", []string{"why", "--cluster", "b-dual-retry-loop-v1.8", "demo/vm-a"}, []string{"demo/vm-a"}},
		{"nothing after a VM", []string{"why", "demo/vm-d", ""}, nil},
		{"a node of why", []string{"why", "node", "worker-3"}, []string{"worker-3"}},
		{"a node instead", []string{"why-not", "n"}, []string{"node\ta node, not a VM"}},
		{"which node", []string{"why-not", "node", "worker-3"}, []string{"worker-3"}},
		{"nothing after a node", []string{"why-not", "node", "worker-3", ""}, nil},
		{"formats", []string{"why", "-o", ""}, []string{"text", "json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"--database-url=" + url, "--server=" + server} {
				code, out, _ := runCommand(t, append([]string{"__complete", c.typed[0], way}, c.typed[1:]...)...)
				require.Equal(t, exitFound, code)
				require.Equal(t, strings.Join(append(c.want, ":4\n"), "\n"), out, way)
			}
		})
	}
	for _, way := range []string{"--database-url=postgres://127.0.0.1:1/x", "--server=http://127.0.0.1:1", "--server=x"} {
		code, out, _ := runCommand(t, "__complete", "why", way, "")
		require.Equal(t, exitFound, code)
		require.Equal(t, "node\ta node, not a VM\n:4\n", out)
	}
}

// TestCompletionEnds waits a second for a server that does not answer.
func TestCompletionEnds(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() { close(end); silent.Close() })
	began := time.Now()
	_, out, _ := runCommand(t, "__complete", "why", "--server="+silent.URL, "")
	require.Equal(t, "node\ta node, not a VM\n:4\n", out)
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestKubectlCompletes calls us as kubectl does for its plugin evictrail: by the name that completes, with what was typed.
func TestKubectlCompletes(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := playedURL(t, "c-node-drain")
	self, err := os.Executable()
	require.NoError(t, err)
	plugin := filepath.Join(t.TempDir(), "kubectl_complete-evictrail")
	require.NoError(t, os.Symlink(self, plugin))
	cmd := exec.CommandContext(t.Context(), plugin, "why", "demo/web")
	cmd.Env = append(os.Environ(), asCommand+"=1", "EVICTRAIL_DATABASE_URL="+url)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "demo/web-1\ndemo/web-2\ndemo/web-3\n:4\n", string(out))
}
