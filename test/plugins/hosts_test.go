package plugins_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// How the pages of the hosts look: a panel takes over their colors and fonts.
const (
	lightDress = "body { margin: 1rem 2rem; font: 14px/1.4 sans-serif; color: #151515; background: #fff } nav a { display: inline-block; padding: .5rem 1rem; color: #06c }"
	darkDress  = "body { margin: 1rem; font: 14px/1.4 sans-serif; color: #e0e0e0; background: #1f1f1f }"
)

// newPage returns the page of a host, with its script and what a browser asks for beside it.
func newPage(script, dress string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Host</title><meta name="viewport" content="width=device-width">
<style>%s</style><main></main><script src="/%s"></script></html>`, dress, script)
	})
	mux.HandleFunc("GET /"+script, func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(hosts, script))
	})
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// startHost serves a host until the test ends, and returns its address.
func startHost(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// passOn returns a proxy to an address below which a request keeps the path that find returns. It changes the request by change.
func passOn(to string, path func(*http.Request) string, change func(http.Header), unreachable http.HandlerFunc) http.Handler {
	base, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = base.Scheme, base.Host, base.Host
			r.Out.URL.Path, r.Out.URL.RawPath = path(r.In), ""
			change(r.Out.Header)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) { unreachable(w, r) },
	}
}

// headlamp stands in for Headlamp's server and an API server behind it.
type headlamp struct {
	apiServer http.Handler // a real one; nil: one that stands in, too
	evictrail string       // what the service of the latter leads to
	forbidden atomic.Bool  // whether its RBAC refuses services/proxy
	dress     string
}

// serviceOf is how the path of the chart's service begins.
const serviceOf = "/api/v1/namespaces/evictrail/services/https:evictrail:443/proxy"

// start serves it until the test ends, and returns its address.
func (h *headlamp) start(t *testing.T) string {
	t.Helper()
	mux := newPage("headlamp.js", h.dress)
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []map[string]string{{"path": "plugins/evictrail", "type": "user", "name": "evictrail"}})
	})
	mux.Handle("GET /plugins/", http.StripPrefix("/plugins/", http.FileServer(http.Dir(filepath.Join(built, "headlamp")))))
	apiServer := h.apiServer
	if apiServer == nil {
		apiServer = h.newAPIServer()
	}
	mux.Handle("GET /clusters/main/", http.StripPrefix("/clusters/main", apiServer))
	return startHost(t, mux)
}

// newAPIServer returns the part of an API server that passes requests on to services. It hands no token on, and speaks of its own
// refusals as a Status.
func (h *headlamp) newAPIServer() http.Handler {
	service := passOn(h.evictrail, func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, serviceOf) },
		func(header http.Header) { header.Del("Authorization"); header.Del("Cookie") },
		func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, http.StatusServiceUnavailable, "error trying to reach service: dial tcp 10.0.0.7:8443: connect: connection refused")
		})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.forbidden.Load():
			writeStatus(w, http.StatusForbidden, `services "https:evictrail:443" is forbidden: User "jane" cannot get resource "services/proxy" in API group "" in the namespace "evictrail"`)
		case !strings.HasPrefix(r.URL.Path, serviceOf+"/"):
			writeStatus(w, http.StatusNotFound, `services "other" not found`)
		default:
			service.ServeHTTP(w, r)
		}
	})
}

// writeStatus refuses a request as an API server does.
func writeStatus(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message, "code": status})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// console stands in for the server of the OpenShift console: it passes on files of plugins and their requests, the latter with the
// token of the user.
type console struct {
	evictrail string
	token     atomic.Pointer[string] // of the user who is signed in
	settings  string                 // settings.json; empty: as built
	dress     string
}

func (c *console) signIn(token string) { c.token.Store(&token) }

func (c *console) start(t *testing.T) string {
	t.Helper()
	mux := newPage("console.js", c.dress)
	// The ConfigMap has settings.json beside the files of dist.
	mux.HandleFunc("GET /api/plugins/evictrail/settings.json", func(w http.ResponseWriter, r *http.Request) {
		if c.settings == "" {
			http.ServeFile(w, r, filepath.Join(built, "console/settings.json"))
			return
		}
		_, _ = fmt.Fprint(w, c.settings)
	})
	mux.Handle("GET /api/plugins/evictrail/", http.StripPrefix("/api/plugins/evictrail/", http.FileServer(http.Dir(filepath.Join(built, "console/dist")))))
	const proxy = "/api/proxy/plugin/evictrail/evictrail"
	mux.Handle("GET "+proxy+"/", passOn(c.evictrail, func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, proxy) },
		func(header http.Header) {
			header.Del("Cookie")
			if token := c.token.Load(); token != nil {
				header.Set("Authorization", "Bearer "+*token)
			}
		},
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	return startHost(t, mux)
}

// askCommandLine returns the output of a command about a VM, asked of a running evictrail, and its lines with a label: those of the
// brief answer.
func askCommandLine(t *testing.T, command, vm, cluster string) (output string, lines map[string]string) {
	t.Helper()
	args := []string{command, vm, "--cluster", cluster, "--server", incident.url}
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	require.NoError(t, err, args)
	lines = map[string]string{}
	label := ""
	for line := range strings.Lines(string(out)) {
		text := strings.TrimSpace(line)
		switch before, after, ok := strings.Cut(text, ":"); {
		case text == "":
			label = "" // the brief answer is the first paragraph
			if len(lines) > 0 {
				return string(out), lines
			}
		case !strings.HasPrefix(line, " ") && ok && strings.HasPrefix(after, " "):
			label = before
			lines[label] = strings.TrimSpace(after)
		case label != "":
			lines[label] += " " + text
		}
	}
	return string(out), lines
}
