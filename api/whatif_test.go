package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// askWhatIf sends a question and returns what came.
func askWhatIf(t *testing.T, r api.Reader, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	api.Server{Readers: api.ForAll(r)}.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.WhatIfPath, strings.NewReader(body)))
	return w
}

func TestWhatIfQuestion(t *testing.T) {
	t.Parallel()
	var got whatif.Question
	answer := whatif.Answer{Cluster: "prod", Policies: []whatif.Result{{Name: "try-once"}}, Assumptions: []whatif.Assumption{whatif.AssumeAsked}}
	reader := &fakeReader{whatIf: func(_ context.Context, q whatif.Question) (whatif.Answer, error) {
		got = q
		return answer, nil
	}}
	w := askWhatIf(t, reader, `{"cluster": "prod", "namespace": "shop", "node": "n1", "since": "2026-11-01", "until": "2026-11-08T12:00:00Z",
		"policies": ["try-once", "base=5m cap=1h"], "sweep": "give-up-after=1..3", "sweep_with": "keep-mark"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var back whatif.Answer
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &back))
	require.Equal(t, answer, back)
	require.Equal(t, []string{"prod", "shop", "n1"}, []string{got.Cluster, got.Namespace, got.Node})
	require.Equal(t, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), got.Since)
	require.Equal(t, time.Date(2026, 11, 8, 12, 0, 0, 0, time.UTC), got.Until)
	var names []string
	for _, p := range got.All() {
		names = append(names, p.String())
	}
	require.Equal(t, []string{"try-once", "base=5m cap=1h", "keep-mark give-up-after=1", "keep-mark give-up-after=2", "keep-mark give-up-after=3"}, names)

	again := api.NewWhatIfBody(got)
	same, err := again.Question(time.Now())
	require.NoError(t, err)
	require.Equal(t, got, same, "a client sends what it was asked")
	for _, body := range []string{"", "{}"} {
		require.Equal(t, http.StatusOK, askWhatIf(t, reader, body).Code)
		require.Equal(t, whatif.Question{}, got)
	}
}

func TestWhatIfIsRefused(t *testing.T) {
	t.Parallel()
	never := &fakeReader{}
	for body, want := range map[string]string{
		`{`: "expected one JSON object", `[]`: "expected one JSON object", `{} {}`: "expected one JSON object", `{"colour": "red"}`: "expected one JSON object",
		`{"policies": ["faster"]}`: "expected one of recorded", `{"since": "soon"}`: "since", `{"until": "soon"}`: "until", `{"sweep": "base=5m"}`: "expected SETTING=FROM..TO",
		`{"since": "91d"}`: "at most 90 days", `{"since": "2026-01-02", "until": "2026-01-01"}`: "must be before", `{"sweep": "base=5m..1h", "sweep_with": "slow"}`: "expected one of recorded",
		`{"policies": [` + strings.Repeat(`"try-once",`, 32) + `"try-once"]}`: "33 policies: at most 32", `{"node": "\u0000"}`: "node: expected text",
	} {
		w := askWhatIf(t, never, body)
		require.Equal(t, http.StatusBadRequest, w.Code, body)
		require.Contains(t, problemIn(t, w).Detail, want, body)
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, askWhatIf(t, never, `{"node": "`+strings.Repeat("n", 64<<10)+`"}`).Code)
	for _, c := range []struct {
		err    error
		status int
	}{
		{trail.ErrNotFound, http.StatusNotFound}, {&trail.AmbiguousError{Name: "the history", Clusters: []string{"a", "b"}}, http.StatusConflict},
		{context.DeadlineExceeded, http.StatusServiceUnavailable}, {errors.New("away"), http.StatusServiceUnavailable},
	} {
		w := askWhatIf(t, &fakeReader{whatIf: func(context.Context, whatif.Question) (whatif.Answer, error) { return whatif.Answer{}, c.err }}, "{}")
		require.Equal(t, c.status, w.Code)
	}
	w := httptest.NewRecorder()
	api.Server{Readers: api.ForAll(never)}.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, api.WhatIfPath, http.NoBody))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "POST", w.Header().Get("Allow"))
}

// TestOneWhatIfAtATime asks two at once: the second waits for the first, and other questions do not.
func TestOneWhatIfAtATime(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 2), make(chan struct{})
	reader := &fakeReader{
		whatIf: func(context.Context, whatif.Question) (whatif.Answer, error) {
			begun <- struct{}{}
			<-end
			return whatif.Answer{}, nil
		},
		names: func(context.Context, trail.NameQuery) ([]string, error) { return nil, nil },
	}
	h := api.Server{Readers: api.ForAll(reader)}.Handler()
	done := make(chan int, 2)
	for range 2 {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.WhatIfPath, http.NoBody))
			done <- w.Code
		}()
	}
	<-begun
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/names?kind=vm", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, begun, "only one is asked")
	close(end)
	<-begun
	require.Equal(t, []int{http.StatusOK, http.StatusOK}, []int{<-done, <-done})
}

// TestSlowQuestionsKeepNobodyOut has connections that never finish their question: anyone who asks a whole one is answered at once, and the others get an error.
func TestSlowQuestionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(api.Server{Readers: api.ForAll(&fakeReader{whatIf: func(context.Context, whatif.Question) (whatif.Answer, error) {
		return whatif.Answer{}, nil
	}})}.Handler())
	t.Cleanup(server.Close)
	var unfinished []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", api.WhatIfPath)
		require.NoError(t, err)
		unfinished = append(unfinished, conn)
	}
	for range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+api.WhatIfPath, strings.NewReader("{}"))
		require.NoError(t, err)
		resp, err := server.Client().Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	for _, conn := range unfinished {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
}
