package api

import (
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/api/web"
)

// Server is what is served. What is nil is not.
type Server struct {
	Health    *Health
	Audit     *Audit
	Admission *Admission
	Site      *web.Site // the web page
	Stream    *Stream
	// Observe is told of each request that a route took; nil: nobody is. Route is its template.
	Observe func(route, method string, status int, took time.Duration)
}

// Handler routes every path.
func (s Server) Handler() http.Handler {
	r := mux.NewRouter()
	if s.Observe != nil {
		r.Use(s.observed)
	}
	if s.Health != nil {
		s.Health.route(r)
	}
	if s.Audit != nil {
		r.Path("/audit").Methods(http.MethodPost).Handler(s.Audit.handler())
	}
	if s.Admission != nil {
		r.Path("/admission").Methods(http.MethodPost).Handler(s.Admission.handler())
	}
	if s.Stream != nil {
		r.Path("/api/v1/stream").Methods(http.MethodGet).Handler(s.Stream.handler())
	}
	if s.Site != nil {
		s.Site.Route(r)
	}
	return r
}

// observed tells Observe how each request went.
func (s Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		if route, err := mux.CurrentRoute(r).GetPathTemplate(); err == nil {
			s.Observe(route, r.Method, seen.status, time.Since(began))
		}
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
