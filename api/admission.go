package api

import (
	"io"
	"net/http"
	"strconv"
)

// Admission is POST /admission: the eviction observer. It allows everything.
type Admission struct {
	// Review reads an AdmissionReview and gives the answer, and what is to be done once it was sent.
	Review func(raw []byte) (answer []byte, then func(), err error)
}

// The bounds of POST /admission: together they are what it can cost in memory. An Eviction is little more than its
// annotations, of which an API server takes 256 KiB.
const (
	reviewBody   = 512 << 10 // bytes
	reviewAtOnce = 64        // reviews that are read at the same time
)

// handler answers reviews; where too many come at once it refuses to, which the API server passes over.
func (a Admission) handler() http.HandlerFunc {
	room := make(chan struct{}, reviewAtOnce)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			a.review(w, r)
		default:
			problem(w, http.StatusServiceUnavailable, "too many reviews at once")
		}
	}
}

// review answers before anything else happens.
func (a Admission) review(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, reviewBody))
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	answer, then, err := a.Review(raw)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
	_ = http.NewResponseController(w).Flush() // a writer that cannot sends it when we return
	then()
}

func (a Admission) route() route {
	return route{
		method: http.MethodPost, path: "/admission", tag: tagIn, id: "postAdmission", short: "Have an eviction observed",
		about:    "An API server sends an AdmissionReview (admission.k8s.io/v1); it is always allowed. Served with --eviction-observer.",
		body:     &requestBody{"An AdmissionReview with its request.", true, fields{{mediaTypes["json"], content{Schema: schema{Type: types{"object"}}}}}},
		answers:  []answer{{http.StatusOK, "An AdmissionReview with its response: allowed.", nil, jsonContent(schema{Type: types{"object"}}, nil)}},
		problems: []int{http.StatusBadRequest, http.StatusServiceUnavailable},
		handler:  a.handler(),
	}
}
