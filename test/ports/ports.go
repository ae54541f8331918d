// Package ports gives the servers of tests addresses to listen on.
package ports

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Systems take the port of an outgoing connection, and of who asks for any port, from 32768 on at the earliest. A port below is not
// taken by one of them between the moment it is given and the moment its server listens.
const first, last = 15000, 32000

var given sync.Map // port: whether this process gave it away

// TB is what Free needs of a test: testing.TB has it, and a program can.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Free gives an address on 127.0.0.1 that nobody listens on, and that this process gave to nobody else.
func Free(tb TB) string {
	tb.Helper()
	for range last - first {
		port := first + rand.IntN(last-first)
		if _, was := given.LoadOrStore(port, true); was {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	tb.Fatalf("no free port from %d to %d", first, last)
	return ""
}
