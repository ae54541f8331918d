package notify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/notify"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// inbox is a receiver over HTTP. It takes what it gets, but for what answer says.
type inbox struct {
	*httptest.Server
	answer func(n int) (status int, body string) // to the nth request; nil: takes all

	mu     sync.Mutex
	got    []map[string]any
	heads  []http.Header
	paths  []string
	asked  int
	unread []error
}

func newInbox(t *testing.T, answer func(n int) (int, string)) *inbox {
	t.Helper()
	b := &inbox{answer: answer}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked++
		status, body := http.StatusNoContent, ""
		if b.answer != nil {
			status, body = b.answer(b.asked)
		}
		var message map[string]any
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &message)
		}
		if err != nil {
			b.unread = append(b.unread, err)
		}
		if status < 300 {
			b.got, b.heads, b.paths = append(b.got, message), append(b.heads, r.Header), append(b.paths, r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(b.Close)
	t.Cleanup(func() { require.Empty(t, b.unread) })
	return b
}

// ids returns the IDs of the CloudEvents that it took.
func (b *inbox) ids() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.got {
		out = append(out, e["id"].(string))
	}
	return out
}

// newHistory returns a store with VMs that were marked, failed once and moved, of which all is news to a receiver.
func newHistory(t *testing.T, vms int, receiver string) *store.Store {
	t.Helper()
	s := storetest.New(t)
	storetest.Record(t, s, storetest.IncidentAt(time.Now().UTC().Add(-time.Hour), "c1", vms))
	knowSince(t, s, receiver, time.Now().Add(-2*time.Hour))
	return s
}

// knowSince has a receiver known since a time.
func knowSince(t *testing.T, s *store.Store, receiver string, since time.Time) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), "INSERT INTO evictrail.receivers (cluster, receiver, since, notified_to) VALUES ('c1', $1, $2, $2)", receiver, since)
	require.NoError(t, err)
}

func newNotifier(s *store.Store, to notify.Receiver) (*notify.Notifier, map[trail.Delivery]int) {
	became := map[trail.Delivery]int{}
	return &notify.Notifier{DB: s.DB, Rows: s.Whole, Cluster: "c1", Receiver: to, Sent: func(_ trail.Notice, d trail.Delivery, _ error) { became[d]++ }}, became
}

// expectedQuery counts what is to be sent, without the code that sends it.
const expectedQuery = `
SELECT (SELECT count(*) FROM evictrail_v1.evacuations WHERE failed_attempts > 0)
     + (SELECT count(*) FROM evictrail_v1.evacuations WHERE ended_at IS NOT NULL)
     + (SELECT count(*) + count(closed_at) FROM evictrail_v1.loops)
     + (SELECT count(*) + count(ended_at) FROM evictrail_v1.drains)
     + (SELECT count(*) FROM evictrail_v1.placements WHERE ended_by NOT IN ('stopped', 'deleted'))`

// TestEachNoticeIsSent notifies a receiver that is away at times and refuses one notice. Nothing is lost, all of it comes in the order in which it
// happened, and what was taken is not sent again, also where everything is derived again.
func TestEachNoticeIsSent(t *testing.T) {
	t.Parallel()
	s := newHistory(t, 4, "cloudevents")
	want := storetest.CountRows(t, s, expectedQuery)
	require.GreaterOrEqual(t, want, 8)
	b := newInbox(t, func(n int) (int, string) {
		switch n {
		case 2, 4:
			return http.StatusServiceUnavailable, "come back later"
		case 6:
			return http.StatusUnprocessableEntity, "not like this"
		}
		return http.StatusAccepted, ""
	})
	events, err := notify.NewCloudEvents(remote.Server{URL: b.URL})
	require.NoError(t, err)
	to, became := newNotifier(s, events)

	sent, err := to.SendNews(t.Context())
	require.Equal(t, 1, sent)
	require.ErrorContains(t, err, "notify cloudevents of ")
	require.ErrorContains(t, err, "answers 503 Service Unavailable: come back later")
	sent, err = to.SendNews(t.Context())
	require.Equal(t, 1, sent)
	require.ErrorContains(t, err, "503")
	sent, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Equal(t, want-3, sent)
	require.Equal(t, map[trail.Delivery]int{trail.DeliveryTaken: want - 1, trail.DeliveryFailed: 2, trail.DeliveryRefused: 1}, became)
	ids := b.ids()
	require.Len(t, ids, want-1)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), want-1, "none twice")
	times := []string{}
	for _, e := range b.got {
		times = append(times, e["time"].(string))
	}
	require.IsNonDecreasing(t, times)

	_, err = s.Rederive(t.Context(), "c1")
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now()")
	require.NoError(t, err)
	sent, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Zero(t, sent)
}

// TestCloudEventsAreWhole looks at all that an event says.
func TestCloudEventsAreWhole(t *testing.T) {
	t.Parallel()
	s := newHistory(t, 1, "cloudevents")
	b := newInbox(t, nil)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	events, err := notify.NewCloudEvents(remote.Server{URL: b.URL + "/in", TokenFile: token})
	require.NoError(t, err)
	to, _ := newNotifier(s, events)
	_, err = to.SendNews(t.Context())
	require.NoError(t, err)
	stuck := b.got[slices.IndexFunc(b.got, func(e map[string]any) bool { return e["type"] == "dev.evictrail.evacuation.stuck" })]
	require.Equal(t, "1.0", stuck["specversion"])
	require.Equal(t, "urn:evictrail:cluster:c1", stuck["source"])
	require.Equal(t, "shop/db-0", stuck["subject"])
	require.Equal(t, "application/json", stuck["datacontenttype"])
	data := stuck["data"].(map[string]any)
	require.Contains(t, data["sentence"], "shop/db-0 is to leave n1, and 1 attempt failed")
	page, err := s.ListJSON(t.Context(), trail.ViewEvacuations, trail.Query{Cluster: "c1"})
	require.NoError(t, err)
	row, err := json.Marshal(data["row"])
	require.NoError(t, err)
	require.JSONEq(t, string(page.Rows[0]), string(row), "as lists have it")
	require.Equal(t, "/in", b.paths[0])
	require.Equal(t, "Bearer secret", b.heads[0].Get("Authorization"))
	require.Equal(t, "application/cloudevents+json; charset=utf-8", b.heads[0].Get("Content-Type"))
}

// TestThePastIsNotSent holds that a receiver hears of nothing that happened before it was known, and of nothing older than a week before what it
// was notified of last.
func TestThePastIsNotSent(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	b := newInbox(t, nil)
	events, err := notify.NewCloudEvents(remote.Server{URL: b.URL})
	require.NoError(t, err)
	to, _ := newNotifier(s, events)
	storetest.Record(t, s, storetest.IncidentAt(time.Now().UTC().Add(-time.Hour), "c1", 2))
	sent, err := to.SendNews(t.Context())
	require.NoError(t, err)
	require.Zero(t, sent, "it is not known yet")
	var since, notifiedTo time.Time
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT since, notified_to FROM evictrail.receivers").Scan(&since, &notifiedTo))
	require.WithinDuration(t, time.Now(), since, time.Minute)
	require.False(t, notifiedTo.Before(since))

	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.receivers SET since = since - interval '30 days', notified_to = since + interval '8 days'")
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now() + interval '8 days'")
	require.NoError(t, err)
	sent, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Zero(t, sent, "an hour ago is more than a week before what was sent last")
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.receivers SET notified_to = now() - interval '5 minutes'")
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now()")
	require.NoError(t, err)
	sent, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, sent, "a receiver that was away for a while")
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.deliveries SET at = now() - interval '8 days'")
	require.NoError(t, err)
	_, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Zero(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.deliveries WHERE at < now() - interval '7 days'"), "what is sent no more is not kept")
}

// span is what is looked at of a span.
type span struct{ TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano, EndTimeUnixNano string }

// TestTraceOfAnEvacuation sends the traces of two evacuations, each with its attempts and their phases.
func TestTraceOfAnEvacuation(t *testing.T) {
	t.Parallel()
	s := newHistory(t, 2, "traces")
	b := newInbox(t, func(n int) (int, string) {
		if n == 1 {
			return http.StatusTooManyRequests, ""
		}
		return http.StatusOK, `{"partialSuccess":{}}`
	})
	traces, err := notify.NewTraces(remote.Server{URL: b.URL + "/collector"}, s.Whole)
	require.NoError(t, err)
	to, became := newNotifier(s, traces)
	sent, err := to.SendNews(t.Context())
	require.NoError(t, err)
	require.Zero(t, sent, "the last phases may still come")
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now() - interval '1 minute'")
	require.NoError(t, err)
	_, err = to.SendNews(t.Context())
	require.ErrorContains(t, err, "429")
	sent, err = to.SendNews(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, sent)
	require.Equal(t, map[trail.Delivery]int{trail.DeliveryTaken: 2, trail.DeliveryFailed: 1}, became)
	require.Equal(t, []string{"/collector/v1/traces", "/collector/v1/traces"}, b.paths)

	for i, message := range b.got {
		raw, err := json.Marshal(message["resourceSpans"].([]any)[0].(map[string]any)["scopeSpans"].([]any)[0].(map[string]any)["spans"])
		require.NoError(t, err)
		var spans []span
		require.NoError(t, json.Unmarshal(raw, &spans))
		names := map[string]int{}
		known := map[string]bool{"": true}
		for _, s := range spans {
			names[s.Name]++
			require.Equal(t, spans[0].TraceID, s.TraceID)
			require.True(t, known[s.ParentSpanID], "a parent comes before its children")
			require.False(t, known[s.SpanID])
			require.Len(t, s.SpanID, 16)
			require.Len(t, s.TraceID, 32)
			require.LessOrEqual(t, s.StartTimeUnixNano, s.EndTimeUnixNano)
			known[s.SpanID] = true
		}
		require.Equal(t, map[string]int{"evacuation": 1, "eviction request": 1, "migration": 2, "queue": 2}, names)
		require.Empty(t, spans[0].ParentSpanID)
		id := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail_v1.evacuations WHERE replace(evacuation_id::text, '-', '') = $1", spans[0].TraceID)
		require.Equal(t, 1, id, "trace %d is named as its evacuation", i)
	}
}

// TestRejectedSpansAreRefused believes a collector that answers 200 and took nothing.
func TestRejectedSpansAreRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`, `{"partialSuccess":{"rejectedSpans":3,"errorMessage":"too old"}}`} {
		s := newHistory(t, 1, "traces")
		_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now() - interval '1 minute'")
		require.NoError(t, err)
		b := newInbox(t, func(int) (int, string) { return http.StatusOK, body })
		traces, err := notify.NewTraces(remote.Server{URL: b.URL}, s.Whole)
		require.NoError(t, err)
		to, became := newNotifier(s, traces)
		sent, err := to.SendNews(t.Context())
		require.NoError(t, err)
		require.Zero(t, sent)
		require.Equal(t, map[trail.Delivery]int{trail.DeliveryRefused: 1}, became)
	}
}

// TestErrorsKeepSecrets leaves what a URL may hide out of errors.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	s := newHistory(t, 1, "cloudevents")
	b := newInbox(t, func(int) (int, string) { return http.StatusNotFound, "" })
	for _, url := range []string{b.URL + "/hook?token=hidden", "http://127.0.0.1:1/hook?token=hidden"} {
		events, err := notify.NewCloudEvents(remote.Server{URL: url})
		require.NoError(t, err)
		to, _ := newNotifier(s, events)
		_, err = to.SendNews(t.Context())
		require.ErrorContains(t, err, "/hook")
		require.NotContains(t, fmt.Sprint(err), "hidden")
	}
}
