package api

import (
	"net/http"

	"github.com/gorilla/mux"
)

// Server is what is served. What is nil is not.
type Server struct {
	Health    *Health
	Audit     *Audit
	Admission *Admission
}

// Handler routes every path.
func (s Server) Handler() http.Handler {
	r := mux.NewRouter()
	if s.Health != nil {
		s.Health.route(r)
	}
	if s.Audit != nil {
		r.Path("/audit").Methods(http.MethodPost).Handler(s.Audit.handler())
	}
	if s.Admission != nil {
		r.Path("/admission").Methods(http.MethodPost).Handler(s.Admission.handler())
	}
	return r
}
