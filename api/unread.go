package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// errTooManyBodies says that too much is being read already.
var errTooManyBodies = errors.New("too many bodies are being read")

// unread bounds the bodies that are being read: how many, how many of one address, and how many bytes they hold together. The zero value
// with its bounds set is ready. It is safe for concurrent use.
type unread struct {
	bodies, fromOne int   // at most, of all addresses and of each
	bytes           int64 // at most, of all bodies together

	mu   sync.Mutex
	from map[string]int // bodies by address; those without any are absent
	all  int
	held int64
}

// readRequest returns the body of a request. It has arrived as a whole within a time, and has at most so many bytes; the error is errTooManyBodies,
// os.ErrDeadlineExceeded or *http.MaxBytesError where it is not.
func (u *unread) readRequest(w http.ResponseWriter, r *http.Request, within time.Duration, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if !u.acquirePlace(address) {
		return nil, errTooManyBodies
	}
	body := &unreadBody{from: http.MaxBytesReader(w, r.Body, most), unread: u}
	defer u.releasePlace(address, body)
	// A writer that knows no deadlines is that of a test: the server's own do.
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(within))
	raw, err := io.ReadAll(body)
	if err == nil {
		_ = c.SetReadDeadline(time.Time{}) // it would end the request while it is answered
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = os.ErrDeadlineExceeded
	}
	return raw, err
}

// acquirePlace takes a place among those of an address; false: there is none.
func (u *unread) acquirePlace(address string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all >= u.bodies || u.from[address] >= u.fromOne {
		return false
	}
	if u.from == nil {
		u.from = map[string]int{}
	}
	u.all++
	u.from[address]++
	return true
}

// releasePlace releases the place, and what the body held.
func (u *unread) releasePlace(address string, body *unreadBody) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all--
	u.held -= body.held
	if u.from[address]--; u.from[address] == 0 {
		delete(u.from, address)
	}
}

// unreadBody counts what it reads among what all of them hold.
type unreadBody struct {
	from   io.Reader
	unread *unread
	held   int64 // bytes; guarded by unread.mu
}

// Read implements io.Reader.
func (b *unreadBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.unread.mu.Lock()
	defer b.unread.mu.Unlock()
	b.held += int64(n)
	b.unread.held += int64(n)
	if b.unread.held > b.unread.bytes {
		return n, errTooManyBodies
	}
	return n, err
}
