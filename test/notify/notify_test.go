// Package notify has the official SDKs receive what evictrail sends.
package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/evictrail/evictrail/notify"
	"github.com/evictrail/evictrail/remote"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const vms = 3

// notifyHistory notifies a receiver of VMs that were marked, failed once and moved.
func notifyHistory(t *testing.T, newReceiver func(s *store.Store) (notify.Receiver, error)) (s *store.Store, sent int) {
	t.Helper()
	s = storetest.New(t)
	storetest.Record(t, s, storetest.IncidentAt(time.Now().UTC().Add(-time.Hour), "c1", vms))
	to, err := newReceiver(s)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "INSERT INTO evictrail.receivers VALUES ('c1', $1, now() - interval '2 hours', now() - interval '2 hours')", to.Name())
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.evacuations SET changed_at = now() - interval '1 minute'")
	require.NoError(t, err)
	notifier := notify.Notifier{DB: s.DB, Rows: s.Whole, Cluster: "c1", Receiver: to}
	sent, err = notifier.SendNews(t.Context())
	require.NoError(t, err)
	return s, sent
}

// TestTheSDKTakesCloudEvents receives with the SDK of the CloudEvents project, which answers 4xx to what is none.
func TestTheSDKTakesCloudEvents(t *testing.T) {
	t.Parallel()
	var events []cloudevents.Event
	protocol, err := cloudevents.NewHTTP()
	require.NoError(t, err)
	handler, err := cloudevents.NewHTTPReceiveHandler(t.Context(), protocol, func(_ context.Context, e cloudevents.Event) { events = append(events, e) })
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	_, sent := notifyHistory(t, func(*store.Store) (notify.Receiver, error) {
		return notify.NewCloudEvents(remote.Server{URL: server.URL})
	})
	require.Len(t, events, sent)
	require.GreaterOrEqual(t, sent, 2*vms)
	types := map[string]int{}
	for _, e := range events {
		require.NoError(t, e.Validate())
		require.Equal(t, "1.0", e.SpecVersion())
		require.Equal(t, "urn:evictrail:cluster:c1", e.Source())
		require.WithinDuration(t, time.Now().Add(-time.Hour), e.Time(), time.Hour)
		var data struct {
			Sentence string          `json:"sentence"`
			Row      json.RawMessage `json:"row"`
		}
		require.NoError(t, e.DataAs(&data))
		require.NotEmpty(t, data.Sentence)
		require.NotEmpty(t, data.Row)
		types[e.Type()]++
	}
	require.Equal(t, vms, types["dev.evictrail.evacuation.stuck"])
	require.Equal(t, vms, types["dev.evictrail.evacuation.ended"])
}

// TestTheCollectorReadsTraces reads what is sent with the code of the OpenTelemetry collector.
func TestTheCollectorReadsTraces(t *testing.T) {
	t.Parallel()
	var traces []ptrace.Traces
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			var got ptrace.Traces
			if got, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(body); err == nil {
				traces = append(traces, got)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	s, sent := notifyHistory(t, func(s *store.Store) (notify.Receiver, error) {
		return notify.NewTraces(remote.Server{URL: server.URL}, s.Whole)
	})
	require.Equal(t, vms, sent)
	require.Len(t, traces, vms)
	for _, trace := range traces {
		resource := trace.ResourceSpans().At(0)
		name, _ := resource.Resource().Attributes().Get("service.name")
		require.Equal(t, "evictrail", name.Str())
		spans := resource.ScopeSpans().At(0).Spans()
		require.Equal(t, trace.SpanCount(), spans.Len())
		root := spans.At(0)
		require.True(t, root.ParentSpanID().IsEmpty())
		vm, _ := root.Attributes().Get("evictrail.vmi")
		page, err := s.ListJSON(t.Context(), trail.ViewEvacuations, trail.Query{Cluster: "c1", Namespace: "shop", VMI: vm.Str()})
		require.NoError(t, err)
		var row struct {
			ID       trail.FactID `json:"evacuation_id"`
			MarkedAt time.Time    `json:"marked_at"`
			EndedAt  time.Time    `json:"ended_at"`
		}
		require.NoError(t, json.Unmarshal(page.Rows[0], &row))
		require.Equal(t, [16]byte(row.ID), [16]byte(root.TraceID()))
		require.Equal(t, row.MarkedAt.UTC(), root.StartTimestamp().AsTime())
		require.Equal(t, row.EndedAt.UTC(), root.EndTimestamp().AsTime())
		failed := 0
		for i := range spans.Len() {
			span := spans.At(i)
			require.Equal(t, root.TraceID(), span.TraceID())
			require.GreaterOrEqual(t, span.EndTimestamp(), span.StartTimestamp())
			require.Equal(t, ptrace.SpanKindInternal, span.Kind())
			if span.Status().Code() == ptrace.StatusCodeError {
				failed++
			}
		}
		require.Equal(t, 1, failed, "one attempt did")
	}
}
