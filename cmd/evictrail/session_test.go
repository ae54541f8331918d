package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestServeEndsWhateverIsOpen stops a server to which somebody has a connection on which nothing was ever asked.
func TestServeEndsWhateverIsOpen(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	l := listenFlags{listen: "127.0.0.1:0"}
	s, err := l.bindAddress(t.Context(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.serve(ctx, func(context.Context) trail.RecorderStatus { return trail.RecorderStatus{} }, api.Server{})
	}()
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	answered, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = answered.Close() }()
	_, err = answered.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	require.NoError(t, err)
	_, err = answered.Read(make([]byte, 1)) // the server has taken the connection before this one
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		logText: ` level=INFO msg="watch is back" resource=nodes after=1.5s` + "\n",
		logJSON: `,"level":"INFO","msg":"watch is back","resource":"nodes","after":"1.5s"}` + "\n",
	} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&out)
		log, err := (&logFlags{level: "info", format: format}).newLogger(cmd)
		require.NoError(t, err)
		log.Debug("not logged")
		log.Info("watch is back", "resource", "nodes", "after", 1500*time.Millisecond)
		require.True(t, strings.HasSuffix(out.String(), want), out.String())
	}
	_, err := (&logFlags{level: "loud", format: "xml"}).newLogger(&cobra.Command{})
	require.ErrorContains(t, err, `log-level "loud"`)
	require.ErrorContains(t, err, `log-format "xml"`)
}
