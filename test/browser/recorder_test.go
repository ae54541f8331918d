package browser_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/ports"
)

// saidWithin is how soon everything has to report what went wrong.
const saidWithin = 30 * time.Second

// apiServer is an API server with HTTPS at the end of a recording. It refuses requests whose path contains refused.
func apiServer(t *testing.T, refused string) (kubeconfig string) {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), "k-blocked-slot", nil)
	require.NoError(t, err)
	recorded := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		recorded.Release(i)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused == "" || !strings.Contains(r.URL.Path, refused) {
			recorded.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden: %s","reason":"Forbidden","code":403}`, r.URL.Path)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	kubeconfig = filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, server.URL, ca), 0o600))
	return kubeconfig
}

// recorder is a running "evictrail run".
type recorder struct {
	*testing.T
	args []string // of run, without its address
	url  string
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

// startRecorder starts the built program. An empty cluster is one whose name it has to ask for.
func startRecorder(t *testing.T, cluster, kubeconfig, database string, more ...string) *recorder {
	t.Helper()
	address := ports.Free(t)
	r := &recorder{T: t, url: "http://" + address, log: &bytes.Buffer{}, args: append([]string{
		"--cluster", cluster, "--kubeconfig", kubeconfig, "--database-url", database, "--spool-dir", filepath.Join(t.TempDir(), "spool"), "--replica", "one",
	}, more...)}
	r.cmd = exec.Command(program, append([]string{"run", "--listen", address}, r.args...)...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log)
		}
	})
	require.Eventually(t, func() bool { status, _ := r.get("/livez"); return status == http.StatusOK }, saidWithin, 50*time.Millisecond)
	return r
}

func (r *recorder) stop() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(20*time.Second, func() { _ = r.cmd.Process.Kill() })
		defer late.Stop()
		_ = r.cmd.Wait()
	}
}

// get returns the status, and the body with the headers before it.
func (r *recorder) get(path string) (int, string) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+path, nil)
	require.NoError(r, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	var header bytes.Buffer
	require.NoError(r, answer.Header.Write(&header))
	return answer.StatusCode, header.String() + "\n" + string(body)
}

// awaitRecording waits until the recorder is ready and a loop is derived.
func (r *recorder) awaitRecording() {
	r.Helper()
	cluster := r.args[1]
	require.Eventually(r, func() bool {
		_, ready := r.get("/readyz")
		_, loops := r.get("/api/v1/loops?cluster=" + cluster)
		return strings.HasSuffix(ready, "\nok\n") && strings.Contains(loops, `"loop_id"`)
	}, saidWithin, 100*time.Millisecond)
}

// alterDatabase changes a setting of a database, and ends the sessions that have the old one.
func alterDatabase(t *testing.T, database, change string) {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	execSQL(t, u.String(), "ALTER DATABASE "+name+" "+change, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
}

// deferred is a text that is made when it is written.
type deferred func() string

func (d deferred) String() string { return d() }

// evictrailSays returns what a command writes, to standard output and standard error.
func evictrailSays(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // lists without rows, and a doctor who finds something, end with a status of their own
	return out.String()
}

func execSQL(t *testing.T, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for _, sql := range statements {
		_, err = conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// situation is something that keeps evictrail from recording, and what is to be said about it.
type situation struct {
	name    string
	state   string // in the API
	label   string // on pages and in warnings
	why     string // an expression for the reason
	readyz  string // an expression for the answer of /readyz; empty: state, since when, and why
	doctor  string // an expression for the output of doctor
	cluster string // whose page is looked at

	start func(t *testing.T) *recorder // returns what is asked
}

func listSituations() []situation {
	return []situation{
		{
			name: "an API server that refuses everything", state: "not_recording", label: "Not recording", cluster: "prod",
			why: `Cannot watch 9 of 9 resources since \S+ \S+ \(no right\): `, doctor: `(?m)^fail  record .*not recording since .*Cannot watch 9 of 9`,
			start: func(t *testing.T) *recorder {
				t.Helper()
				return startRecorder(t, "prod", apiServer(t, "/"), storetest.NewURL(t))
			},
		},
		{
			name: "an API server that does not even answer who it is", state: "not_recording", label: "Not recording",
			why: `The cluster is not known yet: its API server does not answer, or does not allow get on the namespace kube-system\.`, doctor: `(?m)^fail  cluster .*forbidden`,
			start: func(t *testing.T) *recorder {
				t.Helper()
				return startRecorder(t, "", apiServer(t, "/"), storetest.NewURL(t))
			},
		},
		{
			name: "the lease refused", state: "no_leader", label: "No leader", cluster: "prod",
			why: `No replica has derived since \S+ \S+: no right to the lease ns/evictrail`, doctor: `(?m)^fail  record .*no leader since .*no right to the lease`,
			start: func(t *testing.T) *recorder {
				t.Helper()
				return startRecorder(t, "prod", apiServer(t, "/leases"), storetest.NewURL(t), "--leader-elect", "--leader-lease", "ns/evictrail")
			},
		},
		{
			name: "a database that is read-only", state: "database_read_only", label: "Database not writable", cluster: "prod",
			why: `The database has taken no writes since \S+ \S+: it is read-only`, doctor: `(?m)^fail  database .*read-only for `,
			start: func(t *testing.T) *recorder {
				t.Helper()
				database := storetest.NewURL(t)
				r := startRecorder(t, "prod", apiServer(t, ""), database)
				r.awaitRecording()
				alterDatabase(t, database, "SET default_transaction_read_only = on")
				return r
			},
		},
		{
			name: "a recorder that stopped an hour ago", state: "not_recording", label: "Not recording", cluster: "stopped",
			why: `No sign of life since \S+ \S+: the recorder has stopped, or cannot write to the database`, readyz: `\nok\n$`, // of another cluster
			doctor: `(?m)^fail  record .*not recording since .*No sign of life`,
			start: func(t *testing.T) *recorder {
				t.Helper()
				database, kubeconfig := storetest.NewURL(t), apiServer(t, "")
				stopped := startRecorder(t, "stopped", kubeconfig, database)
				stopped.awaitRecording()
				stopped.stop()
				execSQL(t, database,
					"UPDATE evictrail.clusters SET alive_at = now() - interval '1 hour', last_event_at = now() - interval '2 hours' WHERE cluster = 'stopped'",
					"UPDATE evictrail.recorders SET alive_at = now() - interval '1 hour' WHERE cluster = 'stopped'")
				r := startRecorder(t, "other", kubeconfig, database)
				r.awaitRecording()
				r.args = stopped.args // for the doctor
				return r
			},
		},
	}
}

// allIsWell are the words by which pages report that nothing is wrong.
var allIsWell = []string{"All clear", "Nothing is open", "No open loops", "No stuck evacuations", "No drains in progress", "None", "Nothing in the last", "No migrations finished", "0 open loop", "0 stuck"}

// TestEverythingSaysWhatIsWrong runs the built program in each situation: within 30 s /readyz, the API, lists of gaps, doctor and each page
// report it, and no page reports that all is well. With EVICTRAIL_SCREENSHOTS it takes pictures of the pages, in light and dark.
func TestEverythingSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	pictures := os.Getenv("EVICTRAIL_SCREENSHOTS")
	axe, err := os.ReadFile(filepath.Join(root, "bin/axe/package/axe.min.js"))
	require.NoError(t, err, "run hack/ensure-axe.sh")
	for _, s := range listSituations() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := s.start(t)
			until := time.Now().Add(saidWithin)
			says := func(what, pattern string, ask func() string) {
				t.Helper()
				text := ""
				require.Eventually(t, func() bool { text = ask(); return regexp.MustCompile(pattern).MatchString(text) }, max(time.Until(until), 5*time.Second), 200*time.Millisecond,
					"%s: expected %s, got %s", what, pattern, deferred(func() string { return text }))
			}
			if s.readyz == "" {
				s.readyz = `\n` + s.state + ` since \S+\n` + s.why
			}
			says("/readyz", s.readyz, func() string { _, body := r.get("/readyz"); return body })
			of, listed := "", []string{"gaps", "--server", r.url}
			if s.cluster != "" {
				of, listed = "cluster="+s.cluster, append(listed, "--cluster", s.cluster)
			}
			says("API", `"state": "`+s.state+`"(.|\n)*`+s.why, func() string { _, body := r.get("/api/v1/recorders?" + of); return body })
			says("API, lists", `(?m)^Evictrail-Recorder-State: `+s.state, func() string { _, body := r.get("/api/v1/loops?" + of); return body })
			warning := regexp.QuoteMeta(strings.ToUpper(s.label)+": ") + s.why
			says("gaps", warning, func() string { return evictrailSays(t, listed...) })
			says("doctor", s.doctor, func() string { return evictrailSays(t, append([]string{"doctor"}, r.args...)...) })

			for _, l := range []look{desk, phone, {width: desk.width, height: desk.height, dark: true}} {
				b := newTab(t, r.url, l)
				b.expectTrouble("404")
				for i, address := range []string{"/?" + of, "/", "/vms/demo/nbr-2?" + of, "/search?q=vm-&" + of, "/whatif?" + of, "/vms/demo/nobody?" + of} {
					b.openPage(address)
					banner := b.elementText("#recorder")
					require.Contains(t, banner, s.label, address)
					require.Regexp(t, s.why, banner, address)
					require.Empty(t, evaluateJS[[]string](b, misplaced+`(%d)`, l.width), address)
					if i < 3 {
						b.checkAccessibility(string(axe))
					}
					if pictures != "" && i < 3 {
						b.saveScreenshot(filepath.Join(pictures, fmt.Sprintf("%s_%d_%s.png", strings.ReplaceAll(s.name, " ", "-"), i, l)))
					}
					if i > 0 {
						continue
					}
					require.Contains(t, banner, "What to do: ")
					page := strings.Join(strings.Fields(b.elementText("main")), " ")
					for _, claim := range allIsWell {
						require.NotContains(t, page, claim)
					}
				}
			}
		})
	}
}

// TestOpenPagesFollowTheState has a page open while the database becomes read-only, takes writes again, and evictrail ends.
func TestOpenPagesFollowTheState(t *testing.T) {
	t.Parallel()
	database := storetest.NewURL(t)
	r := startRecorder(t, "prod", apiServer(t, ""), database)
	r.awaitRecording()
	b := newTab(t, r.url, desk)
	b.openPage("/")
	b.markPage()
	b.awaitCondition(`document.querySelector("#recorder").textContent.trim().startsWith("Recording; last event")`)
	require.Contains(t, b.elementText("main"), "No drains in progress")

	alterDatabase(t, database, "SET default_transaction_read_only = on")
	b.awaitCondition(`document.querySelector("#recorder b")?.textContent === "Database not writable"`)
	b.awaitCondition(`!document.querySelector("main").textContent.includes("No drains in progress")`)
	alterDatabase(t, database, "RESET default_transaction_read_only")
	b.awaitCondition(`document.querySelector("#recorder").textContent.trim().startsWith("Recording; last event")`)
	b.awaitCondition(`document.querySelector("main").textContent.includes("No drains in progress")`)

	b.expectTrouble("net::ERR_", "/api/v1/stream", "/recorder")
	r.stop()
	b.awaitCondition(`document.querySelector("#recorder").textContent.startsWith("Evictrail has not answered since ")`)
	require.True(t, evaluateJS[bool](b, `window.stillHere === true`), "it was not loaded again")
}
