package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// TestAuditReadsFewBodiesAtOnce has more senders than there is room for, whose bodies do not end: four bodies are read, which bounds what they hold in
// memory. The others are read when these have ended, and none is refused.
func TestAuditReadsFewBodiesAtOnce(t *testing.T) {
	t.Parallel()
	const room, senders = 4, 20
	synctest.Test(t, func(t *testing.T) {
		var reading, most atomic.Int64
		h := api.Server{Audit: &api.Audit{Access: api.Access{Open: true}, Take: func(_ context.Context, body io.Reader) (any, bool, error) {
			now := reading.Add(1)
			defer reading.Add(-1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
				continue
			}
			_, err := io.Copy(io.Discard, body)
			return "taken", false, err
		}}}.Handler()
		ends := make(chan struct{})
		end := sync.OnceFunc(func() { close(ends) })
		defer end()
		codes := make(chan int, senders)
		for range senders {
			body, more := io.Pipe()
			go func() {
				_, _ = io.WriteString(more, strings.Repeat(" ", 1<<10))
				<-ends
				_ = more.Close()
			}()
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/audit", body))
				codes <- w.Code
			}()
		}
		synctest.Wait()
		require.EqualValues(t, room, reading.Load(), "that are read while none ends")
		end()
		for range senders {
			require.Equal(t, http.StatusOK, <-codes)
		}
		require.LessOrEqual(t, most.Load(), int64(room))
	})
}
