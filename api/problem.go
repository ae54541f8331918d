package api

import (
	"encoding/json"
	"net/http"
	"time"
)

// Problem is a problem document (RFC 9457): the status in words, and what is wrong and what to do. It is the error of a
// request that cannot be answered as it is.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Name         string   `json:"name,omitempty"`          // of a 409: what is known in several clusters
	Clusters     []string `json:"clusters,omitempty"`      // of a 409: those, sorted
	FittingLimit int      `json:"fitting_limit,omitempty"` // of a 400: the limit with which the answer would not be too large

	retry time.Duration // after which the same request may be answered; 0: nothing is said
}

func (p *Problem) Error() string { return p.Detail }

// newProblem makes a problem of a status.
func newProblem(code int, detail string) *Problem {
	return &Problem{Title: http.StatusText(code), Status: code, Detail: detail}
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	if p.retry > 0 {
		retryAfter(w, p.retry)
	}
	writeJSON(w, p.Status, problemType, p)
}

const problemType = "application/problem+json"

// problem answers with a problem document.
func problem(w http.ResponseWriter, code int, detail string) { newProblem(code, detail).write(w) }

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
