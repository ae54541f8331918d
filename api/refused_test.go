package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// TestRefusalsSayWhy: the page says what was too much and when to load it again, not that the database is away.
func TestRefusalsSayWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &heldReader{answer: make(chan struct{})}
		h := Server{Readers: ForAll(r), Site: &web.Site{Readers: web.ForAll(nil)}}.Handler()
		page := func(h http.Handler, address string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			q.RemoteAddr = address + ":1"
			h.ServeHTTP(w, q)
			return w
		}
		for range shareAtOnce {
			go askFrom(t, h, "10.0.0.1", httptest.NewRecorder())
		}
		synctest.Wait()
		w := page(h, "10.0.0.1")
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Contains(t, w.Body.String(), "Too many questions of yours at once: at most 16, and 200 a second.")
		full := Server{Readers: ForAll(r), Site: &web.Site{Readers: web.ForAll(nil)}}.Handler()
		for i := range readQueue {
			go askFrom(t, full, fmt.Sprintf("10.0.1.%d", i), httptest.NewRecorder())
		}
		synctest.Wait()
		w = page(full, "10.0.0.2")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "Too many questions of all callers at once.")
		require.Contains(t, w.Body.String(), "Load the page again after 1 s.")
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.NotContains(t, w.Body.String(), "database")
		close(r.answer)
	})
}

// TestOneCallerHoldsAShare has one host scrape, and follow what is new, as often as it can at once: what is more than its share is refused, and another
// host is answered.
func TestOneCallerHoldsAShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path    string
		most    int
		refusal string
	}{
		{"/metrics", 4, "too many scrapes of yours at once: at most 4"},
		{"/api/v1/stream", 50, "too many pages of yours follow what is new: at most 50"},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shed, goOn := shedCauses{}, make(chan struct{})
				scraped := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-goOn })
				changes := func(context.Context, trail.Query, time.Duration) ([]time.Time, error) { return nil, nil }
				h := Server{Shed: shed.countCause, Health: &Health{Metrics: scraped}, Stream: StreamForAll(changesFunc(changes), goOn)}.Handler()
				var done sync.WaitGroup
				get := func(address string) *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
					r.RemoteAddr = address + ":1"
					h.ServeHTTP(w, r)
					return w
				}
				for range c.most {
					done.Go(func() { get("10.0.0.1") })
				}
				synctest.Wait()
				w := get("10.0.0.1")
				require.Equal(t, http.StatusTooManyRequests, w.Code)
				require.Contains(t, w.Body.String(), c.refusal)
				require.Equal(t, map[string]int{ShedShare: 1}, shed.of)
				other := make(chan int, 1)
				done.Go(func() { other <- get("10.0.0.2").Code })
				synctest.Wait()
				require.Empty(t, other, "it is being answered")
				close(goOn)
				done.Wait()
				require.Equal(t, http.StatusOK, <-other)
				require.Equal(t, http.StatusOK, get("10.0.0.1").Code, "places were released")
			})
		})
	}
}

// changesFunc is where a stream looks for what is new.
type changesFunc func(context.Context, trail.Query, time.Duration) ([]time.Time, error)

// Changes calls it.
func (f changesFunc) Changes(ctx context.Context, q trail.Query, within time.Duration) ([]time.Time, error) {
	return f(ctx, q, within)
}
