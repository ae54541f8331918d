package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProfilesAreForThisMachine serves profiles at a loopback address, and refuses others.
func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":6060", "0.0.0.0:6060", "10.0.0.7:6060", "localhost:6060", "[::]:6060", "6060"} {
		p := profiling{address: address}
		require.ErrorContains(t, p.checkFlags(), "127.0.0.1:6060", address)
	}
	p := profiling{address: "127.0.0.1:0"}
	require.NoError(t, p.checkFlags())
	ctx, stop := context.WithCancel(t.Context())
	require.NoError(t, p.bindAddress(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.serveProfiles(ctx, slog.New(slog.DiscardHandler))
	}()
	for path, part := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "TestProfilesAreForThisMachine", "/debug/pprof/heap": ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.listener.Addr().String()+path, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		require.NotEmpty(t, body)
		require.Contains(t, string(body), part)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	<-ended
	none := profiling{}
	require.NoError(t, none.checkFlags())
	require.NoError(t, none.bindAddress(t.Context()))
	none.serveProfiles(t.Context(), slog.New(slog.DiscardHandler))
}
