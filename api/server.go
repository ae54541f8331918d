package api

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// Server is what is served. What is nil is not.
type Server struct {
	Health    *Health
	Audit     *Audit
	Admission *Admission
	Site      *web.Site // the web page
	Stream    *Stream
	// Readers answers the routes below /api/v1; nil: there are none.
	Readers Readers
	// Assistant serves those who ask by the Model Context Protocol, what Readers answers; nil: nobody.
	Assistant Assistant
	// Acknowledgers returns what writes acknowledgements for a caller who sees so much; nil: nothing is written.
	Acknowledgers func(trail.Scope) Acknowledger
	// Forward is where acknowledgements are passed on to, instead: it says who may write. Nil: they are not.
	Forward AcknowledgementWriter
	// Gate says who callers are, and what each may see; nil: everybody sees everything.
	Gate *Gate
	// Around wraps what serves the routes, behind all checks of who sends a request from where; nil: nothing does.
	Around func(http.Handler) http.Handler
	// AtOnce is how many questions are asked at the same time; 0: as many as the pool of a database bears.
	AtOnce int
	// Hosts are the names under which we are called; none: any.
	Hosts []string
	// Observe is called for each request that a route took; may be nil. Route is its template.
	Observe func(route, method string, status int, took time.Duration)
	// Denied is called for each request that is refused before a route sees it, with the cause; nil: for none.
	Denied func(cause string)
	// Shed is called for each request that is not answered, or whose answer is cut, as too much is asked; nil: for none. The causes are Shed...,
	// a caller is "user NAME" or "host PREFIX".
	Shed func(cause, caller string)
	// Failed is called with each error of Reader of which the client learns only that there was one; may be nil.
	Failed func(error)
}

// Handler serves every path, to whom each is for.
func (s Server) Handler() http.Handler {
	var routes http.Handler = s.newRouter()
	if s.Around != nil {
		routes = s.Around(routes)
	}
	return attachCaller(s.cutOffSlowReaders(strictTransport(requireHost(s.Hosts, s.sameSite(routes)))))
}

// newRouter routes every path.
func (s Server) newRouter() *mux.Router {
	r := mux.NewRouter()
	if s.Observe != nil {
		r.Use(s.observeRequests)
	}
	crowd := newCrowd()
	crowd.refused, crowd.atOnce = s.Shed, cmp.Or(s.AtOnce, readAtOnce)
	for _, route := range s.buildRoutes(crowd) {
		route.register(r)
	}
	r.NotFoundHandler = http.HandlerFunc(unknownPath)
	if s.Site != nil {
		site := *s.Site
		site.Turn, site.LongTurn = pageTurn(crowd.awaitTurn), pageTurn(crowd.awaitLongTurn)
		site.ParseList, site.ParseNodes, site.ParseWeekly = readPageQuery, readNodePageQuery, ReadWeekly
		site.ParseAdvice, site.ParseBacktest = ReadAdvice, ReadBacktest
		if site.Admit == nil {
			site.Admit, site.Guarded = s.Gate.authorizeVisitor, s.Gate != nil
		}
		if s.Gate != nil {
			site.CreateToken = s.Gate.CreateToken()
		}
		acknowledging{s.Acknowledgers, s.Gate, s.Forward}.serveVisitors(&site)
		pages := r.NewRoute().Subrouter()
		pages.Use(CompressResponses)
		site.Route(pages)
		r.NotFoundHandler = orPage(&site, r.NotFoundHandler)
	}
	r.MethodNotAllowedHandler = wrongMethod(r)
	return r
}

// unknownPath answers programs with a problem.
func unknownPath(w http.ResponseWriter, r *http.Request) {
	if !forPrograms(r) {
		http.NotFound(w, r)
		return
	}
	writeProblem(w, http.StatusNotFound, "there is nothing at "+r.URL.Path+": /docs lists what there is")
}

// wrongMethod names the methods that a path has.
func wrongMethod(router *mux.Router) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if match := (mux.RouteMatch{}); router.Match(other, &match) && match.MatchErr == nil {
				allowed = append(allowed, method)
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if !forPrograms(r) {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		writeProblem(w, http.StatusMethodNotAllowed, r.Method+" does nothing here: use "+strings.Join(allowed, " or "))
	})
}

// orPage answers people with a page where there is nothing.
func orPage(site *web.Site, problem http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forPrograms(r) {
			problem.ServeHTTP(w, r)
			return
		}
		site.Unknown(w, r)
	})
}

func forPrograms(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// observeRequests reports to Observe how each request went.
func (s Server) observeRequests(next http.Handler) http.Handler {
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
