package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// listing is a Reader with so many gaps, of a cluster whose recorder is in a state.
type listing struct {
	Reader
	rows int
	seen time.Duration // how long ago was its last sign of life
	gaps []trail.Gap
}

func (listing) Summaries(context.Context) ([]trail.ClusterSummary, error) {
	return []trail.ClusterSummary{{Name: "c"}}, nil
}

func (l listing) Recorders(_ context.Context, _ string, from, _ time.Time) ([]trail.RecorderStatus, error) {
	now := time.Now().UTC()
	s := trail.ClusterSigns{Cluster: "c", AliveAt: now.Add(-l.seen), LastEventAt: now.Add(-l.seen)}.Status(now)
	if !from.IsZero() {
		s.NotObserved = l.gaps
	}
	return []trail.RecorderStatus{s}, nil
}

func (l listing) ListText(_ context.Context, _ trail.View, q trail.Query) (trail.Table, error) {
	if q.MaxBytes > 0 && q.Limit == 7 {
		return trail.Table{}, &trail.TooLargeError{Rows: 2}
	}
	t := trail.Table{Columns: []string{"cluster", "gap_id", "source", "opened_at", "closed_at", "cause", "detail"}}
	for i := range min(l.rows, q.Limit) {
		text := func(s string) *string { return &s }
		t.Rows = append(t.Rows, []*string{text("c"), text(fmt.Sprint(i)), text("pods"), text("2026-11-21 00:30:00+00"), nil, text("expired"), text(`<i>"x"</i>`)})
	}
	if l.rows > q.Limit {
		t.Next = &trail.Key{ID: fmt.Sprint(q.Limit - 1), Cluster: "c"}
	}
	return t, nil
}

// fetchList fetches a page of gaps.
func fetchList(t *testing.T, l listing, guarded bool, query string) *httptest.ResponseRecorder {
	t.Helper()
	router := mux.NewRouter()
	site := &Site{Readers: ForAll(l), Guarded: guarded, ParseList: func(_ trail.View, query string, _ time.Time) (trail.Query, error) {
		switch query {
		case "source=neither":
			return trail.Query{}, errors.New("source neither: expected another")
		case "limit=7":
			return trail.Query{Limit: 7}, nil
		case "since=6h":
			return trail.Query{Since: time.Now().Add(-6 * time.Hour)}, nil
		}
		return trail.Query{Limit: 100_000}, nil
	}}
	site.Route(router)
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/gaps"+query, nil))
	return answer
}

// TestListSaysNothingItDoesNotKnow reads the empty list: it says that there is nothing only where everything was observed.
func TestListSaysNothingItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		from  listing
		query string
		says  string
	}{
		{"healthy", listing{}, "", "No gaps recorded."},
		{"of the last hours", listing{}, "?since=6h", "No gaps in the last 6 h."},
		{"with a filter", listing{}, "?source=pods", "No gaps match the filters."},
		{"stopped", listing{seen: 68 * time.Hour}, "", "Not known: the cluster is not fully recorded."},
		{"with a gap", listing{gaps: []trail.Gap{{Source: "pods", OpenedAt: time.Now().Add(-time.Hour)}}}, "", "No gaps recorded. Not all of this time was observed."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := fetchList(t, c.from, false, c.query)
			require.Equal(t, http.StatusOK, answer.Code)
			require.Contains(t, answer.Body.String(), ">"+c.says+"<")
		})
	}
}

// TestListKeepsWithinBounds shows no more rows than a page holds, whatever the address asks for, and leads to the next page, to the API, and to a
// tidy address.
func TestListKeepsWithinBounds(t *testing.T) {
	t.Parallel()
	page := fetchList(t, listing{rows: 10_000}, true, "").Body.String()
	rows := func(page string) int { return strings.Count(page, "&lt;i&gt;") / 2 } // as text and as its title
	require.Equal(t, listRows, rows(page))
	require.Contains(t, page, `rel="next">Next page</a>`)
	require.Contains(t, page, `href="/api/v1/gaps?format=csv"`)
	require.Contains(t, page, `curl -fsS -H &#34;Authorization: Bearer $TOKEN&#34; &#39;http://example.com/api/v1/gaps&#39;`)
	require.NotContains(t, fetchList(t, listing{}, false, "").Body.String(), "$TOKEN")

	require.Equal(t, listRowsMost, rows(fetchList(t, listing{rows: 10_000}, false, "?limit=10000").Body.String()))
	require.Equal(t, 2, rows(fetchList(t, listing{rows: 10_000}, false, "?limit=7").Body.String()), "fewer, as they are too large")

	tidy := fetchList(t, listing{}, false, "?source=&cluster=c&since=+")
	require.Equal(t, http.StatusSeeOther, tidy.Code)
	require.Equal(t, "/gaps?cluster=c", tidy.Header().Get("Location"))
	refused := fetchList(t, listing{}, false, "?source=neither")
	require.Equal(t, http.StatusBadRequest, refused.Code)
	require.Contains(t, refused.Body.String(), "source neither: expected another")
	require.Equal(t, `'a'\''b'`, quoteForShell("a'b"))
}
