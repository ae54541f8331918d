package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"
)

// Health is what the probes ask for.
type Health struct {
	// Unready says what is not ready, one line each; none when all is well. It must be safe for concurrent use.
	Unready func(context.Context) []string
	// Metrics serves the metrics.
	Metrics http.Handler
}

// readyTimeout bounds what a probe may wait for.
const readyTimeout = 3 * time.Second

func (h Health) route(r *mux.Router) {
	r.Path("/livez").Methods(http.MethodGet).HandlerFunc(h.livez)
	r.Path("/readyz").Methods(http.MethodGet).HandlerFunc(h.readyz)
	r.Path("/metrics").Methods(http.MethodGet).Handler(h.Metrics)
}

// livez answers as long as the process can.
func (h Health) livez(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }

// readyz answers 200 when everything is watched and stored, else 503 with one line for each thing that is not.
func (h Health) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if lines := h.Unready(ctx); len(lines) > 0 {
		answer(w, http.StatusServiceUnavailable, strings.Join(lines, "\n"))
		return
	}
	answer(w, http.StatusOK, "ok")
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}
