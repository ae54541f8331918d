package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/store/storetest"
)

// recordBuiltin serves a built-in recording and records it, in its own time, into a folder.
func recordBuiltin(t *testing.T, name string, options recording.ServerOptions, redactor *collector.Redactor) string {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, collector.Check)
	require.NoError(t, err)
	server := recording.NewServer(rec, options)
	cluster := httptest.NewServer(server)
	defer cluster.Close()
	clock := &traceClock{}
	clock.set(rec.Start())
	dir := filepath.Join(t.TempDir(), name)
	tape, err := recording.Create(dir, clock.now)
	require.NoError(t, err)
	audit := filepath.Join(t.TempDir(), "audit.log")
	counted := &countedTape{Writer: tape}
	recorder, err := collector.NewRecorder(collector.RecorderConfig{
		REST: &rest.Config{Host: cluster.URL}, Tape: counted, Log: slog.New(slog.DiscardHandler), Clock: clock.now, Redactor: redactor, AuditFile: audit,
		Scrape:  &collector.ScrapeTarget{Server: remote.Server{URL: cluster.URL + recording.ScrapePath}, Interval: time.Hour},
		Backoff: &wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Steps: 1},
	})
	require.NoError(t, err)
	require.NoError(t, recorder.PolicyText(rec.Policy))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- recorder.Run(ctx) }()
	require.NoError(t, recording.Play(t.Context(), rec, server, recording.Hooks{
		Clock: clock.set, Watched: collector.Watches, Taken: recorder.Taken, Scrape: recorder.ScrapeOnce,
	}))
	appendTo(t, audit, auditLog(t, name))
	require.Eventually(t, func() bool { return int(counted.audit.Load()) == wantedAudit(t, rec) }, 2*time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
	require.NoError(t, tape.Close())
	return dir
}

type countedTape struct {
	*recording.Writer
	audit atomic.Int64
}

func (c *countedTape) Audit(e json.RawMessage) {
	c.Writer.Audit(e)
	c.audit.Add(1)
}

// wantedAudit counts the events of a recorded audit log that are about evictions and migrations.
func wantedAudit(t *testing.T, rec *recording.Recording) int {
	t.Helper()
	n := 0
	reader := collector.AuditReader{Now: rec.End(), Take: func(collector.Request) error { n++; return nil }}
	for _, l := range rec.Audit {
		_, err := reader.Read(strings.NewReader(string(l.Event)))
		require.NoError(t, err)
	}
	return n
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// TestRecordPlays records every recording while it is played, and compares what comes of playing the one and the other: all rows are the same,
// also where watches are cut.
func TestRecordPlays(t *testing.T) {
	t.Parallel()
	compare := func(t *testing.T, name string, options recording.ServerOptions) {
		t.Helper()
		dir := recordBuiltin(t, name, options, nil)
		before, after := playedURL(t, name), storetest.NewURL(t)
		code, _, stderr := runCommand(t, "play", dir, "--database-url", after)
		require.Equal(t, exitFound, code, stderr)
		require.Equal(t, asRecorded(readPublicViews(t, before)), asRecorded(readPublicViews(t, after)))
	}
	for _, name := range storetest.Sample(storetest.Sample(storetest.Sample(listRecordings(t)))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, recording.ServerOptions{})
		})
	}
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		compare(t, "c-node-drain", recording.ServerOptions{CutEvery: 37})
	})
}

// TestRecordOfGaps records a cluster that forgets its history: what was not seen is a gap where it is played, and the rest is as it was.
func TestRecordOfGaps(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "b-dual-retry-loop"
	url := storetest.NewURL(t)
	code, _, stderr := runCommand(t, "play", recordBuiltin(t, name, recording.ServerOptions{ExpireEvery: 120}, nil), "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	raw, err := fs.ReadFile(evictrail.Recordings(), name+"/expected.json")
	require.NoError(t, err)
	var want truth
	require.NoError(t, json.Unmarshal(raw, &want))
	compareRequests(t, url, want.Requests)
	compareEvacuations(t, url, want.Evacuations, true)
	compareMigrations(t, url, want.Migrations, true)
	compareLoops(t, url, name, want.Loops)
	require.NotEmpty(t, readPublicViews(t, url)["gaps"])
}

// observedAt is when audit events reached us: one that is recorded alone comes at its own time, not with those that were left out.
var observedAt = regexp.MustCompile(`"observed_at": "[^"]*", `)

// asRecorded takes out when audit events reached us, and that the descheduler's policy was seen: its text is recorded as far as it is read, and the
// first line is a later one.
func asRecorded(rows map[string][]string) map[string][]string {
	for _, view := range []string{"events", "timeline"} {
		rows[view] = slices.DeleteFunc(rows[view], func(row string) bool { return strings.Contains(row, `"descheduler_policy"`) })
	}
	for i, row := range rows["events"] {
		if strings.Contains(row, `"object_kind": "Request"`) {
			rows["events"][i] = observedAt.ReplaceAllString(row, "")
		}
	}
	slices.Sort(rows["events"])
	return rows
}

// story is what a redacted recording must show as the original does: everything but names, and what is made of them.
var story = map[string]string{
	"requests":    "SELECT requested_at, requester_class, answer, effect, dry_run, source, stated_reason, repeats, policy FROM evictrail_v1.eviction_requests",
	"evacuations": "SELECT marked_at, marked_by, ended_at, outcome, trigger, requester_class, confidence, in_progress, in_progress_lost_at, attempts, failed_attempts, last_failure_reason, strategy, policy FROM evictrail_v1.evacuations",
	"migrations":  "SELECT created_at, finished_at, trigger, trigger_confidence, priority, pending_at, running_at, outcome, failure_class, failure_reason, attempt, mode, wait_reason FROM evictrail_v1.migrations",
	"placements":  "SELECT from_at, to_at, arrived_by IS NULL AS unknown, left_by IS NULL AS stays, ended_by, strategy, opted_out, not_migratable IS NULL AS migratable FROM evictrail_v1.placements",
	"cooldowns":   "SELECT decided_at, layer, reason, count, effective, capped FROM evictrail_v1.cooldown_decisions",
	"loops":       "SELECT opened_at, closed_at, closed_by, kind, path, jsonb_array_length(evidence) AS evidence FROM evictrail_v1.loops",
	"drains":      "SELECT started_at, ended_at, requester_class, vmis_total, vmis_left, outcome FROM evictrail_v1.drains",
	"blockers":    "SELECT blocker, waiting_since FROM evictrail_v1.drain_blockers",
	"timeline":    "SELECT at, kind, reason FROM evictrail_v1.timeline WHERE kind <> 'config_seen'",
}

// readStory reads the story of a database.
func readStory(t *testing.T, url string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for chapter, query := range story {
		for _, row := range queryRows[json.RawMessage](t, url, query) {
			out[chapter] = append(out[chapter], string(row))
		}
		slices.Sort(out[chapter])
	}
	return out
}

// ours are names in the recordings that say nothing of a cluster: those of projects, which redacted texts still have.
var ours = []string{
	"openshift-kube-descheduler-operator", "openshift-descheduler-operand", // where and as what the descheduler is installed
	"kubevirt", "kubevirt-controller", "kubevirt-apiserver", "virt-controller", "virt-api", "descheduler", "default", "worker", "drain",
}

// TestRecordRedacted records every recording with pseudonyms: it has the same story, and no name, user, address, UID or label of the original
// stands in it.
func TestRecordRedacted(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Sample(storetest.Sample(storetest.Sample(listRecordings(t)))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := recordBuiltin(t, name, recording.ServerOptions{}, collector.NewRedactor())
			before, after := playedURL(t, name), storetest.NewURL(t)
			code, _, stderr := runCommand(t, "play", dir, "--database-url", after)
			require.Equal(t, exitFound, code, stderr)
			require.Equal(t, readStory(t, before), readStory(t, after))

			text := recordedText(t, dir)
			secrets := secretsOf(t, name)
			require.Greater(t, len(secrets), 50)
			for secret := range secrets {
				if strings.Contains(text, secret) { // within a word it is none, such as a resourceVersion's digits
					require.NotRegexp(t, `(^|[^A-Za-z0-9])`+regexp.QuoteMeta(secret)+`($|[^A-Za-z0-9])`, text, "%s is shown", secret)
				}
			}
		})
	}
}

// recordedText returns all files of a recording, unpacked.
func recordedText(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		file, err := os.Open(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		var in io.Reader = file
		if strings.HasSuffix(f.Name(), ".gz") {
			in, err = gzip.NewReader(file)
			require.NoError(t, err)
		}
		_, err = io.Copy(&out, in)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	return out.String()
}

var (
	addresses = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b|\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`)
	uuids     = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
)

// secretsOf returns what must not stand in a redacted recording: each name, namespace, user, address, UID, and each label's value that looks like one.
func secretsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	for _, l := range rec.Lines {
		var o struct {
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			InvolvedObject struct{ Name, Namespace string }
		}
		if l.Object != nil {
			require.NoError(t, json.Unmarshal(l.Object, &o))
		}
		for _, s := range []string{o.Metadata.Name, o.Metadata.Namespace, o.InvolvedObject.Name, o.InvolvedObject.Namespace} {
			out[s] = true
		}
		for key, value := range o.Metadata.Labels {
			if key == "app" || key == "kubernetes.io/hostname" || strings.Contains(key, "kubevirt.io/") && strings.Contains(value, "-") {
				out[value] = true
			}
		}
		for _, s := range append(addresses.FindAllString(string(l.Object), -1), uuids.FindAllString(string(l.Object), -1)...) {
			out[s] = true
		}
	}
	for _, l := range rec.Audit {
		var e struct {
			AuditID string
			User    struct{ Username, UID string }
			Object  struct{ Name, Namespace string } `json:"objectRef"`
		}
		require.NoError(t, json.Unmarshal(l.Event, &e))
		for _, s := range append(strings.Split(e.User.Username, ":"), e.AuditID, e.User.UID, e.Object.Name, e.Object.Namespace) {
			out[s] = true
		}
	}
	for _, known := range append([]string{"", "system", "serviceaccount", "virt-launcher"}, ours...) {
		delete(out, known)
	}
	return out
}

// TestRecordCommand records a cluster that stands still with the command, until it is stopped and for a time, and plays it.
func TestRecordCommand(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	cluster := stillCluster(t, "k-blocked-slot")
	kubeconfig := writeKubeconfig(t, cluster.URL)
	dir := filepath.Join(t.TempDir(), "rec")
	code, out, stderr := runCommand(t, "record", dir, "--kubeconfig", kubeconfig, "--for", "3s", "--descheduler-metrics-url", cluster.URL+recording.ScrapePath,
		"--descheduler-policy", recordingDir("k-blocked-slot")+"/descheduler-policy.yaml")
	require.Equal(t, exitFound, code, stderr)
	require.Regexp(t, `^recorded \d+ lines about \d+ objects, 1 scrapes, the descheduler's policy, [0-9.]+ KiB in \d+s into `, out)
	require.Contains(t, out, "evictrail play "+dir)
	info, err := os.Stat(filepath.Join(dir, "trace.jsonl.gz"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	url := storetest.NewURL(t)
	code, _, stderr = runCommand(t, "play", dir, "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	code, out, stderr = runCommand(t, "evacuations", "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "nbr-2")

	code, _, stderr = runCommand(t, "record", dir, "--kubeconfig", kubeconfig, "--for", "1s")
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "is not empty, it has ")
	code, _, stderr = runCommand(t, "record", filepath.Join(t.TempDir(), "none"), "--kubeconfig", writeKubeconfig(t, "http://127.0.0.1:1"), "--for", "1s")
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "nothing was recorded: ")
	require.Contains(t, stderr, "connection refused")
}

// stillCluster serves a recording as it stood at its end.
func stillCluster(t *testing.T, name string) *httptest.Server {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	if len(rec.Scrapes) > 0 {
		server.ReleaseScrape(len(rec.Scrapes) - 1)
	}
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	return cluster
}

// TestRecordKilled kills the command: what it wrote up to then can be played.
func TestRecordKilled(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	cluster := stillCluster(t, "a-descheduler-eviction-success")
	dir := filepath.Join(t.TempDir(), "rec")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "record", dir, "--kubeconfig", writeKubeconfig(t, cluster.URL))
	cmd.Env = append(os.Environ(), asCommand+"=1")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		rec, err := recording.Open(os.DirFS(filepath.Dir(dir)), "rec", collector.Check)
		return err == nil && len(rec.Lines) > 50
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	code, _, stderr := runCommand(t, "play", dir, "--database-url", storetest.NewURL(t))
	require.Equal(t, exitFound, code, stderr)
}
