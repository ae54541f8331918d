package api_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/whatif"
)

// fakeReader answers what its fields say, and nothing else.
type fakeReader struct {
	listJSON func(context.Context, trail.View, trail.Query) (trail.Page[json.RawMessage], error)
	listText func(context.Context, trail.View, trail.Query) (trail.Table, error)
	why      func(context.Context, trail.Question) (trail.Answer, error)
	whyNot   func(context.Context, trail.Question) (trail.NotAnswer, error)
	names    func(context.Context, trail.NameQuery) ([]string, error)
	whatIf   func(context.Context, whatif.Question) (whatif.Answer, error)
	backtest func(context.Context, backtest.Question) (backtest.Answer, error)

	recorders []trail.RecorderStatus
	nodes     []trail.NodeSummary
	fleet     []trail.FleetLine
	found     []trail.Found
	compared  []trail.ClusterComparison
}

func (f *fakeReader) Fleet(context.Context, bool) ([]trail.FleetLine, error) { return f.fleet, nil }

func (f *fakeReader) Compare(context.Context, trail.CompareQuery) ([]trail.ClusterComparison, error) {
	return f.compared, nil
}

func (f *fakeReader) Find(context.Context, string, string) ([]trail.Found, int, error) {
	return f.found, len(f.found), nil
}

func (f *fakeReader) DrainForecast(context.Context, trail.Question) (forecast.Drain, error) {
	return forecast.Drain{Node: "worker-1", Guests: []forecast.Leaving{}}, nil
}

func (f *fakeReader) Limits(context.Context, string) ([]forecast.Limits, error) { return nil, nil }

func (f *fakeReader) Weekly(context.Context, trail.WeeklyQuery) ([]trail.Weekly, error) {
	return nil, nil
}

func (f *fakeReader) WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error) {
	return f.whatIf(ctx, q)
}

func (f *fakeReader) Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error) {
	return f.backtest(ctx, q)
}

func (f *fakeReader) ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
	return f.listJSON(ctx, v, q)
}

func (f *fakeReader) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	return f.listText(ctx, v, q)
}

func (f *fakeReader) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	return f.why(ctx, q)
}

func (f *fakeReader) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	return f.whyNot(ctx, q)
}

func (f *fakeReader) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	return f.names(ctx, q)
}

func (f *fakeReader) Nodes(context.Context, trail.NodeQuery) ([]trail.NodeSummary, error) {
	return f.nodes, nil
}

func (f *fakeReader) Settings(context.Context, trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	return nil, nil
}

func (f *fakeReader) Recorders(context.Context, string, time.Time, time.Time) ([]trail.RecorderStatus, error) {
	return f.recorders, nil
}

// newFailingReader answers everything with an error.
func newFailingReader(err error) *fakeReader {
	return &fakeReader{
		listJSON: func(context.Context, trail.View, trail.Query) (trail.Page[json.RawMessage], error) {
			return trail.Page[json.RawMessage]{}, err
		},
		why: func(context.Context, trail.Question) (trail.Answer, error) { return trail.Answer{}, err },
	}
}

// sendGet sends a GET and returns what came.
func sendGet(t *testing.T, h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), target)
	return w
}

// problemIn reads a problem document.
func problemIn(t *testing.T, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), w.Body)
	var p api.Problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	require.Equal(t, w.Code, p.Status)
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
	require.Equal(t, http.StatusText(w.Code), p.Title)
	return p
}

// TestErrorsBecomeProblems shows clients the class of an error, and logs what it was.
func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	secret := errors.New("ERROR: relation secrets (SQLSTATE 42P01)")
	for _, c := range []struct {
		name   string
		err    error
		code   int
		says   string
		failed bool
	}{
		{"unknown", fmt.Errorf("VM a/b: %w: look elsewhere", trail.ErrNotFound), http.StatusNotFound, "VM a/b: nothing found: look elsewhere", false},
		{"in several clusters", &trail.AmbiguousError{Name: "a/b", Clusters: []string{"c1", "c2"}}, http.StatusConflict, "choose one with ?cluster=", false},
		{"refused", fmt.Errorf("x: %w: %w", trail.ErrRefused, secret), http.StatusBadRequest, "take page from the header Link", false},
		{"slow", fmt.Errorf("x: %w", context.DeadlineExceeded), http.StatusServiceUnavailable, "longer than 5s: ask for less", true},
		{"away", secret, http.StatusServiceUnavailable, "the database cannot answer now", true},
		{"gone", context.Canceled, http.StatusServiceUnavailable, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var failed []error
			h := api.Server{Readers: api.ForAll(newFailingReader(c.err)), Failed: func(err error) { failed = append(failed, err) }}.Handler()
			w := sendGet(t, h, "/api/v1/vms/a/b/why")
			p := problemIn(t, w)
			require.Equal(t, c.code, p.Status)
			require.Contains(t, p.Detail, c.says)
			require.NotContains(t, w.Body.String(), "SQLSTATE")
			require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
			require.Equal(t, c.failed, len(failed) == 1, failed)
			require.Equal(t, c.code == http.StatusServiceUnavailable, w.Header().Get("Retry-After") != "")
			if c.code == http.StatusConflict {
				require.Equal(t, []string{"c1", "c2"}, p.Clusters)
				require.Equal(t, "a/b", p.Name)
			}
		})
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := api.Server{Readers: api.ForAll(newFailingReader(errors.New("not to be asked")))}.Handler()
	require.Contains(t, problemIn(t, sendGet(t, h, "/api/v1/evictions")).Detail, "/docs lists what there is")
	code, body, header := sendPost(t, h, "/api/v1/requests", "")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	require.Equal(t, "GET, HEAD", header.Get("Allow"))
	require.Contains(t, body, "POST does nothing here: use GET or HEAD")
	require.Equal(t, "application/problem+json", header.Get("Content-Type"))
}

// TestSlowQuestionsEnd stops after five seconds, also when the reader does not.
func TestSlowQuestionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := api.Server{Readers: api.ForAll(&fakeReader{why: func(ctx context.Context, _ trail.Question) (trail.Answer, error) {
			<-ctx.Done()
			return trail.Answer{}, ctx.Err()
		}})}.Handler()
		require.Equal(t, http.StatusServiceUnavailable, sendGet(t, h, "/api/v1/vms/a/b/why").Code)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestTagsAndCompression sends an answer once, and then only that it still holds.
func TestTagsAndCompression(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1000)
	h := api.Server{Readers: api.ForAll(&fakeReader{why: func(_ context.Context, q trail.Question) (trail.Answer, error) {
		return trail.Answer{Paragraph: long + q.Cluster}, nil
	}})}.Handler()
	plain := sendGet(t, h, "/api/v1/vms/a/b/why")
	require.Equal(t, http.StatusOK, plain.Code)
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	tag := plain.Header().Get("ETag")
	require.True(t, strings.HasPrefix(tag, `W/"`), tag)

	packed := sendGet(t, h, "/api/v1/vms/a/b/why", "Accept-Encoding", "zstd, gzip")
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	require.Equal(t, tag, packed.Header().Get("ETag"))
	require.Contains(t, packed.Header().Values("Vary"), "Accept-Encoding")
	unpack, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(unpack)
	require.NoError(t, err)
	require.Equal(t, plain.Body.String(), string(text))

	for sent, code := range map[string]int{tag: 304, `"x", ` + tag: 304, strings.TrimPrefix(tag, "W/"): 304, "*": 304, `W/"x"`: 200, "": 200} {
		w := sendGet(t, h, "/api/v1/vms/a/b/why", "If-None-Match", sent, "Accept-Encoding", "gzip")
		require.Equal(t, code, w.Code, sent)
		require.Equal(t, tag, w.Header().Get("ETag"))
		require.Equal(t, code == http.StatusNotModified, w.Body.Len() == 0)
	}
	require.Equal(t, 200, sendGet(t, h, "/api/v1/vms/a/b/why?cluster=c", "If-None-Match", tag).Code)
}
