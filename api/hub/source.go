package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/trail"
)

// Source says where an evictrail is.
type Source struct {
	Name   string
	URL    string // http or https; a path is where it is below a proxy
	CAFile string // PEM; empty: the system's
}

// The bounds of what is asked of a source.
const (
	connectionsMost = 32               // to it, with HTTP/1
	lookEvery       = 5 * time.Second  // whether it is there
	slowHolds       = 10 * time.Second // for which a source is left out that did not answer a question in time
	knownHolds      = 10 * time.Second // for which the names of its clusters, that a token may see, are relied on
	knownMost       = 4096             // tokens of which these are kept
)

// source is one evictrail.
type source struct {
	name   string
	url    *url.URL
	client *client.Client
	proxy  *httputil.ReverseProxy // passes on what is about one cluster
	hub    *Hub

	gone atomic.Pointer[outage] // as of the last look; nil: it is there
	slow atomic.Pointer[outage] // it did not answer a question in time

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownClusters // by digest of the token
}

// outage says since when, and why, a source does not answer.
type outage struct {
	since time.Time
	why   string
}

// knownClusters are the clusters of a source that a token may see.
type knownClusters struct {
	lines []trail.FleetLine
	until time.Time
}

func newSource(o Source, h *Hub) (*source, error) {
	s := &source{name: o.Name, hub: h, known: map[[sha256.Size]byte]knownClusters{}}
	var base http.RoundTripper
	var err error
	s.client, err = client.New(client.Options{URL: o.URL, CAFile: o.CAFile, Wrap: func(t *http.Transport) http.RoundTripper {
		t.MaxIdleConnsPerHost, t.MaxConnsPerHost = connectionsMost, connectionsMost
		base = observed{s, t}
		return base
	}})
	if err != nil {
		return nil, err
	}
	if s.url, err = url.Parse(o.URL); err != nil {
		return nil, err
	}
	s.proxy = s.newProxy(base)
	return s, nil
}

// observed is a transport whose requests are counted.
type observed struct {
	of   *source
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := o.next.RoundTrip(r)
	if observe := o.of.hub.config.Observe; observe != nil && !errors.Is(err, context.Canceled) {
		code := "none"
		if err == nil {
			code = strconv.Itoa(answer.StatusCode/100) + "xx"
		}
		observe(o.of.name, code, time.Since(began))
	}
	return answer, err
}

// outage returns why the source is not asked now; nil: it is.
func (s *source) outage() *outage {
	if gone := s.gone.Load(); gone != nil {
		return gone
	}
	if slow := s.slow.Load(); slow != nil && time.Since(slow.since) < slowHolds {
		return slow
	}
	return nil
}

// watch looks whether the source is there until ctx ends.
func (s *source) watch(ctx context.Context) {
	next := time.NewTicker(lookEvery)
	defer next.Stop()
	for {
		s.look(ctx)
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// look asks whether the source lives.
func (s *source) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, s.hub.timeout)
	defer cancel()
	err := s.client.Live(asking)
	if ctx.Err() != nil {
		return
	}
	before := s.gone.Load()
	switch {
	case err == nil:
		s.gone.Store(nil)
	case before == nil:
		s.gone.Store(&outage{time.Now().UTC(), s.describe(err)})
	}
	if up := s.hub.config.Up; up != nil {
		up(s.name, err == nil)
	}
	if changed := s.hub.config.Changed; changed != nil && (before == nil) != (err == nil) {
		why := ""
		if err != nil {
			why = s.describe(err)
		}
		changed(s.name, why)
	}
}

// describe says in a few words why a source does not answer. Addresses of sources are for the log of who operates the hub, not for callers.
func (s *source) describe(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %s", s.hub.timeout)
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return strings.ReplaceAll(err.Error(), "ask "+s.url.String()+": ", "")
}

// markSlow has the source left out for a while: it did not answer in time.
func (s *source) markSlow() {
	s.slow.Store(&outage{time.Now().UTC(), fmt.Sprintf("no answer within %s", s.hub.timeout)})
}

// clusters returns the clusters that a token may see, as they were within knownHolds.
func (s *source) clusters(ctx context.Context, token string, asked *client.Client) ([]trail.FleetLine, error) {
	digest := sha256.Sum256([]byte(token))
	s.mu.Lock()
	known, is := s.known[digest]
	s.mu.Unlock()
	if is && time.Now().Before(known.until) {
		return known.lines, nil
	}
	lines, err := asked.Fleet(ctx, false)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= knownMost {
		clear(s.known)
	}
	s.known[digest] = knownClusters{lines, time.Now().Add(knownHolds)}
	return lines, nil
}
