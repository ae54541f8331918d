package api

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// pipeWriter is a ResponseWriter whose lines can be read while it is written.
type pipeWriter struct {
	header http.Header
	lines  chan string
	part   strings.Builder
}

func (p *pipeWriter) Header() http.Header { return p.header }
func (p *pipeWriter) WriteHeader(int)     {}
func (p *pipeWriter) Flush()              {}

func (p *pipeWriter) Write(b []byte) (int, error) {
	p.part.Write(b)
	text := p.part.String()
	p.part.Reset()
	scan := bufio.NewScanner(strings.NewReader(text))
	for scan.Scan() {
		if line := scan.Text(); line != "" {
			p.lines <- line
		}
	}
	return len(b), nil
}

func TestStreamReportsEachChangeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		answers := [][]time.Time{
			{first}, // known when the page was made
			{first},
			{first, first.Add(-time.Second)}, // it began before and ended after
			nil,                              // the database is away
			{first, first.Add(-time.Second), first.Add(time.Minute)},
			{first.Add(time.Minute)},
		}
		asked := 0
		done := make(chan struct{})
		s := Stream{Done: done, Changes: func(_ context.Context, _ trail.Scope, q trail.Query, within time.Duration) ([]time.Time, error) {
			require.Equal(t, trail.Query{Cluster: "prod", Namespace: "shop", VMI: "db-1"}, q)
			require.Greater(t, within, 2*streamEvery, "a look that is late misses nothing")
			asked++
			if asked > len(answers) {
				return answers[len(answers)-1], nil
			}
			if answers[asked-1] == nil {
				return nil, errors.New("away")
			}
			return answers[asked-1], nil
		}}
		w := &pipeWriter{header: http.Header{}, lines: make(chan string, 100)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.newHandler(newCrowd(), nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/stream?cluster=prod&vm=shop/db-1", nil))
		}()
		time.Sleep(time.Duration(len(answers)+2) * streamEvery)
		close(done)
		<-ended
		close(w.lines)
		var events []string
		for line := range w.lines {
			if strings.HasPrefix(line, "data: ") {
				events = append(events, line)
			}
		}
		require.Equal(t, []string{`data: {"changed_at":"2026-11-20T23:59:59Z"}`, `data: {"changed_at":"2026-11-21T00:01:00Z"}`}, events)
		require.Equal(t, "text/event-stream", w.header.Get("Content-Type"))
	})
}

func TestStreamRefusesWhatItCannotFollow(t *testing.T) {
	t.Parallel()
	s := Stream{Changes: func(context.Context, trail.Scope, trail.Query, time.Duration) ([]time.Time, error) { return nil, nil }}
	w := httptest.NewRecorder()
	s.newHandler(newCrowd(), nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/stream?colour=red", nil))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `there is no parameter \"colour\" here`)
}
