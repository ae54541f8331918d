package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	var status trail.RecorderStatus
	since := time.Date(2026, 11, 21, 0, 30, 0, 0, time.UTC)
	h := api.Server{Health: &api.Health{
		Status:  func(context.Context) trail.RecorderStatus { return status },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }),
	}}.Handler()
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w.Code, w.Body.String()
	}
	recording := trail.RecorderStatus{State: trail.RecorderRecording}
	blind := trail.RecorderStatus{State: trail.RecorderNotRecording, Since: since, Why: []string{"Cannot watch pods."}, Details: []string{"dial tcp"}, Unready: true}
	readOnly := trail.RecorderStatus{State: trail.RecorderReadOnly, Since: since, Why: []string{"It takes no writes."}}
	for _, c := range []struct {
		name, method, path string
		status             trail.RecorderStatus
		code               int
		body               string
	}{
		{"alive although nothing is ready", http.MethodGet, "/livez", trail.RecorderStatus{State: trail.RecorderNotRecording, Unready: true}, http.StatusOK, "ok\n"},
		{"ready", http.MethodGet, "/readyz", recording, http.StatusOK, "ok\n"},
		{"each reason on a line", http.MethodGet, "/readyz", blind, http.StatusServiceUnavailable, "not_recording since 2026-11-21T00:30:00Z\nCannot watch pods.\ndial tcp\n"},
		{"what is kept makes it ready", http.MethodGet, "/readyz", readOnly, http.StatusOK, "database_read_only since 2026-11-21T00:30:00Z\nIt takes no writes.\n"},
		{"metrics", http.MethodGet, "/metrics", recording, http.StatusOK, "metrics"},
		{"only for reading", http.MethodPost, "/metrics", recording, http.StatusMethodNotAllowed, ""},
		{"nothing else", http.MethodGet, "/secret", recording, http.StatusNotFound, "404 page not found\n"},
	} {
		status = c.status
		code, body := get(c.method, c.path)
		require.Equal(t, c.code, code, c.name)
		require.Equal(t, c.body, body, c.name)
	}
}
