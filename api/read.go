package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// The bounds of one answer.
const (
	readTimeout = 5 * time.Second
	readBody    = 10 << 20 // bytes of an answer
)

// reads answers the routes that ask a Reader.
type reads struct {
	readers Readers
	gate    *Gate
	failed  func(error)
	crowd   *crowd
}

// reply is an answer that is not sent yet.
type reply struct {
	contentType string
	header      http.Header // what is to be sent beside; nil: nothing
	body        []byte
}

// asking answers one request, with what its caller may read. Its errors are for reads.problemOf.
type asking func(context.Context, Reader, *http.Request) (reply, error)

func (s *reads) buildRoutes() []route {
	var all []route
	for _, v := range trail.Views() {
		all = append(all, s.listRoute(v))
	}
	all = append(append(all, s.whyRoutes()...), s.whatIfRoute(), s.adviceRoute(), s.backtestRoute())
	all = append(all, s.namesRoute(), s.searchRoute(), s.nodesRoute())
	return append(all, s.clustersRoute(), s.compareRoute(), s.forecastRoute(), s.limitsRoute(), s.weeklyRoute(), s.recordersRoute(), s.settingsRoute())
}

// newHandler answers within bounds, compressed where the client likes that.
func (s *reads) newHandler(ask asking) http.Handler {
	return s.newHandlerWithin(readTimeout, s.crowd.awaitTurn, ask)
}

// newHandlerWithin is handler with bounds of its own.
func (s *reads) newHandlerWithin(timeout time.Duration, turn turn, ask asking) http.Handler {
	return CompressResponses(s.gate.requireRight(rightToSeeVMs, func(w http.ResponseWriter, r *http.Request, who caller) {
		w.Header().Set("Cache-Control", uncached)
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		answer, sent, err := s.inTurn(ctx, turn, func() (answer reply, err error) {
			err = s.readers(ctx, who.scope, func(ctx context.Context, reader Reader) (err error) {
				answer, err = ask(ctx, reader, r)
				return err
			})
			return answer, err
		})
		if err != nil {
			s.problemOf(err, timeout).write(w)
			return
		}
		defer sent()
		answer.write(w, r)
	}))
}

// inTurn asks when it is our turn. Sent is to be called when the answer was sent; it is nil with an error.
func (s *reads) inTurn(ctx context.Context, turn turn, ask func() (reply, error)) (answer reply, sent func(), err error) {
	left, err := turn(ctx)
	if err != nil {
		return reply{}, nil, err
	}
	answered := false
	defer func() { // also where ask panics
		done, unsent := left(len(answer.body))
		switch {
		case unsent != nil:
			err = unsent
		case answered:
			sent = done
		default:
			done()
		}
	}()
	answer, err = ask()
	answered = err == nil
	return answer, nil, err
}

// problemOf says what is wrong and what to do. What the database says is ours to know, not the client's.
func (s *reads) problemOf(err error, timeout time.Duration) *Problem {
	var known *Problem
	var ambiguous *trail.AmbiguousError
	if busy := busyProblem(err); busy != nil {
		return busy
	}
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &ambiguous):
		p := newProblem(http.StatusConflict, ambiguous.Name+" is known in several clusters: choose one with ?cluster=")
		p.Type, p.Name, p.Clusters = ProblemSeveral, ambiguous.Name, ambiguous.Clusters
		return p
	case errors.Is(err, trail.ErrNotFound):
		p := newProblem(http.StatusNotFound, err.Error())
		p.Type = ProblemUnknown
		return p
	case errors.Is(err, trail.ErrRefused):
		return newProblem(http.StatusBadRequest, "the database cannot compare with what was sent: take page from the header Link of the page before")
	}
	p := newProblem(http.StatusServiceUnavailable, "the database cannot answer now: /readyz and the log of evictrail say more")
	p.retry = retryBusy
	if errors.Is(err, context.DeadlineExceeded) {
		p.Detail = "the answer took longer than " + timeout.String() + ": ask for less, with a namespace, a VM, since, or a lower limit"
	}
	if s.failed != nil && !errors.Is(err, context.Canceled) {
		s.failed(err)
	}
	return p
}

// write sends the answer, or only that it is the one that the client has. The tag is weak: compressed or not, it is the same.
func (a reply) write(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256(a.body)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	for name, values := range a.header {
		for _, value := range values {
			w.Header().Add(name, value) // not Set: Vary is others' too
		}
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if matchesTag(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(a.body)
}

// matchesTag compares tags weakly (RFC 9110, 8.8.3.2). Ours hold no comma.
func matchesTag(sent []string, tag string) bool {
	for _, one := range strings.Split(strings.Join(sent, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
