package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Health is what the probes ask for.
type Health struct {
	// Status says how it stands with what is recorded here. It must be safe for concurrent use.
	Status func(context.Context) trail.RecorderStatus
	// Metrics serves the metrics.
	Metrics http.Handler
}

// readyTimeout bounds what a probe may wait for.
const readyTimeout = 3 * time.Second

func (h Health) buildRoutes(c *crowd, gate *Gate) []route {
	plain := func(status int, about string) answer {
		return answer{status: status, about: about, content: []mediaTypeEntry{{"text/plain", newTextSchema(), nil}}}
	}
	return []route{
		{method: http.MethodGet, path: "/livez", tag: tagHealth, id: "getLivez", short: "Ask whether the process lives",
			answers: []answer{plain(http.StatusOK, "It does.")}, handler: http.HandlerFunc(h.serveLivez)},
		{method: http.MethodGet, path: "/readyz", tag: tagHealth, id: "getReadyz", short: "Ask whether everything is watched and stored",
			answers: []answer{plain(http.StatusOK, "`ok` while it is. Else the state of the recorder, since when, and below why, a line each: what is seen is kept all the same. With --database-read-url the last line says which server answers questions, and how far the standby is behind."),
				plain(http.StatusServiceUnavailable, "The same, where something is not seen or not kept.")}, handler: http.HandlerFunc(h.serveReadyz)},
		{method: http.MethodGet, path: "/metrics", tag: tagHealth, id: "getMetrics", short: "Get the metrics, for Prometheus",
			answers: []answer{plain(http.StatusOK, "The metrics, in the format that Accept asks for.")}, problems: callProblems, handler: h.newMetricsHandler(c, gate)},
	}
}

// newMetricsHandler answers with the metrics who may scrape them: they name VMs.
func (h Health) newMetricsHandler(c *crowd, gate *Gate) http.Handler {
	return gate.requireRight(rightToScrape, func(w http.ResponseWriter, r *http.Request, _ caller) {
		done, err := c.acquireHolding(r.Context(), holdScrape)
		if err != nil {
			busyProblem(err).write(w)
			return
		}
		defer done()
		h.Metrics.ServeHTTP(w, r)
	})
}

// serveLivez answers as long as the process can.
func (h Health) serveLivez(w http.ResponseWriter, _ *http.Request) {
	answerText(w, http.StatusOK, "ok")
}

// serveReadyz answers 200 while everything is seen and kept, else 503. Its first line is ok only where nothing at
// all is wrong with recording.
func (h Health) serveReadyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	s := h.Status(ctx)
	code, lines := http.StatusOK, []string{"ok"}
	if s.Unready {
		code = http.StatusServiceUnavailable
	}
	if !s.Healthy() {
		lines = slices.Concat([]string{fmt.Sprintf("%s since %s", s.State, s.Since.UTC().Format(time.RFC3339))}, s.Why, s.Details)
	}
	if s.Standby != nil {
		lines = append(lines, s.Standby.Sentence())
	}
	answerText(w, code, strings.Join(lines, "\n"))
}

func answerText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}
