package collector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// api is a Kubernetes API of which a test sets each resource's list and what its watch then sends.
type api struct {
	mu      sync.Mutex
	items   map[string][]string // by plural
	status  map[string]int      // answered instead
	streams map[string]chan string
	older   bool   // it cannot send a list as part of a watch
	refused string // the plural of what may be listed, and not watched
	lists   int    // of that, so far
}

func newAPI() *api {
	a := &api{items: map[string][]string{}, status: map[string]int{}, streams: map[string]chan string{}}
	for _, r := range resources {
		a.streams[r.name] = make(chan string, 100)
	}
	return a
}

func (a *api) setAnswer(name string, status int, items ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status[name], a.items[name] = status, items
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	a.mu.Lock()
	status, items, stream := a.status[name], a.items[name], a.streams[name]
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if name == a.refused {
		a.mu.Lock()
		if watched := r.URL.Query().Has("watch"); watched && status == 0 {
			status = http.StatusForbidden
		} else if !watched {
			a.lists++
		}
		a.mu.Unlock()
	}
	if status != 0 {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no %s for you","reason":%q,"code":%d}`,
			name, map[int]string{403: "Forbidden", 404: "NotFound"}[status], status)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		_, _ = fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[%s]}`, strings.Join(items, ","))
		return
	}
	if a.older && r.URL.Query().Has("sendInitialEvents") {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sendInitialEvents is forbidden for watch","reason":"Invalid","code":422}`)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, item := range items {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", item)
		}
		_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-stream:
			if line == timeout {
				return
			}
			_, _ = fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
			if strings.Contains(line, `"ERROR"`) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// unprobed is the part of a Sink whose errors never lie in what it was given.
type unprobed struct{}

func (unprobed) Probe(_ context.Context, cause error) error { return cause }

// sink keeps facts in memory; fail may refuse them.
type sink struct {
	unprobed
	mu    sync.Mutex
	facts []trail.Fact
	upto  map[string]time.Time // up to when each source was seen, as it was recorded
	calls int
	fail  func(call int, facts []trail.Fact) error
}

func (s *sink) Append(_ context.Context, facts []trail.Fact) (trail.News, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		if err := s.fail(s.calls, facts); err != nil {
			return trail.News{}, err
		}
	}
	s.facts = append(s.facts, facts...)
	return trail.News{Facts: facts}, nil
}

func (s *sink) Alive(_ context.Context, at time.Time, watching []trail.Watching) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upto == nil {
		s.upto = map[string]time.Time{}
	}
	for _, w := range watching {
		s.upto[w.Source] = at.Truncate(time.Microsecond) // as a database keeps it
	}
	return nil
}

func (s *sink) copySeen() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.upto)
}

func (s *sink) countKinds() map[trail.Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[trail.Kind]int{}
	for _, f := range s.facts {
		out[f.Kind]++
	}
	return out
}

type running struct {
	*Collector
	api     *api
	sink    *sink
	log     *lockedBuffer
	metrics *metrics.Metrics
	stop    func() error
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startCollector(t *testing.T, a *api, s *sink, change func(*Config)) *running {
	t.Helper()
	return startOn(t, a, a, s, change)
}

// startOn starts a collector on an API that is served by another handler.
func startOn(t *testing.T, serve http.Handler, a *api, s *sink, change func(*Config)) *running {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	log := &lockedBuffer{}
	config := Config{
		REST: &rest.Config{Host: server.URL}, Tracker: tracker.New("test"), Sink: s, Log: slog.New(slog.NewTextHandler(log, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()), Clock: func() time.Time { return time.Now().UTC() },
		Backoff: &wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1, Steps: 1},
	}
	if change != nil {
		change(&config)
	}
	c, err := New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return &running{c, a, s, log, config.Metrics, stop}
}

func (r *running) requireEventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 2*time.Minute, 5*time.Millisecond, "%s; log:\n%s", what, r.log)
}

func vmiJSON(name, version, more string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":%q,"uid":%q,"resourceVersion":%q,"creationTimestamp":"2026-11-21T00:00:00Z"},"status":{"nodeName":"n1","phase":"Running"%s}}`,
		name, "uid-"+name, version, more)
}

// timeout in a stream ends the watch, as the API server does after the time that the client asked for.
const timeout = "timeout"

func formatNotification(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

const vmis = "virtualmachineinstances"

func TestCollectorSeesListsAndWatches(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("db", "50", ""))
	r := startCollector(t, a, &sink{}, nil)
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	r.requireEventually(t, "all watches synced", func() bool { return len(r.Unready()) == 0 })
	a.streams[vmis] <- formatNotification("MODIFIED", vmiJSON("db", "101", `,"evacuationNodeName":"n1"`))
	a.streams[vmis] <- formatNotification("DELETED", vmiJSON("db", "102", `,"evacuationNodeName":"n1"`))
	require.NoError(t, r.Taken(t.Context(), vmis, "102"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 1, trail.KindEvacuationMarked: 1, trail.KindVMIEnded: 1}, r.sink.countKinds())
	require.InDelta(t, 1, testutil.ToFloat64(r.metrics.Facts.WithLabelValues("evacuation_marked", metrics.StageCommitted)), 0)
	require.NoError(t, r.stop())
	require.ErrorContains(t, r.Taken(t.Context(), "secrets", "1"), "not watched")
}

// TestTheTrackerGoes asks a collector that has ended how it stood: it does not hold what was known of each object, as the next one holds that, too.
func TestTheTrackerGoes(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("db", "50", ""))
	var tr weak.Pointer[tracker.Tracker]
	r := startCollector(t, a, &sink{}, func(c *Config) { tr = weak.Make(c.Tracker) })
	r.requireEventually(t, "all watches synced", func() bool { return len(r.Unready()) == 0 })
	require.NoError(t, r.stop())
	r.requireEventually(t, "nobody holds it", func() bool { runtime.GC(); return tr.Value() == nil })
	require.Empty(t, r.Unready())
}

func TestCollectorSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer("pods", http.StatusForbidden)
	a.setAnswer(vmis, http.StatusNotFound)
	r := startCollector(t, a, &sink{}, nil)
	ready := func() string { return strings.Join(r.Unready(), "\n") }
	r.requireEventually(t, "both are named", func() bool {
		return strings.Contains(ready(), "no right to watch pods: grant list and watch on pods in all namespaces") &&
			strings.Contains(ready(), "the API server knows no virtualmachineinstances.kubevirt.io: install KubeVirt")
	})
	r.requireEventually(t, "the others work", func() bool { return len(r.Unready()) == 2 })
	require.Equal(t, 1, strings.Count(r.log.String(), "no right to watch pods"), "logged once, tried often")
	a.setAnswer("pods", 0)
	a.setAnswer(vmis, 0)
	r.requireEventually(t, "it goes on by itself", func() bool { return len(r.Unready()) == 0 })
	require.Contains(t, r.log.String(), "watch works again")
}

// TestARenewedWatchIsNotStale ends a watch on which nothing ever comes, as an API server does every few minutes.
func TestARenewedWatchIsNotStale(t *testing.T) {
	t.Parallel()
	a := newAPI()
	r := startCollector(t, a, &sink{}, nil)
	r.requireEventually(t, "all watches synced", func() bool { return len(r.Unready()) == 0 })
	heard := func() float64 { return testutil.ToFloat64(r.metrics.WatchLastActivity.WithLabelValues("events")) }
	r.requireEventually(t, "the list was heard", func() bool { return heard() > 0 })
	before := heard()
	a.streams["events"] <- timeout
	r.requireEventually(t, "the next watch was answered", func() bool { return heard() > before })
	require.InDelta(t, 1, testutil.ToFloat64(r.metrics.WatchRestarts.WithLabelValues("events", metrics.RestartClosed)), 0)
}

// TestAWatchWithoutItsBookmarksIsStale renews a watch on which bookmarks came before: an API server that answers and delivers nothing is not well.
func TestAWatchWithoutItsBookmarksIsStale(t *testing.T) {
	t.Parallel()
	a := newAPI()
	r := startCollector(t, a, &sink{}, nil)
	r.requireEventually(t, "all watches synced", func() bool { return len(r.Unready()) == 0 })
	a.streams["events"] <- formatNotification("BOOKMARK", `{"kind":"Event","metadata":{"resourceVersion":"101"}}`)
	require.NoError(t, r.Taken(t.Context(), "events", "101"))
	heard := func() float64 { return testutil.ToFloat64(r.metrics.WatchLastActivity.WithLabelValues("events")) }
	before := heard()
	a.streams["events"] <- timeout
	r.requireEventually(t, "the next watch was answered", func() bool {
		return testutil.ToFloat64(r.metrics.WatchRestarts.WithLabelValues("events", metrics.RestartClosed)) > 0
	})
	require.Never(t, func() bool { return heard() > before }, 200*time.Millisecond, 5*time.Millisecond, "a renewed watch is no bookmark")
	a.streams["events"] <- formatNotification("BOOKMARK", `{"kind":"Event","metadata":{"resourceVersion":"102"}}`)
	r.requireEventually(t, "the next bookmark is heard", func() bool { return heard() > before })
}

// countLists counts the lists of what may not be watched.
func (a *api) countLists() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// TestAListDoesNotMakeAWatchGood refuses a watch whose lists work, as one right of two allows: that is said once, and stays said.
func TestAListDoesNotMakeAWatchGood(t *testing.T) {
	t.Parallel()
	const problem = "no right to watch pods"
	t.Run("collector", func(t *testing.T) {
		t.Parallel()
		a := newAPI()
		a.refused = "pods"
		r := startCollector(t, a, &sink{}, nil)
		r.requireEventually(t, "it is listed again and again", func() bool { return a.countLists() >= 5 })
		require.Contains(t, strings.Join(r.Unready(), "\n"), problem)
		require.Equal(t, 1, strings.Count(r.log.String(), problem))
		require.NotContains(t, r.log.String(), "watch works again")
	})
	t.Run("recorder", func(t *testing.T) {
		t.Parallel()
		a, log := newAPI(), &lockedBuffer{}
		a.refused = "pods"
		r, _ := startRecorder(t, a, RecorderConfig{Log: slog.New(slog.NewTextHandler(log, nil))})
		require.Eventually(t, func() bool { return a.countLists() >= 3 }, 2*time.Minute, 5*time.Millisecond)
		require.Contains(t, strings.Join(r.Problems(), "\n"), problem)
		require.Equal(t, 1, strings.Count(log.String(), problem))
		require.NotContains(t, log.String(), "msg=recorded resource=pods")
	})
}

func TestCollectorTakesAnOlderServerForNoProblem(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.older = true
	a.setAnswer(vmis, 0, vmiJSON("db", "2", ""))
	r := startCollector(t, a, &sink{}, nil)
	r.requireEventually(t, "it is ready", func() bool { return len(r.Unready()) == 0 })
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	require.NotContains(t, r.log.String(), "level=WARN")
	require.Zero(t, testutil.ToFloat64(r.metrics.WatchRestarts.WithLabelValues(vmis, metrics.RestartError)), "it is no restart either")
}

func TestCollectorRejectsBadObjectsAndGoesOn(t *testing.T) {
	t.Parallel()
	a := newAPI()
	huge := fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"huge","uid":"h","resourceVersion":"3","annotations":{"x":%q}}}`, strings.Repeat("x", 1<<20))
	a.setAnswer(vmis, 0, vmiJSON("good", "2", ""), `{"metadata":{"namespace":"shop","name":"nouid","resourceVersion":"3"}}`, huge)
	r := startCollector(t, a, &sink{}, nil)
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	for _, version := range []string{"101", "102"} {
		a.streams[vmis] <- formatNotification("MODIFIED", `{"metadata":{"namespace":"shop","name":"odd","uid":"o","resourceVersion":"`+version+`"},"status":{"phase":["Running"]}}`)
	}
	a.streams[vmis] <- formatNotification("ADDED", vmiJSON("better", "103", ""))
	require.NoError(t, r.Taken(t.Context(), vmis, "103"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 2}, r.sink.countKinds())
	require.InDelta(t, 4, testutil.ToFloat64(r.metrics.Facts.WithLabelValues("VirtualMachineInstance", metrics.StageRejected)), 0)
	log := r.log.String()
	for _, name := range []string{"nouid", "huge", "odd"} {
		require.Equal(t, 1, strings.Count(log, "name="+name), "%s is logged once:\n%s", name, log)
	}
	require.Contains(t, log, "object without metadata.uid")
	require.Contains(t, log, "at most 262144 are possible")
}

func TestCollectorRecordsGaps(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("db", "50", ""), vmiJSON("old", "51", ""))
	r := startCollector(t, a, &sink{}, func(c *Config) { c.LastAlive = time.Now().Add(-time.Hour) })
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	a.streams[vmis] <- formatNotification("MODIFIED", vmiJSON("db", "101", ""))
	require.NoError(t, r.Taken(t.Context(), vmis, "101"))
	r.requireEventually(t, "everything is watched", func() bool { return len(r.listWatchedSources(time.Now())) == len(r.feeds)+1 })
	before := mapSince(r.listWatchedSources(time.Now()))
	require.Contains(t, before, trail.SourceSelf)
	a.setAnswer(vmis, 0, vmiJSON("db", "150", `,"evacuationNodeName":"n1"`))
	a.streams[vmis] <- formatNotification("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	r.requireEventually(t, "the list after the break is taken", func() bool { return r.sink.countKinds()[trail.KindEvacuationMarked] == 1 })
	r.requireEventually(t, "both gaps are recorded", func() bool { return r.sink.countKinds()[trail.KindGapClosed] == 2 })
	require.NoError(t, r.Flush(t.Context()))
	causes := map[string]trail.Reason{}
	for _, f := range r.sink.facts {
		if f.Kind == trail.KindGapClosed {
			causes[f.Object.UID] = f.Reason
		}
		if f.Kind == trail.KindEvacuationMarked {
			require.True(t, f.Late, "what a list shows is seen late")
		}
		if f.Kind == trail.KindVMIEnded {
			require.Equal(t, trail.ReasonDeletedUnseen, f.Reason)
		}
	}
	require.Equal(t, map[string]trail.Reason{vmis: trail.ReasonExpired, trail.SourceSelf: trail.ReasonNotRunning}, causes)
	require.Equal(t, 1, r.sink.countKinds()[trail.KindVMIEnded], "the VMI that the list no longer holds")
	r.requireEventually(t, "everything is watched again", func() bool { return len(r.listWatchedSources(time.Now())) == len(r.feeds)+1 })
	for source, at := range mapSince(r.listWatchedSources(time.Now())) {
		if source == vmis {
			require.Greater(t, at, before[source], "it is watched without a break since the list after the gap")
		} else {
			require.Equal(t, before[source], at, source)
		}
	}
	a.setAnswer(vmis, http.StatusForbidden)
	a.streams[vmis] <- formatNotification("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	r.requireEventually(t, "what is refused is not watched", func() bool { return len(r.listWatchedSources(time.Now())) == len(r.feeds) })
	require.NotContains(t, mapSince(r.listWatchedSources(time.Now())), vmis)
}

// TestCollectorRelistsEventsWithoutAGap lets the watch of Events become too old to be resumed: the list that follows shows what came during that time, unless Events may
// have come and gone.
func TestCollectorRelistsEventsWithoutAGap(t *testing.T) {
	t.Parallel()
	a, ahead := newAPI(), atomic.Int64{}
	r := startCollector(t, a, &sink{}, func(c *Config) {
		c.Clock = func() time.Time { return time.Now().UTC().Add(time.Duration(ahead.Load())) }
	})
	require.NoError(t, r.Taken(t.Context(), "events", "100"))
	gapsAfter := func(idle time.Duration, version string) (gaps int) {
		ahead.Add(int64(idle))
		a.streams["events"] <- formatNotification("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		a.streams["events"] <- formatNotification("BOOKMARK", fmt.Sprintf(`{"kind":"Event","metadata":{"resourceVersion":%q}}`, version))
		require.NoError(t, r.Taken(t.Context(), "events", version))
		require.NoError(t, r.Flush(t.Context()))
		for _, f := range r.sink.facts {
			if f.Kind == trail.KindGapClosed && f.Object.UID == "events" {
				require.Equal(t, trail.ReasonExpired, f.Reason)
				gaps++
			}
		}
		return gaps
	}
	require.Zero(t, gapsAfter(eventsKept-time.Minute, "101"))
	require.Equal(t, 1, gapsAfter(eventsKept, "102"))
}

// TestCollectorReportsAtOnceWhatItWatches wants the store to know what is watched as soon as all is listed: another replica that starts during that time would record a gap
// up to then.
func TestCollectorReportsAtOnceWhatItWatches(t *testing.T) {
	t.Parallel()
	r := startCollector(t, newAPI(), &sink{}, nil)
	r.requireEventually(t, "everything is watched", func() bool { return len(r.Unready()) == 0 })
	require.Eventually(t, func() bool { return len(r.sink.copySeen()) == len(r.feeds)+1 }, aliveInterval/2, 10*time.Millisecond, "before it is time to say that we are alive")
}

// TestCollectorReportsWhatItCouldNotSeeBeforeItEnded breaks a watch and ends before it works again: the next run records that the source was
// not seen since the break, and not only since the end.
func TestCollectorReportsWhatItCouldNotSeeBeforeItEnded(t *testing.T) {
	t.Parallel()
	a := newAPI()
	first := startCollector(t, a, &sink{}, func(c *Config) { c.LastAlive = time.Now().Add(-time.Hour) })
	first.requireEventually(t, "everything is watched", func() bool { return len(first.Unready()) == 0 })
	first.out.requestHeartbeat()
	first.requireEventually(t, "the store is notified", func() bool { return len(first.sink.copySeen()) == len(first.feeds)+1 })
	a.setAnswer("pods", http.StatusForbidden)
	a.streams["pods"] <- formatNotification("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	first.requireEventually(t, "the store is notified at once that pods are not seen", func() bool { s := first.sink.copySeen(); return s["pods"].Before(s[vmis]) })
	require.NoError(t, first.stop())
	a.setAnswer("pods", 0)

	seen := first.sink.copySeen()
	second := startCollector(t, a, &sink{}, func(c *Config) { c.LastAlive, c.LastSeen = seen[vmis], seen })
	second.requireEventually(t, "both gaps are recorded", func() bool { return second.sink.countKinds()[trail.KindGapClosed] == 2 })
	require.NoError(t, second.Flush(t.Context()))
	opened := map[string]time.Time{}
	for _, f := range second.sink.facts {
		if f.Kind == trail.KindGapOpened {
			opened[f.Object.UID+" "+string(f.Reason)] = f.OccurredAt
		}
	}
	require.Equal(t, map[string]time.Time{
		"pods " + string(trail.ReasonUnreachable): seen["pods"], trail.SourceSelf + " " + string(trail.ReasonNotRunning): seen[vmis],
	}, opened)
}

// mapSince returns since when each source has been watched.
func mapSince(watching []trail.Watching) map[string]time.Time {
	out := map[string]time.Time{}
	for _, w := range watching {
		out[w.Source] = w.Since
	}
	return out
}

func TestWriterTriesUntilItIsStored(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("a", "1", ""), vmiJSON("b", "2", ""), vmiJSON("c", "3", ""))
	s := &sink{fail: func(call int, _ []trail.Fact) error {
		if call <= 2 {
			return errors.New("the database is away")
		}
		return nil
	}}
	r := startCollector(t, a, s, nil)
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 3}, s.countKinds())
	require.InDelta(t, 2, testutil.ToFloat64(r.metrics.StoreErrors.WithLabelValues(metrics.OpAppend, metrics.ClassNone)), 0)
}

func TestWriterLeavesOutOnlyWhatIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("a", "1", ""), vmiJSON("poison", "2", ""), vmiJSON("c", "3", ""), vmiJSON("d", "4", ""))
	s := &sink{fail: func(_ int, facts []trail.Fact) error {
		for _, f := range facts {
			if f.VMI == "poison" {
				return fmt.Errorf("append: %w", trail.ErrRefused)
			}
		}
		return nil
	}}
	r := startCollector(t, a, s, nil)
	require.NoError(t, r.Taken(t.Context(), vmis, "100"))
	require.NoError(t, r.Flush(t.Context()))
	require.Equal(t, map[trail.Kind]int{trail.KindVMIPlaced: 3, trail.KindGapOpened: 1, trail.KindGapClosed: 1}, s.countKinds())
	require.Equal(t, 1, strings.Count(r.log.String(), `msg="fact refused"`))
}

func TestCheckReadsAsTheWatchDoes(t *testing.T) {
	t.Parallel()
	require.NoError(t, Check(vmis, json.RawMessage(vmiJSON("db", "1", ""))))
	require.NoError(t, Check("secrets", json.RawMessage(`{}`)), "not watched, not read")
	require.ErrorContains(t, Check(vmis, json.RawMessage(`{"metadata":{"name":"x","resourceVersion":"1"}}`)), "without metadata.uid")
	require.ErrorContains(t, Check("nodes", json.RawMessage(`{"metadata":{"name":"x","uid":"u","resourceVersion":"1"},"spec":{"taints":1}}`)), "read /x")
}

func TestMetricsOfThePipeline(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("a", "1", ""), `{"metadata":{"name":"unreadable","uid":7}}`)
	ahead := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
		a.ServeHTTP(w, r)
	})
	r := startOn(t, ahead, a, &sink{}, nil)
	require.NoError(t, r.Flush(t.Context()))
	r.requireEventually(t, "objects that cannot be read are lost, and say so", func() bool {
		return testutil.ToFloat64(r.metrics.Lost.WithLabelValues(string(trail.ObjectVMI), metrics.LostDecode)) == 1
	})
	require.InDelta(t, 60, testutil.ToFloat64(r.metrics.ClockSkew.WithLabelValues(metrics.PeerAPIServer)), 2, "the API server's clock is ahead")
	require.Positive(t, testutil.ToFloat64(r.metrics.SpoolCapacity))
	r.requireEventually(t, "nothing waits any more", func() bool { return testutil.ToFloat64(r.metrics.SpoolBytes) == 0 })
}

func TestWhatIsLeftBehindIsCounted(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer(vmis, 0, vmiJSON("a", "1", ""))
	s := &sink{fail: func(int, []trail.Fact) error { return errors.New("away") }}
	m := metrics.New(prometheus.NewRegistry())
	w := newWriter(Config{Sink: s, Log: slog.New(slog.DiscardHandler), Metrics: m, Clock: time.Now}, func(time.Time) []trail.Watching { return nil })
	w.addFacts(t.Context(), []trail.Fact{{Kind: trail.KindVMIPlaced, ObservedAt: time.Now()}, {Kind: trail.KindNodeCordoned, ObservedAt: time.Now()}})
	require.InDelta(t, 2, testutil.ToFloat64(m.QueueLength), 0)
	require.Greater(t, testutil.ToFloat64(m.SpoolBytes), 1000.)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.close()
	require.Error(t, w.run(ctx, nil))
	require.InDelta(t, 1, testutil.ToFloat64(m.Lost.WithLabelValues(string(trail.KindVMIPlaced), metrics.LostShutdownDeadline)), 0)
	require.InDelta(t, 1, testutil.ToFloat64(m.Lost.WithLabelValues(string(trail.KindNodeCordoned), metrics.LostShutdownDeadline)), 0)
}

// TestTimeGoesByWhileFactsCome wants the Sink to be notified that we are alive, so that it derives what is due, also where there is
// always more to store.
func TestTimeGoesByWhileFactsCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alive := &aliveSink{}
		w := newWriter(Config{Sink: alive, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}, func(time.Time) []trail.Watching { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.run(ctx, nil) }()
		for range 400 {
			w.addFacts(ctx, []trail.Fact{{Kind: trail.KindVMIPlaced, ObservedAt: time.Now()}})
			time.Sleep(100 * time.Millisecond)
		}
		require.GreaterOrEqual(t, alive.n.Load(), int64(3), "in 40 s, as every 10 s")
		w.close()
		require.NoError(t, <-done)
		cancel()
	})
}

// TestASinkThatNeverAnswersIsAskedAgain has calls of the Sink end with their context alone, as on a connection whose other end stands still: first
// those of a batch, each of which is given longer, then one that says that we are alive.
func TestASinkThatNeverAnswersIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silentSink{silent: 3}
		w := newWriter(Config{Sink: s, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}, func(time.Time) []trail.Watching { return nil })
		done := make(chan error, 1)
		go func() { done <- w.run(t.Context(), nil) }()
		w.addFacts(t.Context(), []trail.Fact{{Kind: trail.KindVMIPlaced, ObservedAt: time.Now()}})
		require.NoError(t, w.flushPending(t.Context()))
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}, s.silenceCalls(1))
		time.Sleep(2 * time.Minute)
		require.Equal(t, []time.Duration{time.Minute}, s.silenceCalls(0))
		w.close()
		require.NoError(t, <-done)
	})
}

// TestWhatIsTooMuchIsStoredInParts has a Sink take no more than 300 facts at once: it stops before more are stored.
func TestWhatIsTooMuchIsStoredInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := &slowSink{most: 300}
		s := Storing{Sink: sink, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(prometheus.NewRegistry()), Clock: time.Now}
		facts := make([]trail.Fact, batchFacts)
		for i := range facts {
			facts[i] = trail.Fact{Kind: trail.KindVMIPlaced, VMI: strconv.Itoa(i)}
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, s.storeBatch(ctx, facts))
		require.Equal(t, facts, sink.stored)
		require.Equal(t, retryFirst+2*retryFirst+4*retryFirst, time.Since(began), "2,000, 1,000 and 500 were too many")
	})
}

// slowSink fails where it is passed more facts than it gets done with.
type slowSink struct {
	unprobed
	most   int
	stored []trail.Fact
}

func (s *slowSink) Append(_ context.Context, facts []trail.Fact) (trail.News, error) {
	if len(facts) > s.most {
		return trail.News{}, errors.New("terminated")
	}
	s.stored = append(s.stored, facts...)
	return trail.News{}, nil
}

func (s *slowSink) Alive(context.Context, time.Time, []trail.Watching) error {
	return nil
}

// silentSink does not answer so many calls.
type silentSink struct {
	unprobed
	mu     sync.Mutex
	silent int
	waited []time.Duration // for each of them
}

// silenceCalls has it not answer so many more calls, and returns how long those before were waited for.
func (s *silentSink) silenceCalls(calls int) (waited []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited, s.waited, s.silent = s.waited, nil, calls
	return waited
}

func (s *silentSink) answerCall(ctx context.Context) error {
	s.mu.Lock()
	silent := s.silent > 0
	s.silent = max(0, s.silent-1)
	s.mu.Unlock()
	if !silent {
		return nil
	}
	began := time.Now()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = append(s.waited, time.Since(began))
	return ctx.Err()
}

func (s *silentSink) Append(ctx context.Context, _ []trail.Fact) (trail.News, error) {
	return trail.News{}, s.answerCall(ctx)
}

func (s *silentSink) Alive(ctx context.Context, _ time.Time, _ []trail.Watching) error {
	return s.answerCall(ctx)
}

// aliveSink takes longer for facts than they take to come.
type aliveSink struct {
	unprobed
	n atomic.Int64
}

func (s *aliveSink) Append(context.Context, []trail.Fact) (trail.News, error) {
	time.Sleep(150 * time.Millisecond)
	return trail.News{}, nil
}

func (s *aliveSink) Alive(context.Context, time.Time, []trail.Watching) error {
	s.n.Add(1)
	return nil
}

// Unready says which watches are not seen, one line each.
func (c *Collector) Unready() []string {
	var lines []string
	for _, w := range c.Watches() {
		if !w.Synced {
			lines = append(lines, cmp.Or(w.Problem, "watch of "+w.Source+": waiting for its first list"))
		}
	}
	return lines
}
