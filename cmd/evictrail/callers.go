package main

import (
	"net"
	"sync"
)

// Connections to the observer's listener: what is above is closed at once. All API servers may be behind one address.
const (
	callersAtOnce  = 512
	callersFromOne = 256
)

// callers is a listener whose connections are bounded, in all and of each address, so that no address takes all.
type callers struct {
	net.Listener
	most, fromOne int

	mu   sync.Mutex
	from map[string]int // connections by address; those without any are absent
	all  int
}

func newCallers(l net.Listener, most, fromOne int) *callers {
	return &callers{Listener: l, most: most, fromOne: fromOne, from: map[string]int{}}
}

// Accept implements net.Listener.
func (c *callers) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		if c.enter(address) {
			return &caller{Conn: conn, leave: sync.OnceFunc(func() { c.leave(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (c *callers) enter(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || c.from[address] >= c.fromOne {
		return false
	}
	c.all++
	c.from[address]++
	return true
}

func (c *callers) leave(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.from[address]--; c.from[address] == 0 {
		delete(c.from, address)
	}
}

// caller is one of the connections.
type caller struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *caller) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
