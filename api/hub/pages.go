package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// pageTimeout bounds what the page of one cluster may take: what-if takes longest.
const pageTimeout = 30 * time.Second

const streamPath = "/api/v1/stream"

// around has each request know its token and whose part is missing, and passes on to its source what is about one cluster.
func (h *Hub) around(next http.Handler) http.Handler {
	page := api.CompressResponses(http.HandlerFunc(h.passPage))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := api.TokenOf(r)
		if web.Writes(r) && r.Header.Get("Authorization") == "" {
			token = web.SignedIn(r)
		}
		a := h.newAsking(token)
		r = r.WithContext(context.WithValue(r.Context(), askingKey{}, a))
		w = &markingWriter{ResponseWriter: w, of: a}
		switch {
		case r.URL.Path == streamPath:
			h.passStream(w, r)
		case isOfCluster(r):
			page.ServeHTTP(w, r)
		case isGuarded(r) && a.survey(r.Context()) != nil: // who may see nothing learns nothing, not even what is wrong with the question
			w.Header().Add("Vary", "Authorization, Cookie")
			refuseProgram(w, r, a.refusal)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOfCluster reports whether a request is for a page about one cluster.
func isOfCluster(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if r.URL.Path == "/" {
		return strings.TrimSpace(r.URL.Query().Get("cluster")) != ""
	}
	if slices.Contains([]string{"/facts", "/whatif", "/advice", "/backtest"}, r.URL.Path) {
		return true
	}
	return slices.ContainsFunc([]string{"/vms/", "/nodes/", "/loops/"}, func(begin string) bool { return strings.HasPrefix(r.URL.Path, begin) })
}

// markingWriter names in the header of an answer whose part is missing. What is missing is not recorded fully.
type markingWriter struct {
	http.ResponseWriter
	of     *asking
	marked bool
}

func (w *markingWriter) mark() {
	if w.marked {
		return
	}
	w.marked = true
	missing := trail.DescribeMissing(w.of.listMissing())
	if missing == "" {
		return
	}
	w.Header().Set(api.MissingHeader, strings.Map(oneLine, missing))
	if w.Header().Get(api.RecorderHeader) == string(trail.RecorderRecording) {
		w.Header().Set(api.RecorderHeader, string(trail.RecorderDegraded))
	}
}

// oneLine keeps a header a line of what all programs can read.
func oneLine(r rune) rune {
	if r < ' ' || r > '~' {
		return ' '
	}
	return r
}

// WriteHeader implements http.ResponseWriter.
func (w *markingWriter) WriteHeader(status int) {
	w.mark()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *markingWriter) Write(p []byte) (int, error) {
	w.mark()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *markingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// passPage passes a page about one cluster on to its source or, where no cluster is named, to the one that has it.
func (h *Hub) passPage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	at, err := h.placeOfPage(r)
	if err == nil {
		err = h.passOn(w, r.WithContext(ctx), at)
	}
	if err != nil {
		h.site.Refuse(w, r, refuseVisitor(err))
	}
}

// placeOfPage returns where a page is.
func (h *Hub) placeOfPage(r *http.Request) (place, error) {
	a, cluster := askingOf(r.Context()), strings.TrimSpace(r.URL.Query().Get("cluster"))
	of, err := a.locate(r.Context(), cluster)
	switch {
	case err != nil:
		return place{}, err
	case cluster != "" && len(of) == 0:
		return place{}, fmt.Errorf("cluster %s: %w", cluster, trail.ErrNotFound)
	case cluster != "":
		return of[0], nil
	}
	var known []string
	var found place
	for _, got := range askAll(r.Context(), a, of, func(ctx context.Context, c *client.Client, _ place) (struct{}, error) {
		return struct{}{}, c.CheckPage(ctx, &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery})
	}) {
		switch {
		case got.is && got.err == nil:
			known, found = append(known, a.nameOfSource(got.at.source)), got.at
		case got.err != nil && !isNotFound(got.err):
			return place{}, refuseVisitor(got.err)
		}
	}
	return found, a.chooseOne("page "+r.URL.Path, known, fmt.Errorf("page %s: %w", r.URL.Path, trail.ErrNotFound))
}

// passStream passes a request to hear of what is new on to the source of its cluster.
func (h *Hub) passStream(w http.ResponseWriter, r *http.Request) {
	a, cluster := askingOf(r.Context()), r.URL.Query().Get("cluster")
	of, err := a.locate(r.Context(), cluster)
	switch {
	case err == nil && (cluster == "" || len(of) != 1):
		err = api.NewProblem(http.StatusBadRequest, "a hub streams of one cluster at a time: choose one with ?cluster= (/api/v1/clusters lists them)")
	case err == nil:
		err = h.passOn(w, r, of[0])
	}
	if err != nil {
		refuseProgram(w, r, err)
	}
}

// refuseProgram answers with a problem.
func refuseProgram(w http.ResponseWriter, r *http.Request, err error) {
	var p *api.Problem
	if !errors.As(err, &p) {
		p = api.NewProblem(http.StatusConflict, err.Error())
	}
	p.ServeHTTP(w, r)
}

// isGuarded reports whether a request of a program is about clusters.
func isGuarded(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api/v1/openapi.yaml"
}

type placeKey struct{}

// passOn passes a request on to a source. The error says that it does not answer; nothing was sent then.
func (h *Hub) passOn(w http.ResponseWriter, r *http.Request, at place) error {
	if down := at.source.outage(); down != nil {
		return askingOf(r.Context()).noAnswer(at, errors.New(down.why), http.StatusServiceUnavailable)
	}
	passed := &passing{at: at, host: r.Host}
	at.source.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, passed)))
	if passed.err != nil {
		return askingOf(r.Context()).noAnswer(at, errors.New(at.source.describe(passed.err)), http.StatusServiceUnavailable)
	}
	return nil
}

// passing is a request that is passed on.
type passing struct {
	at   place
	host string // by which the hub was asked
	err  error  // there was no answer
}

func passingOf(ctx context.Context) *passing { return ctx.Value(placeKey{}).(*passing) }

// newProxy returns what passes requests on to the source: with the token of the caller and nothing else that says who they are. That no page of
// another site sends them was checked before.
func (s *source) newProxy(transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(s.url)
			q := p.Out.URL.Query()
			if cluster := passingOf(p.In.Context()).at.cluster; q.Has("cluster") && cluster != q.Get("cluster") {
				if q.Set("cluster", cluster); cluster == "" {
					q.Del("cluster")
				}
				p.Out.URL.RawQuery = q.Encode()
			}
			web.DropSignIn(p.Out)
			for _, name := range []string{"Authorization", "Accept-Encoding", "Origin", "Sec-Fetch-Site"} {
				p.Out.Header.Del(name)
			}
			if token := askingOf(p.In.Context()).tokenFor(s); token != "" {
				p.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		ModifyResponse: s.modifyAnswer,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			passingOf(r.Context()).err = err
		},
	}
}
