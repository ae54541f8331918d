// Package ports chooses addresses for the servers of tests.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Systems take the port of an outgoing connection, and of a listener on any port, from 32768 on at the earliest. A port below is not
// taken by one of them between the moment it is chosen and the moment its server listens.
const first, last = 15000, 32000

// TB is what Free needs of a test: testing.TB has it, and a program can.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Free returns an address on 127.0.0.1 on which nobody listens, and that no test or lab of this user is given before this process has ended.
func Free(tb TB) string {
	tb.Helper()
	for range last - first {
		port := first + rand.IntN(last-first)
		locked, err := lockPort(port)
		if err != nil {
			tb.Fatalf("choose a port: %v", err)
		}
		if !locked {
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

// locks are the files of the ports that this process was given: a file that is closed is no longer locked.
var (
	mu    sync.Mutex
	locks []*os.File
)

// lockPort reports whether a port is free, and reserves it for this process: a server may listen on it minutes later, and a second lab chooses ports
// at the same time.
func lockPort(port int) (bool, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("evictrail-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, file.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	locks = append(locks, file)
	return true, nil
}
