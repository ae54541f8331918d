package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections hold no byte: what is written is read, or waits.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestStalledReadersAreCut has clients read an answer at several speeds, and one that lasts.
func TestStalledReadersAreCut(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	for _, c := range []struct {
		name           string
		path           string
		chunk          int // bytes that are read at once
		every          time.Duration
		stops          int // bytes after which nothing is read any more
		whole          bool
		after, shortly time.Duration // when it ends
	}{
		{"reads at once", "/large", 1 << 20, 0, size + 1, true, 0, time.Second},
		{"reads 128 KiB a second", "/large", 64 << 10, 500 * time.Millisecond, size + 1, true, 75 * time.Second, 90 * time.Second},
		{"reads nothing", "/large", 1, 0, 0, false, writeStall, writeStall + time.Second},
		{"reads a part", "/large", 64 << 10, 0, size / 2, false, writeStall, writeStall + time.Second},
		{"reads 8 KiB a second", "/large", 64 << 10, 8 * time.Second, size + 1, false, writeGrace, writeGrace + 2*writeStall},
		{"listens for an hour", "/events", 3, 0, size, true, time.Hour, time.Hour + time.Second},
		{"listens for a while", "/events", 3, 0, 100, false, writeStall, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shed := shedCauses{}
				mux := http.NewServeMux()
				mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", size)) })
				mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
					for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(2 * time.Second) {
						if _, err := io.WriteString(w, ":\n\n"); err != nil || http.NewResponseController(w).Flush() != nil {
							return
						}
					}
				})
				ended := make(chan time.Duration, 1)
				began := time.Now()
				h := Server{Shed: shed.countCause}.cutOffSlowReaders(mux)
				listener := make(pipes, 1)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { ended <- time.Since(began) }()
					h.ServeHTTP(w, r)
				})}
				go func() { _ = server.Serve(listener) }()
				ours, theirs := net.Pipe()
				listener <- theirs
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://evictrail"+c.path, http.NoBody)
				require.NoError(t, err)
				require.NoError(t, r.Write(ours))
				read := make(chan int64, 1)
				go func() {
					n := int64(0)
					defer func() { read <- n }()
					if c.stops == 0 {
						return
					}
					answer, err := http.ReadResponse(bufio.NewReaderSize(ours, 16), r)
					if err != nil {
						return
					}
					for n < int64(c.stops) {
						got, err := io.CopyN(io.Discard, answer.Body, int64(c.chunk))
						if n += got; err != nil {
							return
						}
						time.Sleep(c.every)
					}
				}()
				took := <-ended
				require.GreaterOrEqual(t, took, c.after)
				require.Less(t, took, c.shortly)
				require.Equal(t, map[bool]int{true: 0, false: 1}[c.whole], shed.of[ShedSlow])
				close(listener)
				_ = ours.Close()
				_ = server.Close()
				if got := <-read; c.whole && c.path == "/large" {
					require.Equal(t, int64(size), got)
				}
			})
		})
	}
}
