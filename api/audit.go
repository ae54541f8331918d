package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// Errors that Audit.Take may wrap: they decide the answer.
var (
	ErrBusy     = errors.New("busy")      // 503: come again
	ErrTooLarge = errors.New("too large") // 413
)

// Audit is POST /audit: audit events from kube-apiservers and log forwarders.
type Audit struct {
	// Take reads and stores the events of a body. Its first result is sent as JSON; Refused says that none of the body
	// could be used.
	Take   func(ctx context.Context, body io.Reader) (report any, refused bool, err error)
	Access Access
}

// The bounds of POST /audit. An API server sends at most 10 batches a second and 10 MiB in one.
const (
	auditBody     = 10 << 20         // bytes of a body as it is sent
	auditEvents   = 50_000           // events of a body, as Take bounds them
	auditRate     = 50               // bodies a second, of all senders
	auditBurst    = 100              // bodies at once
	auditAtOnce   = 4                // bodies that are read at the same time: what they cost in memory
	auditWait     = 25 * time.Second // for them to be kept; the API server gives up after 30 s and comes again
	retryBusy     = 5 * time.Second
	retryTooOften = time.Second
)

// newHandler answers 2xx only when the events are on disk or stored.
func (a Audit) newHandler() http.HandlerFunc {
	limit := rate.NewLimiter(auditRate, auditBurst)
	room := make(chan struct{}, auditAtOnce)
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.Access.requireKnownSender(w, r) {
			return
		}
		if !limit.Allow() {
			retryAfter(w, retryTooOften)
			writeProblem(w, http.StatusTooManyRequests, "too many requests: send larger batches")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), auditWait)
		defer cancel()
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-ctx.Done():
			retryAfter(w, retryBusy)
			writeProblem(w, http.StatusServiceUnavailable, "other bodies are being read: send them again")
			return
		}
		report, refused, err := a.Take(ctx, http.MaxBytesReader(w, r.Body, auditBody))
		a.writeResponse(w, report, refused, err)
	}
}

func (a Audit) writeResponse(w http.ResponseWriter, report any, refused bool, err error) {
	var tooMany *http.MaxBytesError
	switch {
	case errors.As(err, &tooMany), errors.Is(err, ErrTooLarge):
		writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("at most %d MiB, packed and unpacked, and %d events in one body: send smaller batches, or use `evictrail audit import`", auditBody>>20, auditEvents))
	case errors.Is(err, ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		retryAfter(w, retryBusy)
		writeProblem(w, http.StatusServiceUnavailable, "the events are not kept yet, send them again: "+err.Error())
	case err != nil:
		writeProblem(w, http.StatusBadRequest, err.Error())
	case refused:
		writeJSON(w, http.StatusUnprocessableEntity, "application/json", report)
	default:
		writeJSON(w, http.StatusOK, "application/json", report)
	}
}

func retryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.Seconds())))
}

func (a Audit) buildRoute() route {
	report := schema{Type: types{"object"}, Description: "How many events were taken, and why others were not."}
	return route{
		method: http.MethodPost, path: "/audit", tag: tagIn, id: "postAudit", short: "Send audit events of kube-apiservers",
		about: "An API server's audit webhook, or a log forwarder, sends them, with a bearer token or a client certificate. What is answered with 200 is on disk, or stored.",
		body:  &requestBody{"An EventList (audit.k8s.io/v1), or events as JSON lines, plain or gzip.", true, fields{{mediaTypes["json"], content{Schema: schema{}}}}},
		answers: []answer{
			{http.StatusOK, "The events are on disk, or stored.", nil, jsonContent(report, nil)},
			{http.StatusUnprocessableEntity, "None of the body could be used.", nil, jsonContent(report, nil)},
		},
		problems: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable},
		handler:  a.newHandler(),
	}
}
