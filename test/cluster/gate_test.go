package cluster_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/ports"
)

// gate stands between evictrail and the API server, and can be shut.
type gate struct {
	t        *testing.T
	at, to   string // addresses
	mu       sync.Mutex
	listener net.Listener // nil while it is shut
	open     map[net.Conn]struct{}
}

// newGate returns a gate before an API server, and the configuration that goes through it.
func newGate(t *testing.T, config *rest.Config) (*gate, *rest.Config) {
	t.Helper()
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	g := &gate{t: t, at: ports.Free(t), to: server.Host, open: map[net.Conn]struct{}{}}
	g.allowTraffic()
	t.Cleanup(g.blockTraffic)
	through := rest.CopyConfig(config)
	through.Host = "https://" + g.at
	return g, through
}

// allowTraffic opens the gate.
func (g *gate) allowTraffic() {
	l, err := net.Listen("tcp", g.at)
	require.NoError(g.t, err)
	g.mu.Lock()
	g.listener = l
	g.mu.Unlock()
	go g.serve(l)
}

// blockTraffic shuts the gate: connections are refused, those that are open break.
func (g *gate) blockTraffic() {
	g.mu.Lock()
	if g.listener != nil {
		_ = g.listener.Close()
	}
	g.listener = nil
	g.mu.Unlock()
	g.cutConns()
}

func (g *gate) serve(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		g.trackConns(in, out)
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = in.Close()
				_ = out.Close()
			}()
		}
	}
}

func (g *gate) trackConns(both ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range both {
		g.open[c] = struct{}{}
	}
}

// cutConns breaks every connection, such as those of watches. New ones are let through unless the gate is shut.
func (g *gate) cutConns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
	clear(g.open)
}
