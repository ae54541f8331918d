package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/whatif"
)

// AssistantPath is where assistants ask, by the Model Context Protocol over HTTP.
const AssistantPath = "/mcp"

// Assistant returns what serves the Model Context Protocol to one request: it asks the reader, and pages are below the
// site. What it answers must be bounded: it is not counted among the answers that wait to be sent.
type Assistant func(reader Reader, site string) http.Handler

// turnReader asks each question when it is the turn of the caller, and within the time that the API has for it. So an
// assistant can ask no more than any program can. Its errors are those that a client may see.
type turnReader struct {
	reads *reads
	scope trail.Scope
}

var _ Reader = turnReader{}

// askInTurn asks one question in turn.
func askInTurn[T any](ctx context.Context, r turnReader, turn turn, timeout time.Duration, ask func(context.Context, Reader) (T, error)) (got T, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	leave, err := turn(ctx)
	if err != nil {
		return got, r.reads.problemOf(err, timeout)
	}
	defer func() { // also where ask panics
		if sent, err := leave(0); err == nil {
			sent()
		}
	}()
	err = r.reads.readers(ctx, r.scope, func(ctx context.Context, reader Reader) (err error) {
		got, err = ask(ctx, reader)
		return err
	})
	var ambiguous *trail.AmbiguousError
	if err == nil || errors.Is(err, trail.ErrNotFound) || errors.As(err, &ambiguous) {
		return got, err
	}
	return got, r.reads.problemOf(orTooLarge(err), timeout)
}

// askSoon is askInTurn for a question that is answered soon.
func askSoon[T any](ctx context.Context, r turnReader, question func(context.Context, Reader) (T, error)) (T, error) {
	return askInTurn(ctx, r, r.reads.crowd.awaitTurn, readTimeout, question)
}

// ListJSON implements Reader.
func (r turnReader) ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
	q.MaxBytes = readBody
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) (trail.Page[json.RawMessage], error) {
		return reader.ListJSON(ctx, v, q)
	})
}

// ListText implements Reader.
func (r turnReader) ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error) {
	q.MaxBytes = readBody
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) (trail.Table, error) { return reader.ListText(ctx, v, q) })
}

// Why implements Reader.
func (r turnReader) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) (trail.Answer, error) { return reader.Why(ctx, q) })
}

// WhyNot implements Reader.
func (r turnReader) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) (trail.NotAnswer, error) { return reader.WhyNot(ctx, q) })
}

// WhatIf implements Reader.
func (r turnReader) WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error) {
	return askInTurn(ctx, r, r.reads.crowd.awaitLongTurn, whatif.Within, func(ctx context.Context, reader Reader) (whatif.Answer, error) {
		return reader.WhatIf(ctx, q)
	})
}

// Backtest implements Reader.
func (r turnReader) Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error) {
	return askInTurn(ctx, r, r.reads.crowd.awaitLongTurn, whatif.Within,
		func(ctx context.Context, reader Reader) (backtest.Answer, error) {
			return backtestWithin(ctx, reader, q)
		})
}

// Recorders implements Reader.
func (r turnReader) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.RecorderStatus, error) {
		return reader.Recorders(ctx, cluster, from, to)
	})
}

// Settings implements Reader.
func (r turnReader) Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.SettingsInForce, error) {
		return reader.Settings(ctx, q)
	})
}

// Names implements Reader.
func (r turnReader) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]string, error) { return reader.Names(ctx, q) })
}

// Nodes implements Reader.
func (r turnReader) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.NodeSummary, error) { return reader.Nodes(ctx, q) })
}

// Fleet implements Reader.
func (r turnReader) Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.FleetLine, error) { return reader.Fleet(ctx, worst) })
}

// Compare implements Reader.
func (r turnReader) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.ClusterComparison, error) {
		return reader.Compare(ctx, q)
	})
}

// DrainForecast implements Reader.
func (r turnReader) DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) (forecast.Drain, error) { return reader.DrainForecast(ctx, q) })
}

// Limits implements Reader.
func (r turnReader) Limits(ctx context.Context, cluster string) ([]forecast.Limits, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]forecast.Limits, error) {
		return reader.Limits(ctx, cluster)
	})
}

// Weekly implements Reader.
func (r turnReader) Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	return askSoon(ctx, r, func(ctx context.Context, reader Reader) ([]trail.Weekly, error) { return reader.Weekly(ctx, q) })
}

// Find implements Reader.
func (r turnReader) Find(ctx context.Context, cluster, text string) ([]trail.Found, int, error) {
	a, err := askSoon(ctx, r, func(ctx context.Context, reader Reader) (a SearchAnswer, err error) {
		a.Found, a.Total, err = reader.Find(ctx, cluster, text)
		return a, err
	})
	return a.Found, a.Total, err
}

// serveAssistant has an assistant ask what its caller may see.
func (s *reads) serveAssistant(assistant Assistant) http.Handler {
	return bodyFirst(
		CompressResponses(s.gate.requireRight(rightToSeeVMs, func(w http.ResponseWriter, r *http.Request, who caller) {
			body, err := io.ReadAll(r.Body) // is there already, and bounded
			if err != nil || bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
				writeProblem(w, http.StatusBadRequest, "expected one message of the Model Context Protocol: send those of a batch one by one")
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			answered := &uncachedWriter{ResponseWriter: w}
			assistant(turnReader{s, who.scope}, web.SiteOf(r)).ServeHTTP(answered, r)
			if !answered.begun { // its time was over before: without this the answer would be empty, and nothing wrong with it
				p := newProblem(http.StatusServiceUnavailable, "there was no answer in time: ask for less, or later")
				p.retry = retryBusy
				p.write(w)
			}
		})),
	)
}

// uncachedWriter has nobody on the way keep an answer, whatever else was to be said about that.
type uncachedWriter struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *uncachedWriter) WriteHeader(status int) {
	w.begun = true
	w.Header().Set("Cache-Control", uncached)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *uncachedWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *uncachedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *reads) assistantRoute(assistant Assistant) route {
	message := newObjectSchema(
		[]string{"jsonrpc"},
		fields{
			{"jsonrpc", newTextSchema()},
			{"id", schema{Description: "Of a request."}},
			{"method", newTextSchema()},
			{"params", schema{Type: types{"object"}}},
		},
	)
	answered := newObjectSchema(
		[]string{"jsonrpc"},
		fields{
			{"jsonrpc", newTextSchema()},
			{"id", schema{Description: "Of the request."}},
			{"result", schema{Type: types{"object"}}},
			{"error", schema{Type: types{"object"}}},
		},
	)
	example := map[string]any{
		"jsonrpc": "2.0",
		"id":      1,
		"method":  "tools/call",
		"params":  map[string]any{"name": "why", "arguments": map[string]any{"vm": "shop/db-1"}},
	}
	return route{
		method: http.MethodPost,
		path:   AssistantPath,
		tag:    tagAssistants,
		id:     "assist",
		short:  "Ask as an assistant, by the Model Context Protocol",
		about: "Streamable HTTP without sessions: one message a request, and one JSON answer. " +
			"The tools ask what can be asked here, see what the caller may see, and write nothing (docs/mcp.md).",
		body: &requestBody{
			"A JSON-RPC message. Accept must name application/json and text/event-stream.",
			true,
			fields{{mediaTypes["json"], content{message, example}}},
		},
		answers: []answer{
			{
				http.StatusOK,
				"The answer to a request. What a tool could not answer is in its result, with isError.",
				[]string{headerCached, headerVary},
				jsonContent(answered, nil),
			},
			{http.StatusAccepted, "A notification was taken.", nil, nil},
		},
		problems: problemsWith(
			http.StatusBadRequest,
			http.StatusRequestTimeout,
			http.StatusRequestEntityTooLarge,
		),
		handler: s.serveAssistant(assistant),
	}
}
