package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// renderLines writes a recording of nodes: each step is "kind name version", or "kind" for breaks, or "SYNC_EMPTY version".
func renderLines(steps ...string) []string {
	var out []string
	for i, step := range steps {
		f := strings.Fields(step)
		at := time.Date(2026, 11, 21, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		switch {
		case len(f) == 1:
			out = append(out, fmt.Sprintf(`{"t":%q,"resource":"nodes","kind":%q}`, at, f[0]))
		case f[0] == "SYNC_EMPTY":
			out = append(out, fmt.Sprintf(`{"t":%q,"resource":"nodes","kind":"SYNC_EMPTY","listResourceVersion":%q}`, at, f[1]))
		case f[0] == "SYNC":
			out = append(out, fmt.Sprintf(`{"t":%q,"resource":"nodes","kind":"SYNC","listResourceVersion":%q,"object":{"metadata":{"name":%q,"uid":%q,"resourceVersion":"1"}}}`, at, f[2], f[1], f[1]))
		default:
			out = append(out, fmt.Sprintf(`{"t":%q,"resource":"nodes","kind":%q,"object":{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q}}}`, at, f[0], f[1], f[1], f[2]))
		}
	}
	return out
}

type served struct {
	*Server
	url  string
	next int
}

func serveRecording(t *testing.T, options ServerOptions, steps ...string) *served {
	t.Helper()
	rec, err := Open(zipRecording(t, renderLines(steps...)...), "rec", nil)
	require.NoError(t, err)
	s := &served{Server: NewServer(rec, options)}
	h := httptest.NewServer(s.Server)
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// releaseLines makes the next n lines visible and returns what the last of them asks clients to take.
func (s *served) releaseLines(n int) []Position {
	var at []Position
	for range n {
		at = s.Release(s.next)
		s.next++
	}
	return at
}

// getPath answers a request with its status code and body.
func (s *served) getPath(t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// watcher reads a stream as "TYPE name version" texts.
type watcher struct {
	t    *testing.T
	stop context.CancelFunc
	body *bufio.Scanner
}

func (s *served) startWatch(t *testing.T, query string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/nodes?watch=1"+query, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return &watcher{t: t, stop: cancel, body: bufio.NewScanner(resp.Body)}
}

// readNotifications returns the next n notifications; "end" stands for the end of the stream.
func (w *watcher) readNotifications(n int) []string {
	w.t.Helper()
	var out []string
	for range n {
		if !w.body.Scan() {
			return append(out, "end")
		}
		var e struct {
			Type   string
			Object struct {
				Code     int
				Metadata struct {
					Name            string
					ResourceVersion string
					Annotations     map[string]string
				}
			}
		}
		require.NoError(w.t, json.Unmarshal(w.body.Bytes(), &e))
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Object.Metadata.Name, e.Object.Metadata.ResourceVersion))
		if e.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true" {
			text += " initial-events-end"
		}
		if e.Object.Code != 0 {
			text = fmt.Sprintf("%s %d", e.Type, e.Object.Code)
		}
		out = append(out, text)
	}
	return out
}

func TestListAndWatch(t *testing.T) {
	t.Parallel()
	s := serveRecording(t, ServerOptions{}, "SYNC a 5", "SYNC b 5", "MODIFIED a 6", "BOOKMARK - 7", "DELETED b 8", "ADDED c 9")
	require.Empty(t, s.releaseLines(1), "a list is seen when it is whole")
	require.Equal(t, []Position{{"nodes", "5"}}, s.releaseLines(1))
	code, body := s.getPath(t, "/api/v1/nodes")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"kind":"NodeList"`)
	require.Contains(t, body, `"resourceVersion":"5"`)

	streaming := s.startWatch(t, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	require.Equal(t, []string{"ADDED a 1", "ADDED b 1", "BOOKMARK  5 initial-events-end"}, streaming.readNotifications(3))
	plain := s.startWatch(t, "&resourceVersion=5")
	require.Equal(t, []Position{{"nodes", "9"}}, s.releaseLines(4))
	require.Equal(t, []string{"MODIFIED a 6", "BOOKMARK - 7", "DELETED b 8", "ADDED c 9"}, streaming.readNotifications(4))
	require.Equal(t, []string{"MODIFIED a 6", "DELETED b 8", "ADDED c 9"}, plain.readNotifications(3), "bookmarks only for who asked for them")
	require.Equal(t, []string{"ADDED c 9"}, s.startWatch(t, "&resourceVersion=8").readNotifications(1), "resumed")
	require.Equal(t, []string{"ADDED a 6", "ADDED c 9"}, s.startWatch(t, "").readNotifications(2), "without a version the state comes first")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := serveRecording(t, ServerOptions{}, "SYNC a 5")
	s.releaseLines(1)
	for path, want := range map[string]int{
		"/api/v1/nodes?watch=1&resourceVersion=4": http.StatusGone,
		"/api/v1/nodes?watch=1&resourceVersion=x": http.StatusBadRequest,
		"/api/v1/secrets":                         http.StatusNotFound,
		"/apis/kubevirt.io/v1/kubevirts":          http.StatusOK, // not recorded: empty
		"/version":                                http.StatusOK,
	} {
		code, body := s.getPath(t, path)
		require.Equal(t, want, code, path)
		if want >= 400 {
			require.Contains(t, body, `"kind":"Status"`)
		}
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	s := serveRecording(t, ServerOptions{CutEvery: 2}, "SYNC a 1", "MODIFIED a 2", "MODIFIED a 3", "MODIFIED a 4", "MODIFIED a 5", "MODIFIED a 6")
	s.releaseLines(6)
	var seen []string
	for _, from := range []string{"1", "3", "5"} {
		got := s.startWatch(t, "&resourceVersion="+from)
		seen = append(seen, got.readNotifications(1)...)
		if from != "5" {
			seen = append(seen, got.readNotifications(1)...)
			require.Equal(t, []string{"end"}, got.readNotifications(1))
		}
	}
	require.Equal(t, []string{"MODIFIED a 2", "MODIFIED a 3", "MODIFIED a 4", "MODIFIED a 5", "MODIFIED a 6"}, seen)
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	s := serveRecording(t, ServerOptions{ExpireEvery: 2}, "SYNC a 1", "MODIFIED a 2", "MODIFIED a 3")
	s.releaseLines(1)
	w := s.startWatch(t, "&resourceVersion=1")
	require.Contains(t, s.releaseLines(1), Position{"nodes", "2"}, "every resource must be listed again")
	require.Equal(t, []string{"ERROR 410", "end"}, w.readNotifications(2))
	code, _ := s.getPath(t, "/api/v1/nodes?watch=1&resourceVersion=2")
	require.Equal(t, http.StatusGone, code)
	_, body := s.getPath(t, "/api/v1/nodes")
	require.Contains(t, body, `"metadata":{"name":"a","uid":"a","resourceVersion":"2"}`)
	again := s.startWatch(t, "&resourceVersion=2")
	s.releaseLines(1)
	require.Equal(t, []string{"MODIFIED a 3"}, again.readNotifications(1), "a list makes its version one to watch from")
}

func TestTheRecordersBreaks(t *testing.T) {
	t.Parallel()
	s := serveRecording(t, ServerOptions{}, "SYNC a 1", "SYNC b 1", "WATCH_CLOSED", "MODIFIED a 3", "WATCH_ERROR", "LIST_ERROR", "SYNC a 9", "MODIFIED a 10")
	s.releaseLines(2)
	w := s.startWatch(t, "&resourceVersion=1")
	require.Empty(t, s.releaseLines(1))
	require.Equal(t, []string{"end"}, w.readNotifications(1), "it was resumed: a cut")
	w = s.startWatch(t, "&resourceVersion=1")
	s.releaseLines(1)
	require.Equal(t, []string{"MODIFIED a 3"}, w.readNotifications(1))
	s.releaseLines(2)
	require.Equal(t, []string{"ERROR 410", "end"}, w.readNotifications(2), "it had to list: the history is gone")
	code, _ := s.getPath(t, "/api/v1/nodes")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, []Position{{"nodes", "9"}}, s.releaseLines(1))
	_, body := s.getPath(t, "/api/v1/nodes")
	require.NotContains(t, body, `"name":"b"`, "deleted unseen")
	code, _ = s.getPath(t, "/api/v1/nodes?watch=1&resourceVersion=3")
	require.Equal(t, http.StatusGone, code)
	w = s.startWatch(t, "&resourceVersion=9")
	s.releaseLines(1)
	require.Equal(t, []string{"MODIFIED a 10"}, w.readNotifications(1))
}

func TestPlayWaitsAndKeepsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec, err := Open(zipRecording(t, renderLines("SYNC a 1", "MODIFIED a 2", "WATCH_CLOSED", "MODIFIED a 3")...), "rec", nil)
		require.NoError(t, err)
		var clock time.Time
		var log []string
		started := time.Now()
		err = Play(t.Context(), rec, NewServer(rec, ServerOptions{}), Hooks{
			Clock:   func(at time.Time) { clock = at },
			Watched: func(string) bool { return true },
			Taken: func(_ context.Context, resource, version string) error {
				log = append(log, fmt.Sprintf("%s %s at %s", resource, version, clock.Format("05")))
				return nil
			},
			Speed: 2,
		})
		require.NoError(t, err)
		require.Equal(t, []string{"nodes 1 at 00", "nodes 2 at 01", "nodes 3 at 03"}, log)
		require.Equal(t, 1500*time.Millisecond, time.Since(started), "three seconds at twice the speed")

		err = Play(t.Context(), rec, NewServer(rec, ServerOptions{}), Hooks{
			Clock: func(time.Time) {}, Watched: func(string) bool { return true },
			Taken: func(context.Context, string, string) error { return context.DeadlineExceeded },
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "play rec: line 1")
	})
}
