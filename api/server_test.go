package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func TestEachAnswerIsObserved(t *testing.T) {
	t.Parallel()
	var seen []string
	var denied []string
	h := api.Server{
		Health: &api.Health{Status: func(context.Context) trail.RecorderStatus { return trail.RecorderStatus{Unready: true} }, Metrics: http.NotFoundHandler()},
		Audit:  &api.Audit{Access: api.Access{Denied: func(cause string) { denied = append(denied, cause) }}},
		Observe: func(route, method string, status int, took time.Duration) {
			require.GreaterOrEqual(t, took, time.Duration(0))
			seen = append(seen, fmt.Sprintf("%s %s %d", method, route, status))
		},
	}.Handler()
	for _, r := range []*http.Request{
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil),
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil),
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/audit", strings.NewReader("{}")),
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/secret", nil),
	} {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, []string{"GET /livez 200", "GET /readyz 503", "POST /audit 403"}, seen, "unknown paths make no series")
	require.Equal(t, []string{api.DeniedAll}, denied)
}

func TestBadCredentialsAreCounted(t *testing.T) {
	t.Parallel()
	var denied []string
	h := api.Server{Audit: &api.Audit{Access: api.Access{
		Tokens: func() ([]string, error) { return []string{"good"}, nil }, Denied: func(cause string) { denied = append(denied, cause) },
	}}}.Handler()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/audit", strings.NewReader("{}")))
	require.Equal(t, []string{api.DeniedCredentials}, denied)
}
