package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
)

// unpackBundle unpacks an archive with the tools that people use, checks its digests, and returns its files by name.
func unpackBundle(t *testing.T, archive string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir, "--strip-components=1").CombinedOutput()
	require.NoError(t, err, string(out))
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "sha256sums.txt")
	check.Dir = dir
	out, err = check.CombinedOutput()
	require.NoError(t, err, string(out))
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		if name != "sha256sums.txt" {
			require.Contains(t, string(out), name+": OK")
		}
		return err
	}))
	return files
}

// writeText writes a file of a test and returns its path.
func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestSupportBundle collects all parts of an evictrail that runs.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const cluster = "b-dual-retry-loop-v1.8"
	database := storetest.NewURL(t)
	playBuiltin(t, database, cluster)
	standing := serveStandingCluster(t, "k-blocked-slot", &rights{})
	args := []string{"--kubeconfig", writeKubeconfig(t, standing), "--cluster", cluster, "--database-url", database}
	running := startRun(t, append([]string{"run", "--listen", "127.0.0.1:0"}, args...), nil)
	log := writeText(t, "log", strings.Repeat("line\n", 10_000)+"the last one\n")
	archive := filepath.Join(t.TempDir(), "b.tar.gz")
	args = append([]string{
		"support-bundle", "--listen", strings.TrimPrefix(running.base, "http://"), "--spool-dir", t.TempDir(),
		"--output", archive, "--log", log, "--vm", "demo/vm-d", "--at", "2026-11-21T00:45:07Z",
	}, args...)
	code, out, stderr := runCommand(t, args...)
	require.Equal(t, exitFound, code, stderr)
	require.Empty(t, out)
	require.Contains(t, stderr, "schema.txt: collected\n")
	require.Contains(t, stderr, "wrote "+archive)
	info, err := os.Stat(archive)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	files := unpackBundle(t, archive)
	readme := files["README.txt"]
	require.NotContains(t, readme, "left out")
	for _, name := range []string{
		"version.txt", "config.yaml", "doctor.txt", "doctor.json", "schema.txt", "schema-diff.txt", "metrics.txt", "log.txt",
		"vm/why.txt", "vm/why.json", "vm/why-not.json", "vm/events.jsonl", "vm/facts.jsonl",
	} {
		require.NotEmpty(t, files[name], name)
		require.Contains(t, readme, "\n  "+name+" ")
	}
	require.Len(t, files, 15)
	require.Contains(t, files["config.yaml"], "cluster: "+cluster+" # command line")
	require.NotContains(t, files["config.yaml"], "--log FILE")
	require.Regexp(t, `(?m)^ok +schema +version \d+, as needed`, files["doctor.txt"])
	require.Regexp(t, `(?m)^facts +\d+ `, files["schema.txt"])
	require.Contains(t, files["schema-diff.txt"], "the schema is as version")
	require.Contains(t, files["metrics.txt"], "\nevictrail_build_info{")
	require.Equal(t, 10_000, strings.Count(files["log.txt"], "\n"))
	require.True(t, strings.HasSuffix(files["log.txt"], "line\nthe last one\n"))
	_, why, _ := runCommand(t, "why", "demo/vm-d", "--at", "2026-11-21T00:45:07Z", "--verbose", "--evidence", "0",
		"--cluster", cluster, "--database-url", database)
	require.Equal(t, why, files["vm/why.txt"])
	for _, name := range []string{"doctor.json", "vm/why.json", "vm/why-not.json"} {
		require.True(t, json.Valid([]byte(files[name])), name)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(files["vm/events.jsonl"]) {
		var row struct{ VMI, Kind string }
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.Equal(t, "vm-d", row.VMI)
		kinds[row.Kind]++
	}
	require.Positive(t, kinds["evacuation_marked"])
	require.Positive(t, kinds["migration_completed"])

	code, _, stderr = runCommand(t, args...)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, archive+" is there already: choose another --output, or say --force")
	require.NoError(t, os.Chmod(archive, 0o644))
	code, _, stderr = runCommand(t, append(args, "--force")...)
	require.Equal(t, exitFound, code, stderr)
	info, err = os.Stat(archive)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	code, out, stderr = runCommand(t, append(args, "--output", "-")...)
	require.Equal(t, exitFound, code, stderr)
	require.Len(t, unpackBundle(t, writeText(t, "out", out)), 15)
	require.Equal(t, exitFound, running.stop())
}

// TestSupportBundleWithoutAnything is written though nothing answers, and says why.
func TestSupportBundleWithoutAnything(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "b.tar.gz")
	code, _, stderr := runCommand(t, "support-bundle", "--output", archive, "--cluster", "prod", "--vm", "shop/db-1",
		"--kubeconfig", writeKubeconfig(t, "http://127.0.0.1:1"), "--spool-dir", t.TempDir(),
		"--listen", "127.0.0.1:1", "--log", filepath.Join(t.TempDir(), "none"),
		"--database-url", "postgres://evictrail@127.0.0.1:1/evictrail?sslmode=disable")
	require.Equal(t, exitFound, code, stderr)
	files := unpackBundle(t, archive)
	for part, why := range map[string]string{
		"schema.txt": "database unavailable", "schema-diff.txt": "database unavailable",
		"vm/why.txt": "database unavailable", "vm/events.jsonl": "database unavailable",
		"metrics.txt": "connection refused", "log.txt": "no such file",
	} {
		require.NotContains(t, files, part)
		require.Regexp(t, `(?m)^  `+regexp.QuoteMeta(part)+`: left out: .*`+why, files["README.txt"])
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(part)+`: .*`+why, stderr)
	}
	require.Contains(t, files["doctor.txt"], "fail  database")

	code, _, stderr = runCommand(t, "support-bundle", "--output", filepath.Join(t.TempDir(), "none", "b.tar.gz"))
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "no such file or directory (--output names another file, '-' is standard output)")
	for _, wrong := range [][]string{
		{"--at", "7d"}, {"--vm", "db-1"}, {"--vm", "shop/db-1", "--at", "nope"}, {"--metrics-url", "evictrail.example"},
		{"--metrics-url", "http://evictrail.example/metrics", "--metrics-token-file", archive},
	} {
		code, _, stderr = runCommand(t, append([]string{"support-bundle", "--output", archive, "--force"}, wrong...)...)
		require.Equal(t, exitUsage, code, stderr)
	}
	require.Equal(t, files, unpackBundle(t, archive), "a command line that is refused overwrites nothing")
}

// TestSupportBundleHasNoSecrets puts a secret wherever one can be, and looks for each in all files and in what is said.
func TestSupportBundleHasNoSecrets(t *testing.T) {
	secrets := map[string]string{}
	secret := func(where string) string {
		secrets[where] = "canary-" + strings.ReplaceAll(where, " ", "-") + "/Ä&1"
		return secrets[where]
	}
	quoted := func(where string) string { return url.QueryEscape(secret(where)) }
	t.Setenv("PGPASSWORD", secret("variable of Postgres"))
	t.Setenv("MY_API_KEY", secret("another variable"))
	t.Setenv("EVICTRAIL_GRAFANA_URL", "https://u:"+quoted("variable with a URL")+"@grafana.example")
	t.Setenv("PGPASSFILE", writeText(t, "pgpass", "*:*:*:*:"+secret("pgpass")+"\n"))
	kubeconfig := writeKubeconfig(t, "http://127.0.0.1:1")
	text, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "context: {cluster: c}", "context: {cluster: c, user: u}", 1) +
		"users: [{name: u, user: {token: '" + secret("kubeconfig") + "'}}]\n")
	require.NoError(t, os.WriteFile(kubeconfig, text, 0o600))
	file := writeText(t, "evictrail.yaml", "apiVersion: evictrail.dev/v1alpha1\nkind: RunConfiguration\ncluster: prod\n"+
		"prometheus-url: https://u:"+quoted("configuration file")+"@prometheus.example\n"+
		"console-url:\n  - https://u:"+quoted("list in the file")+"@console.example/{name}\n"+
		"database-url: postgres://e@127.0.0.1:1/e?sslmode=disable&password="+quoted("database URL")+"\n")
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(secret("private key"))}))
	secrets["private key"] = base64.StdEncoding.EncodeToString([]byte(secrets["private key"]))
	password := writeText(t, "password", secret("password file")+"\n")
	tokens := writeText(t, "tokens", secret("first token")+"\n"+secret("second token")+"\n")
	log := strings.Join([]string{
		`level=WARN msg="database away" url="postgres://e:` + quoted("URL in the log") + `@db.example/e"`,
		`{"request":{"Authorization":["Bearer ` + secret("bearer in the log") + `"]},"password":"` +
			secret("password in the log") + `"}`,
		`secret: ` + secret("YAML in the log"),
		`POST /admission/` + url.PathEscape(secret("path of the observer")) + ` 200`,
		strings.Join([]string{
			"words that nothing marks:", secrets["password file"], secrets["kubeconfig"], secrets["variable of Postgres"],
			secrets["another variable"], secrets["pgpass"], base64.StdEncoding.EncodeToString([]byte(secrets["second token"])),
		}, " "),
		key,
		`and the end of it`,
	}, "\n") + "\n"
	archive := filepath.Join(t.TempDir(), "b.tar.gz")
	code, out, stderr := runCommand(t, "support-bundle", "--output", archive, "--config", file,
		"--kubeconfig", kubeconfig, "--spool-dir", t.TempDir(), "--database-password-file", password, "--audit-token-file", tokens, "--log", writeText(t, "log", log),
		"--metrics-url", "http://127.0.0.1:1/metrics?token="+quoted("URL of metrics"))
	require.Equal(t, exitFound, code, stderr)
	files := unpackBundle(t, archive)
	require.Contains(t, files["log.txt"], "and the end of it")
	require.Contains(t, files["log.txt"], "words that nothing marks: xxxxx xxxxx xxxxx xxxxx xxxxx xxxxx\n")
	require.Contains(t, files["config.yaml"], "prometheus.example")
	require.Contains(t, files["config.yaml"], "grafana-url")
	files["standard output"], files["standard error"] = out, stderr
	require.Len(t, secrets, 18)
	for where, value := range secrets {
		quoted, err := json.Marshal(value)
		require.NoError(t, err)
		forms := []string{
			value, url.QueryEscape(value), url.PathEscape(value), strings.Trim(string(quoted), `"`), base64.StdEncoding.EncodeToString([]byte(value)),
		}
		if where != "private key" {
			forms = append(forms, "canary-"+strings.ReplaceAll(where, " ", "-"))
		}
		for name, text := range files {
			for _, form := range forms {
				require.NotContains(t, text, form, "%s: secret of %s", name, where)
			}
		}
	}
}

// TestSupportMetrics reads metrics over TLS: of the evictrail whose certificate is a setting, and with a token of
// another.
func TestSupportMetrics(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Authorization") != "Bearer letmein" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("evictrail_up 1\n"))
	}))
	t.Cleanup(server.Close)
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	cert := writeText(t, "tls.crt", string(pem.EncodeToMemory(block)))
	token := writeText(t, "token", "letmein\n")
	elsewhere := server.URL + "/metrics"
	listen := &listenFlags{listen: "0.0.0.0" + strings.TrimPrefix(server.URL, "https://127.0.0.1")}
	for name, c := range map[string]struct {
		asks   metricsFlags
		serves tlsFlags
		want   string // in the error; empty: they are read
	}{
		"of these settings":   {metricsFlags{tokenFile: token}, tlsFlags{certFile: cert}, ""},
		"elsewhere":           {metricsFlags{elsewhere, cert, token}, tlsFlags{}, ""},
		"without a token":     {metricsFlags{elsewhere, cert, ""}, tlsFlags{}, "name a token that may read it with --metrics-token"},
		"certificate unknown": {metricsFlags{elsewhere, "", token}, tlsFlags{}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := c.asks.fetchMetrics(t.Context(), listen, &c.serves, &out)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "evictrail_up 1\n", out.String())
		})
	}
}

// TestSchemaValidate finds what was changed, as a reader too, and does not compare with a schema of another version.
func TestSchemaValidate(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	owner, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(owner.Close)
	storetest.MakeRoles(t, owner)
	for _, by := range []string{url, url + "&options=-c%20role%3Devictrail_reader"} {
		code, out, stderr := runCommand(t, "schema", "validate", "--database-url", by)
		require.Equal(t, exitFound, code, stderr)
		require.Regexp(t, `^the schema is as version \d+ has it\n$`, out)
	}
	execSQL(t, url, `DROP INDEX evictrail.events_by_seq; ALTER TABLE evictrail.loops ADD COLUMN note text;
		ALTER TABLE evictrail.acknowledged ALTER COLUMN replica TYPE varchar(9)`)
	const want = `different  column      evictrail.acknowledged.replica
           expected    text NOT NULL
           found       character varying(9) NOT NULL
extra      column      evictrail.loops.note
missing    index       evictrail.events.events_by_seq
`
	for _, by := range []string{url, url + "&options=-c%20role%3Devictrail_reader"} {
		code, out, stderr := runCommand(t, "schema", "validate", "--database-url", by)
		require.Equal(t, exitError, code)
		require.Equal(t, want, out)
		require.Contains(t, stderr, "3 differences from schema version ")
	}
	_, out, _ := runCommand(t, "schema", "validate", "--database-url", url, "-o", "json")
	var answer struct {
		Version     int64
		Differences []struct{ Verdict, Kind, Name, Expected, Found string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.Len(t, answer.Differences, 3)
	require.Contains(t, answer.Differences[2].Expected, "CREATE INDEX events_by_seq ON ONLY evictrail.events USING btree")
	execSQL(t, url, "INSERT INTO public.evictrail_schema (version_id, is_applied) VALUES (999, true)")
	code, out, stderr := runCommand(t, "schema", "validate", "--database-url", url)
	require.Equal(t, exitError, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "the database is at version 999")
	code, _, stderr = runCommand(t, "schema", "validate", "--database-url", storetest.EmptyURL(t))
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "run `evictrail schema up`")
	code, _, _ = runCommand(t, "schema", "validate", "--database-url", url, "-o", "yaml")
	require.Equal(t, exitUsage, code)
}
