package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Stream is GET /api/v1/stream: server-sent events that say that something has changed, so that a page can be fetched again.
type Stream struct {
	// Changes returns the times of what changed for a question within a time before now, as far as a caller may see it.
	Changes func(ctx context.Context, scope trail.Scope, q trail.Query, within time.Duration) ([]time.Time, error)
	// Done ends all streams when it is closed: nil never is.
	Done <-chan struct{}
}

// StreamForAll is a Stream that announces all changes to every caller, until done is closed.
func StreamForAll(from interface {
	Changes(ctx context.Context, q trail.Query, within time.Duration) ([]time.Time, error)
}, done <-chan struct{}) *Stream {
	return &Stream{Done: done, Changes: func(ctx context.Context, _ trail.Scope, q trail.Query, within time.Duration) ([]time.Time, error) {
		return from.Changes(ctx, q, within)
	}}
}

// Bounds of streams.
const (
	streamEvery  = 2 * time.Second  // between two looks at the database
	streamWithin = 30 * time.Second // how far each looks back, so that what was slow is not missed
	streamsMost  = 200              // at the same time
)

// streamParams say of what is to be heard.
func streamParams() []param[asked] {
	return slices.Concat([]param[asked]{clusterParam()}, vmParams(), []param[asked]{nodeParam()})
}

func (s Stream) buildRoute(c *crowd, gate *Gate) route {
	return route{
		method: http.MethodGet, path: "/api/v1/stream", tag: tagStream, id: "stream", short: "Hear of what is new",
		about: "Server-sent events: one named changed, with the time by the database's clock, for each transaction that changed what the " +
			"timeline announces changes of what is asked for. Ask a list with changes-since for the rows, or fetch a page again.",
		params: describeParams(streamParams()), problems: readProblems,
		answers: []answer{{http.StatusOK, "Events, until the client goes.", []string{headerCached}, []mediaTypeEntry{{"text/event-stream", newTextSchema(), nil}}}},
		handler: s.newHandler(c, gate),
	}
}

// newHandler asks the database for each listener: what it costs is an index scan of the last seconds.
func (s Stream) newHandler(c *crowd, gate *Gate) http.Handler {
	room := make(chan struct{}, streamsMost)
	return gate.requireRight(rightToSeeVMs, func(w http.ResponseWriter, r *http.Request, _ caller) {
		var about asked
		if err := readParams(streamParams(), r.URL.RawQuery, time.Now().UTC(), &about); err != nil {
			writeProblem(w, http.StatusBadRequest, err.Error())
			return
		}
		done, err := c.acquireHolding(r.Context(), holdStream)
		if err != nil {
			busyProblem(err).write(w)
			return
		}
		defer done()
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			s.writeEvents(w, r, func(ctx context.Context) ([]time.Time, error) {
				who, err := gate.authorizeRequest(r, rightToSeeVMs) // still
				if err != nil {
					return nil, err
				}
				left, err := c.awaitTurn(ctx)
				if err != nil {
					return nil, err
				}
				defer func() {
					sent, _ := left(0)
					sent()
				}()
				return s.Changes(ctx, who.scope, about.Query, streamWithin)
			})
		default:
			retryAfter(w, time.Minute)
			writeProblem(w, http.StatusServiceUnavailable, "too many pages follow what is new: load the page again in a minute")
		}
	})
}

// writeEvents writes an event for each change, and a comment where there is none so that a broken connection is noticed.
func (s Stream) writeEvents(w http.ResponseWriter, r *http.Request, look func(context.Context) ([]time.Time, error)) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintf(w, "retry: %d\n\n", (5 * time.Second).Milliseconds())
	if out.Flush() != nil {
		return
	}
	next := time.NewTicker(streamEvery)
	defer next.Stop()
	var known map[time.Time]bool // what was changed in the time that is looked back; nil before the first look
	for {
		changed, err := look(r.Context())
		var refused *Problem
		if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
			return // the caller may see nothing any more
		}
		if err == nil {
			now := make(map[time.Time]bool, len(changed))
			var latest time.Time
			for _, at := range changed {
				if now[at] = true; known != nil && !known[at] && at.After(latest) {
					latest = at
				}
			}
			known = now
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
		case <-next.C:
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		}
	}
}
