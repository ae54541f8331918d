package main

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// What is open at the same time. A connection costs some 50 KiB with TLS, beside what it is answered.
const (
	connectionsMost = 512
	connectionsOne  = 128       // from one host, behind which many may be: an ingress
	connectionSend  = 256 << 10 // bytes that the kernel holds for a reader: what it holds counts for our memory
)

// fairListener bounds the connections that are open. Where there are as many as there may be, a host that has fewer takes the place of the
// oldest one of the host that has most: so nobody who opens many keeps out a probe, Prometheus, or an API server.
type fairListener struct {
	net.Listener

	refused func(from netip.Addr) // is called for each connection that is refused, or makes room

	mu    sync.Mutex
	hosts map[netip.Addr][]*fairConn // in the order in which they came
	open  int
}

// fairConn is a connection that releases its place when it is closed.
type fairConn struct {
	net.Conn

	from netip.Addr
	once sync.Once
	left func()
}

func newFairListener(l net.Listener, refused func(from netip.Addr)) *fairListener {
	return &fairListener{Listener: l, refused: refused, hosts: map[netip.Addr][]*fairConn{}}
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, displaced := l.admitConn(conn)
		if displaced != nil {
			l.refused(remoteHost(displaced.RemoteAddr()))
			_ = displaced.Close()
		}
		if c != nil {
			return c, nil
		}
	}
}

// admitConn returns the connection, where there is room for it, and the one that has to be closed.
func (l *fairListener) admitConn(conn net.Conn) (*fairConn, net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(connectionSend)
	}
	from := remoteHost(conn.RemoteAddr())
	c := &fairConn{Conn: conn, from: from}
	c.left = func() { l.releaseConn(c) }
	l.mu.Lock()
	defer l.mu.Unlock()
	var displaced net.Conn
	switch {
	case len(l.hosts[from]) >= connectionsOne:
		return nil, conn
	case l.open >= connectionsMost:
		oldest := l.oldestOfMost()
		if len(l.hosts[oldest.from]) <= len(l.hosts[from])+1 {
			return nil, conn
		}
		l.forgetConn(oldest)
		displaced = oldest
	}
	l.hosts[from] = append(l.hosts[from], c)
	l.open++
	return c, displaced
}

// oldestOfMost returns the oldest connection of the host that has most.
func (l *fairListener) oldestOfMost() *fairConn {
	var most []*fairConn
	for _, of := range l.hosts {
		if len(of) > len(most) {
			most = of
		}
	}
	return most[0]
}

func (l *fairListener) releaseConn(c *fairConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetConn(c)
}

// forgetConn takes a connection off those that are open, if it is one of them.
func (l *fairListener) forgetConn(c *fairConn) {
	of := l.hosts[c.from]
	i := slices.Index(of, c)
	if i < 0 {
		return
	}
	l.open--
	if l.hosts[c.from] = slices.Delete(of, i, i+1); len(of) == 1 {
		delete(l.hosts, c.from)
	}
}

// Close implements net.Conn.
func (c *fairConn) Close() error {
	c.once.Do(c.left)
	return c.Conn.Close()
}

// remoteHost returns the host that an address is of: an IPv6 one has a /64.
func remoteHost(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host
	}
	network, _ := host.Prefix(64)
	return network.Addr()
}
