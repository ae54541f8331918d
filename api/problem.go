package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/evictrail/evictrail/api/web"
)

// Problem is a problem document (RFC 9457): the status in words, and what is wrong and what to do. It is the error of a
// request that cannot be answered as it is.
type Problem struct {
	Type   string `json:"type,omitempty"` // one of those below; empty, which means about:blank: the status says it all
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Name         string   `json:"name,omitempty"`          // of a 409: what is known in several clusters
	Clusters     []string `json:"clusters,omitempty"`      // of a 409: those, sorted
	FittingLimit int      `json:"fitting_limit,omitempty"` // of a 400: the limit with which the answer would not be too large

	challenge string        // how to say who one is; empty: nothing is said
	retry     time.Duration // after which the same request may be answered; 0: nothing is said
}

// The types of problems that programs may want to distinguish from others of their status.
const (
	ProblemUnknown  = "urn:evictrail:problem:unknown"          // 404: the VM or node was never seen
	ProblemSeveral  = "urn:evictrail:problem:several-clusters" // 409: it was seen in several clusters
	ProblemTooLarge = "urn:evictrail:problem:too-large"        // 400: fewer rows would fit
)

func (p *Problem) Error() string { return p.Detail }

// NewProblem makes a problem of a status; of one that asks who the caller is, and of one that may end soon, with what else is to be sent.
func NewProblem(status int, detail string) *Problem {
	p := newProblem(status, detail)
	switch status {
	case http.StatusUnauthorized:
		p.challenge = challenge
	case http.StatusServiceUnavailable:
		p.retry = retryBusy
	}
	return p
}

// newProblem makes a problem of a status.
func newProblem(code int, detail string) *Problem {
	return &Problem{Title: http.StatusText(code), Status: code, Detail: detail}
}

// ServeHTTP answers with the problem.
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) { p.write(w) }

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	if p.retry > 0 {
		retryAfter(w, p.retry)
	}
	if p.challenge != "" {
		w.Header().Set("WWW-Authenticate", p.challenge)
	}
	w.Header().Set("Cache-Control", uncached)
	writeJSON(w, p.Status, problemType, p)
}

// ToRefusal returns the same for the web page.
func (p *Problem) ToRefusal() *web.Refusal {
	return &web.Refusal{Status: p.Status, Text: p.Detail, Retry: p.retry}
}

// uncached lets a browser keep an answer, as long as it asks each time whether it still holds; and nobody on the way, as it is the caller's.
const uncached = "private, no-cache"

const problemType = "application/problem+json"

// writeProblem answers with a problem document.
func writeProblem(w http.ResponseWriter, code int, detail string) { newProblem(code, detail).write(w) }

func writeJSON(w http.ResponseWriter, code int, contentType string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("marshal answer: " + err.Error()) // our own types: cannot fail
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(raw, '\n'))
}
