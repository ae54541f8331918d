package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// saidWithin is how soon after something went wrong everything has to say so.
const saidWithin = 30 * time.Second

// spoiled is a cluster that stands still at the end of a recording, and answers requests as spoil says where that does.
type spoiled struct {
	kubeconfig string
	spoil      atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

func spoiledCluster(t *testing.T, spoil func(w http.ResponseWriter, r *http.Request) bool) *spoiled {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), "k-blocked-slot", nil)
	require.NoError(t, err)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range rec.Lines {
		server.Release(i)
	}
	c := &spoiled{}
	c.setSpoiler(spoil)
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil := *c.spoil.Load(); !spoil(w, r) {
			server.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(cluster.Close)
	c.kubeconfig = writeKubeconfig(t, cluster.URL)
	return c
}

func (c *spoiled) setSpoiler(spoil func(w http.ResponseWriter, r *http.Request) bool) {
	c.spoil.Store(&spoil)
}

// spoilNothing spoils nothing.
func spoilNothing(http.ResponseWriter, *http.Request) bool { return false }

// refusePath answers requests whose path has a part as an API server does that allows nothing.
func refusePath(part string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden: %s","reason":"Forbidden","code":403}`, r.URL.Path)
		return true
	}
}

// serveGarbage answers watches as a broken proxy does.
func serveGarbage(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("watch") == "" {
		return false
	}
	_, _ = w.Write([]byte("<html>upstream connect error</html>"))
	return true
}

func recorderArgs(kubeconfig, url string, more ...string) []string {
	return append([]string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--replica", "one"}, more...)
}

// startAnyhow runs the service whether it is ready or not.
func startAnyhow(t *testing.T, args []string) runningService {
	t.Helper()
	log, stop := startUnready(t, args)
	return runningService{base: "http://" + address.FindStringSubmatch(log.String())[1], client: http.DefaultClient, stop: stop}
}

// saysState waits until /readyz and the metrics show a state, with a reason, and the status of the answer.
func saysState(t *testing.T, s runningService, state trail.RecorderState, why string, status int) {
	t.Helper()
	var code int
	var body string
	require.Eventually(t, func() bool {
		code, body = s.doRequest(t, http.MethodGet, "/readyz", "")
		return strings.HasPrefix(body, string(state)+" since ") && strings.Contains(body, why)
	}, saidWithin, 100*time.Millisecond, "/readyz: %s", deferred(func() string { return body }))
	require.Equal(t, status, code, body)
	series := fmt.Sprintf(`evictrail_recorder_state{state="%s"} 1`, state)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), series) }, saidWithin, 100*time.Millisecond)
}

// deferred is a text that is made when it is written.
type deferred func() string

func (d deferred) String() string { return d() }

// TestStateBlind wants an evictrail whose API server refuses everything to say so everywhere, and to take it back when it can see.
func TestStateBlind(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	cluster, url := spoiledCluster(t, refusePath("/")), storetest.NewURL(t)
	s := startAnyhow(t, recorderArgs(cluster.kubeconfig, url))
	saysState(t, s, trail.RecorderNotRecording, "Cannot watch 9 of 9 resources since ", http.StatusServiceUnavailable)
	require.Contains(t, s.getBody(t, "/readyz"), "no right to watch pods: grant list and watch on pods in all namespaces")
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 9 }, saidWithin, 100*time.Millisecond)
	for _, gap := range readPublicViews(t, url)["gaps"] {
		require.Contains(t, gap, `"cause": "forbidden"`)
		require.Contains(t, gap, `"closed_at": null`)
	}
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/api/v1/recorders"), `"state": "not_recording"`) }, saidWithin, 100*time.Millisecond)
	for _, from := range [][]string{{"--database-url", url}, {"--server", s.base}} {
		code, out, notes := runCommand(t, append([]string{"loops"}, from...)...)
		require.Equal(t, exitNotFound, code, out)
		require.Contains(t, notes, "evictrail: c1: NOT RECORDING: Cannot watch 9 of 9 resources since ")
		require.Contains(t, notes, "Not observed in this period: ")
		code, out, _ = runCommand(t, append([]string{"gaps"}, from...)...)
		require.Equal(t, exitFound, code)
		require.Contains(t, out, "VMIs")
	}
	_, found, _ := runCommand(t, append([]string{"doctor"}, recorderArgs(cluster.kubeconfig, url)[1:]...)...)
	require.Regexp(t, `fail  record .*not recording since .*Cannot watch 9 of 9`, found)
	require.Equal(t, exitFound, s.stop())

	again := startAnyhow(t, recorderArgs(cluster.kubeconfig, url)) // the gaps go on
	saysState(t, again, trail.RecorderNotRecording, "Cannot watch 9 of 9", http.StatusServiceUnavailable)
	time.Sleep(2 * unseenAfter)
	require.Len(t, readPublicViews(t, url)["gaps"], 9, "they are the same gaps")
	cluster.setSpoiler(spoilNothing)
	require.Eventually(t, func() bool { return again.getBody(t, "/readyz") == "ok\n" }, saidWithin, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		return !strings.Contains(strings.Join(readPublicViews(t, url)["gaps"], "\n"), `"closed_at": null`)
	}, saidWithin, 100*time.Millisecond, "all are over")
	require.Eventually(t, func() bool {
		return strings.Contains(again.getBody(t, "/metrics"), `evictrail_recorder_state{state="recording"} 1`)
	}, saidWithin, 100*time.Millisecond)
}

// TestStateUnnamed judges a recorder that has not learnt the name of its cluster for a minute: nothing was to be written yet, so that the
// database is not at fault. Once reports are due it is.
func TestStateUnnamed(t *testing.T) {
	t.Parallel()
	started := nowUTC().Add(-time.Minute)
	r := &recorder{f: &runFlags{}, db: &database{}, watching: &watcher{}, started: started, leading: newLeadership(started)}
	st := r.evaluateStatus(t.Context())
	require.Equal(t, trail.RecorderNotRecording, st.State)
	require.NotContains(t, strings.Join(st.Why, " "), "database")
	r.reports.expectWrite(nowUTC().Add(-writeLate))
	require.Contains(t, strings.Join(r.evaluateStatus(t.Context()).Why, " "), "The database has taken no writes since ")
}

// TestAReplicaIsReadyOnceItWatches judges a replica that has just begun beside one that records well: the cluster is recorded, and yet an
// update that stops the other now would make a gap.
func TestAReplicaIsReadyOnceItWatches(t *testing.T) {
	t.Parallel()
	now := nowUTC()
	r := &recorder{f: &runFlags{}, db: &database{}, watching: &watcher{}, started: now, leading: newLeadership(now)}
	other := trail.ReplicaReport{Replica: "other", AliveAt: now, StartedAt: now.Add(-time.Hour), State: trail.RecorderRecording, Leader: trail.LeaderSigns{Leads: true, Known: true, DerivedAt: now}}
	r.others.Store(&trail.ClusterSigns{Cluster: "c1", Replicas: []trail.ReplicaReport{other}})
	st := r.evaluateStatus(t.Context())
	require.Equal(t, trail.RecorderDegraded, st.State, "the other records")
	require.True(t, st.Unready)
}

// writeLate is how long after it was due a first write counts as one that fails.
const writeLate = 10 * time.Second

// TestStateHalfBlind wants a single source that is refused to be said, and to be a gap.
func TestStateHalfBlind(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	cluster, url := spoiledCluster(t, refusePath("/pods")), storetest.NewURL(t)
	s := startAnyhow(t, recorderArgs(cluster.kubeconfig, url))
	saysState(t, s, trail.RecorderDegraded, "(no right): pods.", http.StatusServiceUnavailable)
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) == 1 }, saidWithin, 100*time.Millisecond)
	require.Contains(t, readPublicViews(t, url)["gaps"][0], `"source": "pods"`)
}

// TestStateGarbage wants watches whose streams cannot be read not to count as watches.
func TestStateGarbage(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	cluster, url := spoiledCluster(t, spoilNothing), storetest.NewURL(t)
	cluster.setSpoiler(serveGarbage)
	s := startAnyhow(t, recorderArgs(cluster.kubeconfig, url))
	saysState(t, s, trail.RecorderNotRecording, "what the API server sends cannot be read", http.StatusServiceUnavailable)
	cluster.setSpoiler(spoilNothing)
	require.Eventually(t, func() bool { return s.getBody(t, "/readyz") == "ok\n" }, 2*saidWithin, 100*time.Millisecond)
}

// TestStateNoLeader wants a refused lease to be reported as what it is: nobody derives.
func TestStateNoLeader(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	cluster, url := spoiledCluster(t, refusePath("/leases")), storetest.NewURL(t)
	s := startAnyhow(t, recorderArgs(cluster.kubeconfig, url, "--leader-elect", "--leader-lease", "ns/evictrail"))
	saysState(t, s, trail.RecorderNoLeader, "no right to the lease ns/evictrail", http.StatusOK)
}

// slowWrites makes each report take 50 ms.
const slowWrites = `
CREATE FUNCTION evictrail.be_slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END';
CREATE TRIGGER be_slow BEFORE INSERT OR UPDATE ON evictrail.recorders FOR EACH ROW EXECUTE FUNCTION evictrail.be_slow()`

// TestStateOfWrites wants it to be said when the database takes no writes, for whichever reason, also while nothing happens in the cluster.
func TestStateOfWrites(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	setting := func(setting string) func(*testing.T, string) {
		return func(t *testing.T, url string) {
			t.Helper()
			name := nameOfDatabase(t, url)
			admin := strings.Replace(url, name, "postgres", 1)
			execSQL(t, admin, "ALTER DATABASE "+name+" SET "+setting)
			execSQL(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		why   string
	}{
		"read-only": {setting("default_transaction_read_only = on"), "it is read-only"},
		"statement timeout": {func(t *testing.T, url string) {
			t.Helper()
			execSQL(t, url, slowWrites) // a quick machine writes a report in less than the least timeout
			setting("statement_timeout = '1ms'")(t, url)
		}, "a statement timeout cancels each write"},
		"lock": {func(t *testing.T, url string) {
			t.Helper()
			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(t.Context()) })
			_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE evictrail.clusters")
			require.NoError(t, err)
		}, "The database has taken no writes since "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, url := spoiledCluster(t, spoilNothing), storetest.NewURL(t)
			s := startRun(t, recorderArgs(cluster.kubeconfig, url), nil)
			require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_leader 1\n") }, 2*time.Minute, 50*time.Millisecond,
				"a leader that begins its term ends the sessions that hold it up for long: that of the lock")
			c.spoil(t, url)
			saysState(t, s, trail.RecorderReadOnly, c.why, http.StatusOK)
		})
	}
}

// TestAnswersNameGaps stops a recorder for an hour: answers, lists and pages whose period overlaps that hour name the gap, and what lies
// before it does not.
func TestAnswersNameGaps(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	cluster, url := spoiledCluster(t, spoilNothing), storetest.NewURL(t)
	s := startRun(t, recorderArgs(cluster.kubeconfig, url, "--spool-dir", t.TempDir()), nil)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/api/v1/loops"), `"loop_id"`) }, saidWithin, 100*time.Millisecond)
	require.Equal(t, exitFound, s.stop())
	execSQL(t, url, "UPDATE evictrail.clusters SET alive_at = alive_at - interval '1 hour'")
	execSQL(t, url, "UPDATE evictrail.watching SET since = since - interval '1 hour', upto = upto - interval '1 hour'")

	s = startRun(t, recorderArgs(cluster.kubeconfig, url, "--spool-dir", t.TempDir()), nil) // as on another node
	require.Eventually(t, func() bool { return len(readPublicViews(t, url)["gaps"]) > 0 }, saidWithin, 100*time.Millisecond)
	const named = "Not observed in this period: "
	_, out, _ := runCommand(t, "why-not", "demo/nbr-2", "--database-url", url)
	require.Contains(t, oneLine(out), named)
	_, out, _ = runCommand(t, "why", "demo/nbr-2", "--server", s.base)
	require.Contains(t, oneLine(out), named)
	_, _, notes := runCommand(t, "loops", "--server", s.base)
	require.Contains(t, notes, named)
	for _, page := range []string{"/vms/demo/nbr-2", "/nodes/worker-1"} {
		require.Contains(t, oneLine(s.getBody(t, page)), named, page)
		require.NotContains(t, oneLine(s.getBody(t, page+"?from=2026-11-21T00:00:00Z&to=2026-11-21T01:00:00Z")), named, page)
	}
}
