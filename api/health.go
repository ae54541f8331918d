package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Health is what the probes ask for.
type Health struct {
	// Unready says what is not ready, one line each; none when all is well. It must be safe for concurrent use.
	Unready func(context.Context) []string
	// Notes says what is not as it should be and does no harm yet, likewise. Nil: nothing ever.
	Notes func(context.Context) []string
	// Metrics serves the metrics.
	Metrics http.Handler
}

// readyTimeout bounds what a probe may wait for.
const readyTimeout = 3 * time.Second

func (h Health) routes(gate *Gate) []route {
	plain := func(status int, about string) answer {
		return answer{status: status, about: about, content: []mediaTypeEntry{{"text/plain", text(), nil}}}
	}
	return []route{
		{method: http.MethodGet, path: "/livez", tag: tagHealth, id: "getLivez", short: "Ask whether the process lives",
			answers: []answer{plain(http.StatusOK, "It does.")}, handler: http.HandlerFunc(h.livez)},
		{method: http.MethodGet, path: "/readyz", tag: tagHealth, id: "getReadyz", short: "Ask whether everything is watched and stored",
			answers: []answer{plain(http.StatusOK, "It is, or will be: what waits for something is told, a line each."), plain(http.StatusServiceUnavailable, "What is not, a line each.")}, handler: http.HandlerFunc(h.readyz)},
		{method: http.MethodGet, path: "/metrics", tag: tagHealth, id: "getMetrics", short: "Get the metrics, for Prometheus",
			answers: []answer{plain(http.StatusOK, "The metrics, in the format that Accept asks for.")}, problems: callProblems, handler: h.guarded(gate)},
	}
}

// guarded gives the metrics to who may scrape them: they name VMs.
func (h Health) guarded(gate *Gate) http.Handler {
	return gate.guard(rightToScrape, func(w http.ResponseWriter, r *http.Request, _ caller) { h.Metrics.ServeHTTP(w, r) })
}

// livez answers as long as the process can.
func (h Health) livez(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok") }

// readyz answers 200 when everything is watched and kept, with one line for each thing that is not as it should be, else 503 with one for
// each that is not ready.
func (h Health) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if lines := h.Unready(ctx); len(lines) > 0 {
		answerText(w, http.StatusServiceUnavailable, strings.Join(lines, "\n"))
		return
	}
	lines := []string{"ok"}
	if h.Notes != nil {
		lines = append(lines, h.Notes(ctx)...)
	}
	answerText(w, http.StatusOK, strings.Join(lines, "\n"))
}

func answerText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}
