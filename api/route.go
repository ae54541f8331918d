package api

import (
	"net/http"

	"github.com/gorilla/mux"
)

// route is one path and method: what serves it, and what the OpenAPI document says of it.
type route struct {
	method, path string // the path as mux and OpenAPI write it: {name} stands for one segment
	tag          string // of those of the document
	id           string // of the operation; unique
	short, about string // the latter may be empty
	params       []parameter
	body         *requestBody // nil: none is read
	answers      []answer     // what it answers, problems aside
	problems     []int        // the statuses of problems
	handler      http.Handler
}

// answer is one status that a route answers with.
type answer struct {
	status  int
	about   string
	headers []string         // of those of the document
	content []mediaTypeEntry // none: no body
}

// mediaTypeEntry says what a body of a media type holds.
type mediaTypeEntry struct {
	mediaType string
	schema    schema
	example   any
}

// buildRoutes returns what the server serves, in the order in which it is documented.
func (s Server) buildRoutes(c *crowd) []route {
	var all []route
	if s.Readers != nil {
		reads := &reads{s.Readers, s.Gate, s.Failed, c}
		all = append(all, reads.buildRoutes()...)
		if s.Assistant != nil {
			all = append(all, reads.assistantRoute(s.Assistant))
		}
		all = append(all, acknowledging{s.Acknowledgers, s.Gate, s.Forward}.buildRoutes(reads)...)
		all = append(all, documentRoutes()...)
	}
	if s.Stream != nil {
		all = append(all, s.Stream.buildRoute(c, s.Gate))
	}
	if s.Audit != nil {
		all = append(all, s.Audit.buildRoute())
	}
	if s.Admission != nil {
		all = append(all, s.Admission.buildRoutes()...)
	}
	if s.Health != nil {
		all = append(all, s.Health.buildRoutes(c, s.Gate)...)
	}
	return all
}

// allowedMethods returns the methods of a route: who may GET may ask for the head alone.
func (r route) allowedMethods() []string {
	if r.method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{r.method}
}

func (r route) register(router *mux.Router) {
	router.Path(r.path).Methods(r.allowedMethods()...).Handler(r.handler)
}
