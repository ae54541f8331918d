package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gorilla/mux"
)

// Admission is POST /admission: the eviction observer. It allows everything. What a review reports is recorded, so it is taken of API servers
// alone. They show no bearer token unless a file on their machine has one, so it is a path that only they know, or a client certificate.
type Admission struct {
	// Review reads an AdmissionReview and returns the answer, and what is to be done once it was sent.
	Review func(raw []byte) (answer []byte, then func(), err error)
	// Access says who may send reviews. Its tokens are what may follow /admission/ in the path.
	Access Access
}

// The bounds of POST /admission: together they are what it can cost in memory. An Eviction is little more than its
// annotations, of which an API server takes 256 KiB.
const (
	reviewBody    = 512 << 10   // bytes
	reviewWithin  = time.Second // a body has arrived; the webhook's configuration has the API server wait no longer
	reviewAtOnce  = 64          // reviews that are answered at the same time
	unreadReviews = 256         // reviews whose body is arriving
	unreadFromOne = 128         // of these from one address, behind which all API servers may be
	unreadBytes   = 16 << 20    // that they hold
)

// newHandler answers reviews. Who may not send them learns no more than at any other path, before anything is read of the body. That is
// read before it takes a place, so that who sends slowly keeps nobody out. Where too many come at once it refuses to answer, which the API
// server passes over.
func (a Admission) newHandler() http.HandlerFunc {
	room := make(chan struct{}, reviewAtOnce)
	arriving := &unread{bodies: unreadReviews, fromOne: unreadFromOne, bytes: unreadBytes}
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.Access.isKnownSender(r, mux.Vars(r)["secret"]) {
			a.Access.reportDenied(DeniedReview)
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		raw, err := arriving.readRequest(w, r, reviewWithin, reviewBody)
		if err != nil {
			unreadProblem(w, err)
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			a.respondToReview(w, raw)
		default:
			writeProblem(w, http.StatusServiceUnavailable, "too many reviews at once")
		}
	}
}

// unreadProblem says why a body was not read.
func unreadProblem(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("at most %d KiB in one review", reviewBody>>10))
	case errors.Is(err, os.ErrDeadlineExceeded):
		writeProblem(w, http.StatusRequestTimeout, fmt.Sprintf("the review did not arrive within %s", reviewWithin))
	case errors.Is(err, errTooManyBodies):
		writeProblem(w, http.StatusServiceUnavailable, "too many reviews at once")
	default:
		writeProblem(w, http.StatusBadRequest, err.Error())
	}
}

// respondToReview answers before anything else happens.
func (a Admission) respondToReview(w http.ResponseWriter, raw []byte) {
	answer, then, err := a.Review(raw)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
	_ = http.NewResponseController(w).Flush() // a writer that cannot sends it when we return
	then()
}

// buildRoutes returns the paths of reviews. They are no part of the OpenAPI document: API servers alone call them.
func (a Admission) buildRoutes() []route {
	h := a.newHandler()
	return []route{
		{method: http.MethodPost, path: "/admission", handler: h},
		{method: http.MethodPost, path: "/admission/{secret}", handler: h},
	}
}
