package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/trail"
)

// asking is one request: with which token it asks, what it may wait for, and whose part is missing in its answer.
type asking struct {
	hub   *Hub
	token string // of the caller; empty: none was sent

	surveying sync.Once
	refusal   error               // no source answered the survey
	clusters  [][]trail.FleetLine // by source, as each names them; nil where it is missing
	names     map[place]string    // under which each cluster is known here

	mu       sync.Mutex
	spent    map[*source]time.Duration // what each source took so far
	missing  []trail.MissingSource
	statuses map[string]int // of sources that refused
}

// place is a cluster of a source, as that names it; empty: all of its clusters.
type place struct {
	source  *source
	cluster string
}

type askingKey struct{}

func (h *Hub) newAsking(token string) *asking {
	return &asking{hub: h, token: token, spent: map[*source]time.Duration{}, statuses: map[string]int{}}
}

// askingOf returns that of a request, which around put there.
func askingOf(ctx context.Context) *asking { return ctx.Value(askingKey{}).(*asking) }

// missingOf returns the sources that are missing in the answer to a request so far, in the order in which they were found missing.
func missingOf(ctx context.Context) []trail.MissingSource { return askingOf(ctx).listMissing() }

func (a *asking) listMissing() []trail.MissingSource {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]trail.MissingSource(nil), a.missing...)
}

// markMissing notes that the part of a source is missing, once.
func (a *asking) markMissing(s *source, m trail.MissingSource, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, is := a.statuses[s.name]; is {
		return
	}
	m.Source, m.Why = s.name, strings.TrimRight(m.Why, ".?")
	a.missing, a.statuses[s.name] = append(a.missing, m), status
}

func (a *asking) isMissing(s *source) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, is := a.statuses[s.name]
	return is
}

// tokenFor returns the token for a source: none where others could read it on the way.
func (a *asking) tokenFor(s *source) string {
	if client.IsClear(s.url) {
		return ""
	}
	return a.token
}

// clientOf returns what asks a source for the caller. A source that asks several itself says whose part is missing there.
func (a *asking) clientOf(s *source) *client.Client {
	return s.client.For(a.tokenFor(s), func(text string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		m := trail.MissingSource{Source: s.name, Why: "not all of it: " + strings.TrimSuffix(text, ".")}
		for _, known := range a.missing {
			if known == m {
				return
			}
		}
		a.missing = append(a.missing, m)
	})
}

// withTimeout bounds what a source may take for this request, all that it is asked together. Done is to be called when it has answered.
func (a *asking) withTimeout(ctx context.Context, s *source) (bounded context.Context, done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, a.hub.timeout-a.spent[s])
	return bounded, func() {
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.spent[s] += time.Since(began)
	}
}

// survey asks each source for its clusters, so that names are known, and who is there. The error is an *api.Problem: no source answered.
func (a *asking) survey(ctx context.Context) error {
	a.surveying.Do(func() {
		a.clusters = make([][]trail.FleetLine, len(a.hub.sources))
		all := make([]place, len(a.hub.sources))
		for i, s := range a.hub.sources {
			all[i].source = s
		}
		answered := false
		for i, got := range askAll(ctx, a, all, func(ctx context.Context, c *client.Client, at place) ([]trail.FleetLine, error) {
			return at.source.clusters(ctx, a.token, c)
		}) {
			if got.err != nil { // such as of a version that does not know what is asked
				a.markMissing(all[i].source, trail.MissingSource{Why: all[i].source.describe(got.err)}, http.StatusBadGateway)
			}
			if got.is && got.err == nil {
				a.clusters[i], answered = append([]trail.FleetLine{}, got.value...), true
			}
		}
		a.nameClusters()
		if !answered {
			a.refusal = a.newRefusal()
		}
	})
	return a.refusal
}

// newRefusal says that no source answers a caller: who they have to be, that they may see nothing, or that nobody is there.
func (a *asking) newRefusal() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := http.StatusForbidden
	for _, s := range a.statuses {
		switch {
		case s == http.StatusUnauthorized:
			status = s
		case s != http.StatusForbidden && status != http.StatusUnauthorized:
			status = http.StatusServiceUnavailable
		}
	}
	return api.NewProblem(status, "no source of this hub answers you. "+trail.DescribeMissing(a.missing))
}

// answerOf is what one place answered.
type answerOf[T any] struct {
	at    place
	is    bool // it answered; else it is missing
	value T
	err   error // such as trail.ErrNotFound: an answer, too
}

// askAll asks some places at the same time, each for as long as a source may take, and marks those that are missing. Answers are in the order of the places.
func askAll[T any](ctx context.Context, a *asking, of []place, ask func(context.Context, *client.Client, place) (T, error)) []answerOf[T] {
	got := make([]answerOf[T], len(of))
	var all sync.WaitGroup
	for i, at := range of {
		got[i].at = at
		if a.isMissing(at.source) {
			continue
		}
		if down := at.source.outage(); down != nil {
			a.markMissing(at.source, trail.MissingSource{Why: down.why + " (since " + down.since.Format(time.RFC3339) + ")"}, http.StatusServiceUnavailable)
			continue
		}
		all.Go(func() {
			asked, done := a.withTimeout(ctx, at.source)
			defer done()
			value, err := ask(asked, a.clientOf(at.source), at)
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				at.source.markSlow()
			}
			if m, status, is := at.source.classify(err); is {
				a.markMissing(at.source, m, status)
				return
			}
			got[i] = answerOf[T]{at, true, value, err}
		})
	}
	all.Wait()
	return got
}

// classify returns what an error says of a source: that it is missing, with the status that it answered; false where the error is an answer.
func (s *source) classify(err error) (m trail.MissingSource, status int, missing bool) {
	var ambiguous *trail.AmbiguousError
	var large *trail.TooLargeError
	var problem *api.Problem
	switch {
	case err == nil, errors.Is(err, trail.ErrNotFound), errors.As(err, &ambiguous), errors.As(err, &large):
		return m, 0, false
	case !errors.As(err, &problem):
		return trail.MissingSource{Why: s.describe(err)}, http.StatusServiceUnavailable, true
	case problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden:
		return trail.MissingSource{Refused: true, Why: problem.Detail}, problem.Status, true
	case problem.Status == http.StatusTooManyRequests || problem.Status >= http.StatusInternalServerError:
		return trail.MissingSource{Why: problem.Detail}, problem.Status, true
	}
	return m, 0, false
}

// askOne asks the place of one cluster. Where that is missing there is no answer: the error is an *api.Problem that names it.
func askOne[T any](ctx context.Context, a *asking, at place, ask func(context.Context, *client.Client, place) (T, error)) (T, error) {
	if down := at.source.outage(); down != nil {
		var none T
		return none, a.noAnswer(at, errors.New(down.why), http.StatusServiceUnavailable)
	}
	value, err := ask(ctx, a.clientOf(at.source), at)
	if m, status, missing := at.source.classify(err); missing {
		return value, a.noAnswer(at, errors.New(m.Why), status)
	}
	return value, err
}

// noAnswer says that the source of a cluster does not answer, or lets the caller see nothing.
func (a *asking) noAnswer(at place, why error, status int) error {
	of := "source " + at.source.name
	if at.cluster != "" {
		of += ", which is asked for cluster " + at.cluster + ","
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return api.NewProblem(status, fmt.Sprintf("%s shows you nothing: %v", of, why))
	}
	return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("%s does not answer: %v", of, why))
}
