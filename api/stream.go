package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Stream is GET /api/v1/stream: server-sent events that say that something has changed, so that a page can be fetched again.
type Stream struct {
	// Changes gives the times of what changed for a question within a time before now.
	Changes func(ctx context.Context, q trail.Query, within time.Duration) ([]time.Time, error)
	// Done ends all streams when it is closed: nil never is.
	Done <-chan struct{}
}

// Bounds of streams.
const (
	streamEvery  = 2 * time.Second  // between two looks at the database
	streamWithin = 30 * time.Second // how far each looks back, so that what was slow is not missed
	streamsMost  = 200              // at the same time
)

// handler gives each listener a look of its own: what it costs is an index scan of the last seconds.
func (s Stream) handler() http.HandlerFunc {
	room := make(chan struct{}, streamsMost)
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		about := trail.Query{Cluster: q.Get("cluster"), Node: q.Get("node")}
		about.Namespace, about.VMI, _ = strings.Cut(q.Get("vm"), "/")
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			s.tell(w, r, about)
		default:
			retryAfter(w, time.Minute)
			problem(w, http.StatusServiceUnavailable, "too many pages follow what is new: load the page again in a minute")
		}
	}
}

// tell writes an event for each change, and a comment where there is none so that a broken connection is noticed.
func (s Stream) tell(w http.ResponseWriter, r *http.Request, about trail.Query) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintf(w, "retry: %d\n\n", (5 * time.Second).Milliseconds())
	if out.Flush() != nil {
		return
	}
	look := time.NewTicker(streamEvery)
	defer look.Stop()
	var told map[time.Time]bool // what was changed in the time that is looked back; nil before the first look
	for {
		changed, err := s.Changes(r.Context(), about, streamWithin)
		if err == nil {
			now := make(map[time.Time]bool, len(changed))
			var latest time.Time
			for _, at := range changed {
				if now[at] = true; told != nil && !told[at] && at.After(latest) {
					latest = at
				}
			}
			told = now
			if !latest.IsZero() {
				_, err = fmt.Fprintf(w, "event: changed\ndata: {\"changed_at\":%q}\n\n", latest.UTC().Format(time.RFC3339Nano))
			} else {
				_, err = io.WriteString(w, ":\n\n")
			}
			if err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-look.C:
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		}
	}
}
