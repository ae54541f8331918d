package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	var unready []string
	h := api.Server{Health: &api.Health{
		Unready: func(context.Context) []string { return unready },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }),
	}}.Handler()
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		name, method, path string
		unready            []string
		code               int
		body               string
	}{
		{"alive although nothing is ready", http.MethodGet, "/livez", []string{"x"}, http.StatusOK, "ok\n"},
		{"ready", http.MethodGet, "/readyz", nil, http.StatusOK, "ok\n"},
		{"each reason on a line", http.MethodGet, "/readyz", []string{"watch of pods: waiting", "database away"}, http.StatusServiceUnavailable, "watch of pods: waiting\ndatabase away\n"},
		{"metrics", http.MethodGet, "/metrics", nil, http.StatusOK, "metrics"},
		{"only for reading", http.MethodPost, "/metrics", nil, http.StatusMethodNotAllowed, ""},
		{"nothing else", http.MethodGet, "/secret", nil, http.StatusNotFound, "404 page not found\n"},
	} {
		unready = c.unready
		code, body := get(c.method, c.path)
		require.Equal(t, c.code, code, c.name)
		require.Equal(t, c.body, body, c.name)
	}
}
