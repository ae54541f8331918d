package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// DefaultTimeout is how long a source may take for all that one request about several asks of it.
const DefaultTimeout = 3 * time.Second

// Config says what a hub asks.
type Config struct {
	Sources []Source      // at least one, each with a name of its own
	Timeout time.Duration // of a source; 0: DefaultTimeout
	// Up is called with whether a source answers, each time that it was looked at; may be nil.
	Up func(source string, up bool)
	// Observe is called for each request that was sent to a source, with the first digit of its status such as "2xx", or "none" where there
	// was no answer; may be nil.
	Observe func(source, code string, took time.Duration)
	// Changed is called when a source stops answering, with why, and with an empty text when it answers again; may be nil.
	Changed func(source, why string)
}

// Hub asks several evictrails. It is safe for concurrent use.
type Hub struct {
	sources []*source
	timeout time.Duration
	config  Config
	site    *web.Site // of the hub; set by Server
}

// sourceName matches the names that sources may have: they stand before a slash, in headers and in labels.
var sourceName = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]*$`)

// New makes a hub; nothing is asked yet.
func New(c Config) (*Hub, error) {
	h := &Hub{timeout: cmp.Or(c.Timeout, DefaultTimeout), config: c}
	for _, one := range c.Sources {
		switch {
		case !sourceName.MatchString(one.Name):
			return nil, fmt.Errorf("source %q: expected a name of letters, digits, -, _ and ., such as east", one.Name)
		case h.find(one.Name) != nil:
			return nil, fmt.Errorf("source %s: it is named twice: choose another name for one of them", one.Name)
		}
		s, err := newSource(one, h)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", one.Name, err)
		}
		h.sources = append(h.sources, s)
	}
	if len(h.sources) == 0 {
		return nil, errors.New("no source: name at least one")
	}
	return h, nil
}

// find returns the source of a name; nil where there is none.
func (h *Hub) find(name string) *source {
	i := slices.IndexFunc(h.sources, func(s *source) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return h.sources[i]
}

// Run looks at each source now and every few seconds, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, s := range h.sources {
		g.Go(func() error { s.watch(ctx); return nil })
	}
	return g.Wait()
}

// Close closes idle connections to the sources.
func (h *Hub) Close() {
	for _, s := range h.sources {
		s.client.Close()
	}
}

// askedAtOnce is how many questions are asked of the sources at the same time: each has the bounds of its own database.
const askedAtOnce = 16

// Server serves the API and the pages of all sources. CreateToken is the command that makes a token to sign in with.
func (h *Hub) Server(createToken string, failed func(path string, err error)) api.Server {
	r := reader{h}
	h.site = &web.Site{
		Fleet: pages{r}, Missing: missingOf, Admit: h.admit, Guarded: true, CreateToken: createToken, Failed: failed,
	}
	return api.Server{Readers: api.ForAll(r), Site: h.site, Forward: r, Around: h.around, AtOnce: askedAtOnce}
}

// admit lets in a visitor to whom at least one source shows something.
func (h *Hub) admit(r *http.Request) (web.Visitor, error) {
	visitor, token := web.Visitor{Scope: trail.Everything()}, api.TokenOf(r)
	a := askingOf(r.Context())
	if a.token != token { // that of who signs in
		a = h.newAsking(token)
	}
	if err := a.survey(r.Context()); err != nil {
		return visitor, refuseVisitor(err)
	}
	if token != "" {
		visitor.Name = "Signed in"
	}
	return visitor, nil
}

// Status says how it stands with the sources, for probes: the hub itself can always be asked.
func (h *Hub) Status(context.Context) trail.RecorderStatus {
	s := trail.RecorderStatus{State: trail.RecorderRecording}
	for _, source := range h.sources {
		if down := source.outage(); down != nil {
			s.State = trail.RecorderDegraded
			s.Why = append(s.Why, trail.DescribeMissing([]trail.MissingSource{{Source: source.name, Why: strings.TrimRight(down.why, ".?")}}))
			if s.Since.IsZero() || down.since.Before(s.Since) {
				s.Since = down.since
			}
		}
	}
	return s
}

// refuseVisitor returns a problem as pages show it; other errors as they are.
func refuseVisitor(err error) error {
	if p, is := errors.AsType[*api.Problem](err); is {
		return p.ToRefusal()
	}
	return err
}
