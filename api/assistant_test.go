package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// TestAssistantThatDoesNotAnswer has a question of an assistant end without an answer, as when its time is over: that
// is said, and nobody on the way keeps it.
func TestAssistantThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := api.Server{
		Readers: api.ForAll(&fakeReader{}),
		Assistant: func(api.Reader, string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "no-cache, no-transform")
			})
		},
	}.Handler()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, api.AssistantPath, strings.NewReader("{}"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "there was no answer in time: ask for less, or later")
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
	require.NotEmpty(t, w.Header().Get("Retry-After"))
}
