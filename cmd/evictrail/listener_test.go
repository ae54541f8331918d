package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestConnectionsAreShared opens connections from several hosts until there are as many as there may be, and more: each host has its part, and one
// who opens its first one is let in.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var refused atomic.Int64
	fair := newFairListener(listener, func(netip.Addr) { refused.Add(1) })
	t.Cleanup(func() { _ = fair.Close() })
	accepted := make(chan net.Conn, 2*connectionsMost)
	go func() {
		for {
			c, err := fair.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	address := listener.Addr().String()
	for i := range connectionsOne + 10 {
		dialFrom(t, "127.0.7.1", address)
		if i < connectionsOne {
			<-accepted
		}
	}
	require.Eventually(t, func() bool { return refused.Load() == 10 }, 2*time.Minute, time.Millisecond, "one host has its part and no more")
	for i := 2; fair.openNow() < connectionsMost; i++ {
		for range min(connectionsOne, connectionsMost-fair.openNow()) {
			dialFrom(t, fmt.Sprintf("127.0.7.%d", i), address)
			<-accepted
		}
	}
	probe := dialFrom(t, "127.0.8.1", address)
	theirs := <-accepted
	require.Equal(t, "127.0.8.1", remoteHost(theirs.RemoteAddr()).String())
	require.Equal(t, int64(11), refused.Load(), "the oldest of a host with most made room")
	require.Equal(t, connectionsMost, fair.openNow())
	_, err = theirs.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(probe, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	require.Equal(t, connectionsMost-1, fair.openNow())
}

func (l *fairListener) openNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, of := range l.hosts {
		n += len(of)
	}
	if n != l.open {
		panic(fmt.Sprintf("%d are open, and %d are counted", n, l.open))
	}
	return n
}

// TestProbesAreAnsweredBesideIdleConnections has hosts open as many connections as they can and send nothing: probes are answered.
func TestProbesAreAnsweredBesideIdleConnections(t *testing.T) {
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
	address := s.listener.Addr().String()
	for i := range connectionsMost + 3*connectionsOne {
		dialFrom(t, fmt.Sprintf("127.0.9.%d", 1+i%7), address)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.10.1")}}).DialContext,
	}}
	for range 20 {
		for _, path := range []string{"/livez", "/metrics"} {
			answer, err := client.Get("http://" + address + path)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode)
		}
	}
	stop()
	require.NoError(t, <-ended)
}

// TestCausesAreNamed: what api counts as shed starts at zero in the metrics.
func TestCausesAreNamed(t *testing.T) {
	t.Parallel()
	require.Equal(t, [4]string{api.ShedShare, api.ShedCrowded, api.ShedBytes, api.ShedSlow}, [4]string{metrics.ShedShare, metrics.ShedCrowded, metrics.ShedBytes, metrics.ShedSlow})
}
