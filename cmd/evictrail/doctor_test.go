package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
)

// patient is a cluster that stands still, with what a doctor asks beyond what a recording serves.
type patient struct {
	http.Handler
	denied   func(verb, resource string) bool // rights that are lacking; nil: none
	ahead    time.Duration                    // of its clock
	kubeVirt string                           // version of KubeVirt that it reports; empty: the recording's
	webhooks string                           // names of webhooks that are installed
	policy   string                           // of the descheduler, in the ConfigMap kube-system/descheduler
}

func (p *patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(p.ahead).UTC().Format(http.TimeFormat))
	switch {
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		var review struct {
			Spec struct {
				Attributes struct{ Verb, Resource string } `json:"resourceAttributes"`
			} `json:"spec"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		a := review.Spec.Attributes
		_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, p.denied == nil || !p.denied(a.Verb, a.Resource))
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		_, _ = fmt.Fprint(w, `{"metadata":{"name":"kube-system","uid":"5f1e0c55-0000-4000-8000-000000000001","resourceVersion":"1"}}`)
	case r.URL.Path == "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations":
		_, _ = fmt.Fprintf(w, `{"items":[{"metadata":{"name":"observer"},"webhooks":[{"name":%q}]}]}`, p.webhooks)
	case r.URL.Path == "/api/v1/namespaces/kube-system/configmaps":
		item, _ := json.Marshal(map[string]any{"data": map[string]string{"policy.yaml": p.policy}})
		_, _ = fmt.Fprintf(w, `{"items":[%s]}`, item)
	case p.kubeVirt != "" && r.URL.Path == "/apis/kubevirt.io/v1/kubevirts":
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"kubevirt","namespace":"kubevirt","uid":"u","resourceVersion":"8"},"status":{"observedKubeVirtVersion":%q}}]}`, p.kubeVirt)
	default:
		p.Handler.ServeHTTP(w, r)
	}
}

// servePatient takes a patient in and returns the kubeconfig to see it.
func servePatient(t *testing.T, p *patient) (kubeconfig, url string) {
	t.Helper()
	p.Handler = stillCluster(t, "g-churn-cooldown").Config.Handler
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL), server.URL
}

// volatile is what differs from run to run.
var volatile = []struct {
	is   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`, in \d+(\.\d+)?(ms|s|µs)`), ", in TIME"},
	{regexp.MustCompile(`Postgres \d[^,]*,`), "Postgres N,"},
	{regexp.MustCompile(`answers as \S+:`), "answers as USER:"},
	{regexp.MustCompile(`\d+\.\d MiB`), "N MiB"},
	{regexp.MustCompile(`(about \d+ facts|facts not counted yet)`), "FACTS"},
	{regexp.MustCompile(`version \d+, (as needed|this evictrail needs \d+)`), "version N, $1"},
	{regexp.MustCompile(`until \d{4}-\d\d-\d\d`), "until DATE"},
	{regexp.MustCompile(`up to \d{4}-\d\d-\d\dT[0-9:]+Z`), "up to TIME"},
	{regexp.MustCompile(`needs \d+`), "needs N"},
	{regexp.MustCompile(`(9m59|10m0)(\.\d)?s ahead`), "10m ahead"},
}

// runDoctor runs the doctor and returns what it says, without what differs from run to run.
func runDoctor(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	code, out, stderr := runCommand(t, append([]string{"doctor"}, args...)...)
	require.NotContains(t, stderr, "unknown")
	for _, v := range volatile {
		out = v.is.ReplaceAllString(out, v.with)
	}
	return code, out
}

// TestDoctor looks at a cluster and a database where all is well, and at what can be wrong with either.
func TestDoctor(t *testing.T) {
	t.Parallel()
	policy, err := os.ReadFile(recordingDir("g-churn-cooldown") + "/descheduler-policy.yaml")
	require.NoError(t, err)
	well := func() *patient { return &patient{webhooks: observerWebhook, policy: string(policy)} }
	for name, c := range map[string]struct {
		patient  *patient
		database string   // filled, new, empty; else its URL
		args     []string // HOST is the cluster's
		code     int
	}{
		"all is well": {
			patient: well(), database: "filled",
			args: []string{"--cluster=prod", "--descheduler-configmap=kube-system/descheduler", "--descheduler-metrics-url=HOST" + recording.ScrapePath},
		},
		"nothing was recorded yet": {patient: well(), database: "new"},
		"no schema":                {patient: well(), database: "empty"},
		"database away":            {patient: well(), database: "postgres://evictrail@127.0.0.1:1/evictrail?sslmode=disable", args: []string{"--cluster=prod"}, code: exitError},
		"rights lacking": {
			patient: &patient{denied: func(verb, resource string) bool {
				return verb == "watch" && resource == "pods" || resource == "namespaces"
			}},
			database: "new", args: []string{"--auth=none", "--leader-elect", "--leader-lease=evictrail/evictrail"}, code: exitError,
		},
		"clock ahead":  {patient: &patient{ahead: 10 * time.Minute}, database: "new", args: []string{"--cluster=prod"}},
		"old KubeVirt": {patient: &patient{kubeVirt: "v1.6.0"}, database: "new", args: []string{"--cluster=prod"}},
		"new KubeVirt": {patient: &patient{kubeVirt: "v1.9.0"}, database: "new", args: []string{"--cluster=prod"}},
		"policy that cannot be read": {
			patient: &patient{policy: "profiles: ["}, database: "new", args: []string{"--cluster=prod", "--descheduler-configmap=kube-system/descheduler"}, code: exitError,
		},
		"sources away": {
			patient: &patient{webhooks: "another"}, database: "new", code: exitError,
			args: []string{
				"--cluster=prod", "--eviction-observer", "--admission-listen=127.0.0.1:1", "--listen=127.0.0.1:1", "--audit-file=none.log", "--descheduler-metrics-url=http://127.0.0.1:1/metrics",
				"--prometheus-url=http://127.0.0.1:1",
				"--descheduler-policy=" + recordingDir("a-descheduler-eviction-success") + "/descheduler-policy.yaml",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeconfig, host := servePatient(t, c.patient)
			dir := t.TempDir()
			args := []string{"--kubeconfig", kubeconfig, "--database-url", databaseOf(t, c.database), "--spool-dir", dir}
			for _, arg := range c.args {
				args = append(args, strings.Replace(arg, "HOST", host, 1))
			}
			code, text := runDoctor(t, args...)
			text = strings.ReplaceAll(text, dir, "DIR")
			require.Equal(t, c.code, code, text)
			file := filepath.Join("testdata", "doctor", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
				return
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
		})
	}
}

// databaseOf returns a database: filled with a recording that has just ended, with a schema alone, without, or the one that is named.
func databaseOf(t *testing.T, which string) string {
	t.Helper()
	switch which {
	case "new":
		return storetest.NewURL(t)
	case "empty":
		return storetest.EmptyURL(t)
	case "filled":
		url := storetest.NewURL(t)
		playBuiltin(t, url, "g-churn-cooldown", "--cluster", "prod")
		s, err := store.Open(t.Context(), url, "")
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.EnsureMonths(t.Context(), nowUTC()))
		require.NoError(t, s.Alive(t.Context(), "prod", nowUTC()))
		return url
	}
	return which
}

// TestDoctorWithoutCluster goes on to the database where the cluster is away.
func TestDoctorWithoutCluster(t *testing.T) {
	t.Parallel()
	code, text := runDoctor(t, "--kubeconfig", writeKubeconfig(t, "http://127.0.0.1:1"), "--cluster", "prod", "--database-url", storetest.NewURL(t))
	require.Equal(t, exitError, code)
	require.Regexp(t, `(?m)^fail  cluster +http://HOST does not answer: .*connection refused`, text)
	require.Regexp(t, `(?m)^ok +database rights`, text)
	code, text = runDoctor(t, "--kubeconfig", "/none", "--output", "json")
	require.Equal(t, exitError, code)
	var out struct {
		Checks []check
		Failed int
	}
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	require.Equal(t, 1, out.Failed)
	require.Equal(t, "cluster", out.Checks[0].Subject)
	code, _ = runDoctor(t, "--output", "yaml")
	require.Equal(t, exitUsage, code)
}

// TestDoctorOfRoles looks at the database as roles that have each right but one, and with all that `evictrail schema roles` grants.
func TestDoctorOfRoles(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	kubeconfig, _ := servePatient(t, &patient{})
	name := "doctor_" + strings.ToLower(regexp.MustCompile(`evictrail_test_[0-9_]+`).FindString(url))
	execSQL(t, url, store.Roles())
	execSQL(t, url, "CREATE ROLE "+name+" LOGIN PASSWORD 'x'")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), url)
		require.NoError(t, err)
		_, err = conn.Exec(context.Background(), "DROP ROLE "+name)
		require.NoError(t, errors.Join(err, conn.Close(context.Background())))
	})
	as, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("x\n"), 0o600))
	see := func() (int, string) {
		return runDoctor(t, "--kubeconfig", kubeconfig, "--cluster", "prod", "--database-password-file", password,
			"--database-url", strings.Replace(url, as.User+"@", name+"@", 1))
	}
	code, text := see()
	require.Equal(t, exitError, code)
	require.Regexp(t, `(?m)^fail  database rights +lacking: USAGE on schema evictrail_v1, USAGE on schema evictrail, .* and \d+ more -> run the SQL of .evictrail schema roles.`, text, "a role without any right")

	execSQL(t, url, "GRANT evictrail_writer TO "+name)
	code, text = see()
	require.Equal(t, exitFound, code, text)
	require.Regexp(t, `(?m)^ok    database rights +all that a writer needs$`, text)

	execSQL(t, url, "REVOKE INSERT ON evictrail.events FROM evictrail_writer")
	code, text = see()
	execSQL(t, url, "GRANT INSERT ON evictrail.events TO evictrail_writer")
	require.Equal(t, exitError, code)
	require.Regexp(t, `(?m)^fail  database rights +lacking: INSERT on evictrail.events -> .*grant evictrail_writer to `+name+`$`, text)
	require.Equal(t, 1, strings.Count(text, "database rights"))
}

// TestDoctorWritesNothing counts what is in the database before and after.
func TestDoctorWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "a-descheduler-eviction-success")
	before := readPublicViews(t, url)
	kubeconfig, _ := servePatient(t, &patient{})
	code, text := runDoctor(t, "--kubeconfig", kubeconfig, "--cluster", "a-descheduler-eviction-success", "--database-url", url)
	require.Equal(t, exitFound, code, text)
	require.Equal(t, before, readPublicViews(t, url))
}
