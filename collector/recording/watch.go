package recording

import (
	"context"
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"time"
)

// stream is one watch request that is being answered.
type stream struct {
	w         http.ResponseWriter
	r         *resource
	server    *Server
	bookmarks bool
	next      int // index in the resource's whole log of the next notification
	epoch     int
	sent      int // notifications since the initial ones
}

// serveWatch answers a watch request until the client leaves, its time is over, or the server breaks it.
func (s *Server) serveWatch(w http.ResponseWriter, req *http.Request, r *resource) {
	query := req.URL.Query()
	st := &stream{w: w, r: r, server: s, bookmarks: isTrue(req, "allowWatchBookmarks")}
	initial, refused := st.findStart(parseVersion(query.Get("resourceVersion")), isTrue(req, "sendInitialEvents"))
	if refused != "" {
		writeStatus(w, http.StatusGone, "Expired", refused)
		return
	}
	ctx, cancel := withTimeout(req.Context(), query.Get("timeoutSeconds"))
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, n := range initial {
		st.writeNotification(string(n.kind), n.object)
	}
	st.flush()
	st.sendReleased(ctx)
}

func withTimeout(ctx context.Context, seconds string) (context.Context, context.CancelFunc) {
	n, err := strconv.Atoi(seconds)
	if err != nil || n <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(n)*time.Second)
}

// findStart finds where the stream starts and what it sends at first: the whole state when it was asked for or when no
// version is named. It is refused, with the message, where the version is forgotten.
func (st *stream) findStart(from uint64, sendInitial bool) (initial []notification, refused string) {
	r := st.r
	r.mu.Lock()
	defer r.mu.Unlock()
	st.epoch = r.epoch
	st.next = r.dropped + len(r.log)
	switch {
	case sendInitial:
		r.admitCurrentVersion()
		return append(r.listObjects(), notification{kind: KindBookmark, object: r.initialEnd()}), ""
	case from == 0:
		r.admitCurrentVersion()
		return r.listObjects(), ""
	case from < r.oldest:
		return nil, tooOld(from, r.oldest)
	}
	st.next = r.dropped + sort.Search(len(r.log), func(i int) bool { return r.log[i].version > from })
	return nil, ""
}

// listObjects returns everything that exists as ADDED; the lock must be held.
func (r *resource) listObjects() []notification {
	out := make([]notification, 0, len(r.order)+1)
	for _, key := range r.order {
		out = append(out, notification{kind: KindAdded, object: r.objects[key]})
	}
	return out
}

// initialEnd is the bookmark that ends a streamed list; the lock must be held.
func (r *resource) initialEnd() json.RawMessage {
	return encodeJSON(map[string]any{
		"kind": r.kind, "apiVersion": r.apiVersion, "metadata": map[string]any{
			"resourceVersion": formatVersion(r.version), "annotations": map[string]string{"k8s.io/initial-events-end": "true"},
		},
	})
}

func encodeJSON(body map[string]any) json.RawMessage {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return raw
}

// sendReleased sends what is released until the stream ends.
func (st *stream) sendReleased(ctx context.Context) {
	for {
		n, changed, end := st.nextNotification()
		switch {
		case end:
			if n != nil {
				st.writeNotification(string(n.kind), n.object)
				st.flush()
			}
			return
		case n != nil:
			if n.kind == KindBookmark && !st.bookmarks {
				continue
			}
			st.writeNotification(string(n.kind), n.object)
			st.flush()
			st.sent++
			if st.cutIfDue() {
				return
			}
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nextNotification returns the next notification, or what to wait for, or that the stream ends here, which the notification, if there
// is one, explains. What was released before a break of the recorder's is sent before the stream ends. Nothing is sent
// here, under the lock: a client that does not read must not hold up Release.
func (st *stream) nextNotification() (n *notification, changed <-chan struct{}, end bool) {
	r := st.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := st.next - r.dropped; i >= 0 && i < len(r.log) {
		st.next++
		return &r.log[i], nil, false
	}
	if st.epoch != r.epoch || st.next < r.dropped {
		if r.gone || st.next < r.dropped {
			n = &notification{kind: "ERROR", object: encodeJSON(newStatus(http.StatusGone, "Expired", tooOld(r.version, r.oldest)))}
		}
		return n, nil, true
	}
	return nil, r.changed, false
}

// cutIfDue ends the stream where the options say so: cleanly or by dropping the connection, in turns.
func (st *stream) cutIfDue() bool {
	n := st.server.options.CutEvery
	if n == 0 || st.sent < n {
		return false
	}
	if st.server.cuts.Add(1)%2 == 0 {
		panic(http.ErrAbortHandler)
	}
	return true
}

func (st *stream) writeNotification(kind string, object json.RawMessage) {
	_ = json.NewEncoder(st.w).Encode(struct { // in the order in which an API server writes them
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}{kind, object})
}

func (st *stream) flush() { _ = http.NewResponseController(st.w).Flush() }
