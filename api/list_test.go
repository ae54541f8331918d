package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

var next = &trail.Key{At: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), ID: "r1", Cluster: "c1"}

// newListReader answers with two rows, and says what it was asked.
func newListReader(asked *trail.Query) *fakeReader {
	null, text := (*string)(nil), "a,b"
	return &fakeReader{
		listJSON: func(_ context.Context, _ trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
			*asked = q
			return trail.Page[json.RawMessage]{Rows: []json.RawMessage{[]byte(`{"a": 1}`), []byte(`{"a": null}`)}, Next: next}, nil
		},
		listText: func(_ context.Context, _ trail.View, q trail.Query) (trail.Table, error) {
			*asked = q
			return trail.Table{Columns: []string{"x", "y"}, Page: trail.Page[[]*string]{Rows: [][]*string{{null, &text}}}}, nil
		},
	}
}

func TestListFormats(t *testing.T) {
	t.Parallel()
	const asJSON, asCSV = "[\n{\"a\": 1},\n{\"a\": null}\n]\n", "x,y\n,\"a,b\"\n"
	var asked trail.Query
	h := api.Server{Readers: api.ForAll(newListReader(&asked))}.Handler()
	for _, c := range []struct{ name, query, accept, body, contentType string }{
		{"by default", "", "", asJSON, "application/json"},
		{"asked for", "?format=csv", "", asCSV, "text/csv; charset=utf-8; header=present"},
		{"asked for, and otherwise", "?format=csv", "application/json", asCSV, "text/csv; charset=utf-8; header=present"},
		{"accepted", "", "text/csv", asCSV, "text/csv; charset=utf-8; header=present"},
		{"accepted rather", "", "application/json;q=0.5, text/*", asCSV, "text/csv; charset=utf-8; header=present"},
		{"anything", "", "text/html, */*;q=0.1", asJSON, "application/json"},
		{"anything but", "", "application/json;q=0, */*", asCSV, "text/csv; charset=utf-8; header=present"},
		{"nothing that we have", "", "text/html", "", "application/problem+json"},
		{"nothing that can be read", "", ";;", "", "application/problem+json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked trail.Query
			w := sendGet(t, api.Server{Readers: api.ForAll(newListReader(&asked))}.Handler(), "/api/v1/requests"+c.query, "Accept", c.accept)
			require.Equal(t, c.contentType, w.Header().Get("Content-Type"))
			if c.body == "" {
				require.Equal(t, http.StatusNotAcceptable, problemIn(t, w).Status)
				return
			}
			require.Equal(t, c.body, w.Body.String())
			require.Contains(t, w.Header().Values("Vary"), "Accept")
		})
	}
	before := time.Now()
	w := sendGet(t, h, "/api/v1/requests?vm=shop/db-1&limit=2")
	require.Equal(t, trail.Query{Namespace: "shop", VMI: "db-1", Limit: 2, MaxBytes: 10 << 20}, asked)
	link, found := strings.CutSuffix(w.Header().Get("Link"), `>; rel="next"`)
	require.True(t, found)
	since, err := time.Parse(time.RFC3339, w.Header().Get("Evictrail-Changes-Since"))
	require.NoError(t, err)
	require.WithinDuration(t, before.Add(-time.Minute), since, 2*time.Second)
	here, err := url.Parse("/somewhere/api/v1/requests?limit=9")
	require.NoError(t, err)
	there, err := here.Parse(strings.TrimPrefix(link, "<"))
	require.NoError(t, err)
	require.Equal(t, "/somewhere/api/v1/requests", there.Path)
	sendGet(t, h, "/api/v1/requests?"+there.RawQuery)
	require.Equal(t, trail.Query{Namespace: "shop", VMI: "db-1", Limit: 2, MaxBytes: 10 << 20, Before: next}, asked)
}

// TestUnreadRowsAreRefused: where a Reader has stopped reading, the answer says how many rows would do.
func TestUnreadRowsAreRefused(t *testing.T) {
	t.Parallel()
	h := api.Server{Readers: api.ForAll(&fakeReader{
		listJSON: func(_ context.Context, _ trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
			return trail.Page[json.RawMessage]{}, &trail.TooLargeError{Rows: q.MaxBytes >> 20}
		},
		listText: func(context.Context, trail.View, trail.Query) (trail.Table, error) {
			return trail.Table{}, &trail.TooLargeError{}
		},
	})}.Handler()
	p := problemIn(t, sendGet(t, h, "/api/v1/events?limit=10000"))
	require.Equal(t, [2]any{http.StatusBadRequest, api.ProblemTooLarge}, [2]any{p.Status, p.Type})
	require.Equal(t, 10, p.FittingLimit)
	p = problemIn(t, sendGet(t, h, "/api/v1/events?limit=10000&format=csv"))
	require.Equal(t, [2]any{http.StatusBadRequest, 1}, [2]any{p.Status, p.FittingLimit})
}

// TestLargeAnswersAreRefused says with which limit there would be one.
func TestLargeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	h := api.Server{Readers: api.ForAll(&fakeReader{listJSON: func(_ context.Context, _ trail.View, q trail.Query) (trail.Page[json.RawMessage], error) {
		rows := make([]json.RawMessage, q.Limit)
		for i := range rows {
			rows[i] = large
		}
		return trail.Page[json.RawMessage]{Rows: rows}, nil
	}})}.Handler()
	p := problemIn(t, sendGet(t, h, "/api/v1/events?limit=20"))
	require.Equal(t, http.StatusBadRequest, p.Status)
	require.Contains(t, p.Detail, "the rows are more than 10 MiB: lower the limit to 9, or ask for less")
	require.Equal(t, 9, p.FittingLimit)
	require.Equal(t, http.StatusOK, sendGet(t, h, "/api/v1/events?limit=9").Code)
}

func TestNames(t *testing.T) {
	t.Parallel()
	var asked trail.NameQuery
	h := api.Server{Readers: api.ForAll(&fakeReader{names: func(_ context.Context, q trail.NameQuery) ([]string, error) {
		asked = q
		return nil, nil
	}})}.Handler()
	w := sendGet(t, h, "/api/v1/names?kind=vm&prefix=shop/&cluster=c1")
	require.Equal(t, "[]\n", w.Body.String())
	require.Equal(t, trail.NameQuery{Kind: trail.NameVM, Prefix: "shop/", Cluster: "c1"}, asked)
	require.Contains(t, problemIn(t, sendGet(t, h, "/api/v1/names")).Detail, "kind is missing")
	require.Contains(t, problemIn(t, sendGet(t, h, "/api/v1/names?kind=pod")).Detail, `kind "pod": expected one of [cluster namespace vm node]`)
}

func TestWhyAsks(t *testing.T) {
	t.Parallel()
	var asked trail.Question
	h := api.Server{Readers: api.ForAll(&fakeReader{
		why: func(_ context.Context, q trail.Question) (trail.Answer, error) {
			asked = q
			return trail.Answer{Paragraph: "a < b"}, nil
		},
		whyNot: func(_ context.Context, q trail.Question) (trail.NotAnswer, error) {
			asked = q
			return trail.NotAnswer{}, nil
		},
	})}.Handler()
	w := sendGet(t, h, "/api/v1/vms/shop/db-1/why?at=2026-11-21&cluster=c1")
	require.Contains(t, w.Body.String(), "\n  \"paragraph\": \"a < b\",\n")
	require.Equal(t, trail.Question{Cluster: "c1", Of: trail.VMISubject("shop", "db-1"), At: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}, asked)
	sendGet(t, h, "/api/v1/vms/shop/db-1/why-not")
	require.Equal(t, trail.Question{Of: trail.VMISubject("shop", "db-1")}, asked)
	sendGet(t, h, "/api/v1/nodes/n1/why-not")
	require.Equal(t, trail.Question{Of: trail.Subject{Kind: trail.SubjectNode, Name: "n1"}}, asked)
	require.Contains(t, problemIn(t, sendGet(t, h, "/api/v1/nodes/n1/why-not?as=7d")).Detail, `there is no parameter "as" here: there are cluster, at`)
	require.Equal(t, http.StatusBadRequest, sendGet(t, h, "/api/v1/nodes/%ff/why-not").Code)
}
