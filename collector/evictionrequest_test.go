package collector

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// evictionTime returns a moment of a minute of the day on which the objects of these tests are made.
func evictionTime(minute int) time.Time { return time.Date(2026, 11, 21, 10, minute, 0, 0, time.UTC) }

func newEvictionMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              name,
		Namespace:         "shop",
		UID:               types.UID("uid-" + name),
		ResourceVersion:   "7",
		CreationTimestamp: metav1.NewTime(evictionTime(0)),
	}
}

func newEvictionRequest(name, pod string) lifecyclev1alpha1.EvictionRequest {
	return lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: newEvictionMeta(name),
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target: lifecyclev1alpha1.EvictionRequestTarget{
				Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod, UID: "p1"},
			},
			Requester: "acme.io/upgrade",
			Intent:    lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

func marshalText(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// TestEvictionRequestsAreRead reads objects as the API server's own types write them.
func TestEvictionRequestsAreRead(t *testing.T) {
	t.Parallel()
	meta := func(name string) tracker.Meta {
		return tracker.Meta{
			UID:             "uid-" + name,
			Namespace:       "shop",
			Name:            name,
			ResourceVersion: "7",
			CreatedAt:       evictionTime(0),
		}
	}
	request := newEvictionRequest("r1", "virt-launcher-db-x")
	request.Status.Conditions = []metav1.Condition{
		{
			Type:               string(lifecyclev1alpha1.EvictionConditionFailed),
			Status:             "False",
			Reason:             "AwaitingEviction",
			LastTransitionTime: metav1.NewTime(evictionTime(1)),
		},
	}
	observed, err := Decode("evictionrequests", []byte(marshalText(t, request)))
	require.NoError(t, err)
	require.Equal(t, tracker.EvictionRequestObservation{
		Meta: meta(
			"r1",
		),
		Pod:            "virt-launcher-db-x",
		PodUID:         "p1",
		EvictionIntent: tracker.EvictionIntent{Requester: "acme.io/upgrade", Intent: trail.IntentEviction},
		Conditions: []tracker.Condition{
			{Type: trail.ConditionFailed, Status: "False", Reason: "AwaitingEviction", ChangedAt: evictionTime(1)},
		},
	}, observed(tracker.Seen{}))

	times := func(minute int) *metav1.Time { return new(metav1.NewTime(evictionTime(minute))) }
	eviction := lifecyclev1alpha1.Eviction{
		ObjectMeta: newEvictionMeta("e1"),
		Spec: lifecyclev1alpha1.EvictionSpec{
			Target: lifecyclev1alpha1.EvictionTarget{
				Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "virt-launcher-db-x", UID: "p1"},
			},
		},
		Status: lifecyclev1alpha1.EvictionStatus{
			Requesters: []lifecyclev1alpha1.Requester{
				{Name: "acme.io/upgrade", Intent: lifecyclev1alpha1.RequesterIntentWithdrawn},
			},
			TargetResponders: []lifecyclev1alpha1.TargetResponder{
				{Name: "storage.io/flush", Priority: new(int32(2000)), State: lifecyclev1alpha1.ResponderStateActive},
				{
					Name:     lifecyclev1alpha1.EvictionResponderImperativeEviction,
					Priority: new(int32(100)),
					State:    lifecyclev1alpha1.ResponderStateInactive,
				},
			},
			Responders: []lifecyclev1alpha1.ResponderStatus{
				{Name: lifecyclev1alpha1.EvictionResponderImperativeEviction},
				{
					Name:                   "storage.io/flush",
					StartTime:              times(1),
					HeartbeatTime:          times(2),
					ExpectedCompletionTime: times(5),
					CompletionTime:         times(4),
					Message:                new("flushing"),
				},
			},
		},
	}
	observed, err = Decode("evictions", []byte(marshalText(t, eviction)))
	require.NoError(t, err)
	require.Equal(t, tracker.EvictionObservation{
		Meta: meta("e1"), Pod: "virt-launcher-db-x", PodUID: "p1", Conditions: []tracker.Condition{},
		Requesters: []tracker.EvictionIntent{{Requester: "acme.io/upgrade", Intent: trail.IntentWithdrawn}},
		Responders: []tracker.EvictionResponder{
			{
				Name:        "storage.io/flush",
				Priority:    2000,
				State:       "Active",
				Message:     "flushing",
				StartedAt:   evictionTime(1),
				HeartbeatAt: evictionTime(2),
				ExpectedAt:  evictionTime(5),
				CompletedAt: evictionTime(4),
			},
			{Name: trail.ImperativeEvictor, Priority: 100, State: "Inactive"},
		},
	}, observed(tracker.Seen{}))
	require.Equal(t, lifecyclev1alpha1.EvictionResponderImperativeEviction, trail.ImperativeEvictor)

	observed, err = Decode("evictionrequests", []byte(marshalText(t, newEvictionRequest("r2", "web-0"))))
	require.NoError(t, err)
	require.Nil(t, observed, "the pod is no VM's")
}

// TestRecordedEvictionKeepsItsEvictor hides the names of requesters and responders, alike in both objects, but for
// the name of Kubernetes' own evictor.
func TestRecordedEvictionKeepsItsEvictor(t *testing.T) {
	t.Parallel()
	hide := NewRedactor()
	request := hide.Value(map[string]any{"requester": "kubevirt.io/upgrade"}).(map[string]any)
	listed := map[string]any{"name": "kubevirt.io/upgrade", "intent": "Withdrawn"}
	hide.Value(map[string]any{"requesters": []any{listed}})
	require.NotContains(t, request["requester"], "upgrade")
	require.Equal(t, request["requester"], listed["name"])
	require.Equal(t, "Withdrawn", listed["intent"])
	for _, known := range []string{
		"Interrupted", "CanceledDueToNoRequesters", "NoFurtherResponder", "AwaitingEviction", "PodTerminal",
	} {
		require.Equal(t, known, hide.Text(known))
	}
	require.Equal(
		t,
		trail.ImperativeEvictor,
		hide.Value(map[string]any{"name": trail.ImperativeEvictor}).(map[string]any)["name"],
	)
}

// TestAbsentEvictionRequests watches a cluster that does not serve the group, with rights that do not name it:
// nothing is refused, and nothing is a gap. Then the group comes, at first still without the right, which is a
// problem now, and it goes again. An EvictionRequest about the pod of no VM is counted only.
func TestAbsentEvictionRequests(t *testing.T) {
	t.Parallel()
	a, sink, log := newAPI(), &sink{}, &lockedBuffer{}
	var served, allowed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		group := strings.HasPrefix(r.URL.Path, "/apis/lifecycle.k8s.io/v1alpha1")
		resource := group && strings.Count(r.URL.Path, "/") > 3
		status := http.StatusOK
		switch {
		case resource && !allowed.Load():
			status = http.StatusForbidden
		case group && !served.Load():
			status = http.StatusNotFound
		case !group || resource:
			a.ServeHTTP(w, r)
			return
		}
		reason := map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		}[status]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(status), Reason: reason,
		})
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{
		REST: &rest.Config{
			Host: server.URL,
		},
		Tracker: tracker.New("test"),
		Sink:    sink,
		Log:     slog.New(slog.NewTextHandler(log, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()),
		Clock:   func() time.Time { return time.Now().UTC() },
		Backoff: &wait.Backoff{
			Duration: 10 * time.Millisecond,
			Factor:   1,
			Steps:    1,
		},
		UnseenAfter: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	for _, f := range c.feeds {
		if f.group == "lifecycle.k8s.io" {
			require.Equal(t, 5*time.Minute, f.optional)
			f.optional = 100 * time.Millisecond
		}
	}
	r := &running{Collector: c, log: log}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- c.Run(ctx) }()

	all := func() bool { return len(c.Unready()) == 0 }
	r.requireEventually(t, "it is absent", func() bool { return len(c.Watches()) == len(resources)-2 && all() })
	require.Equal(t, 2, strings.Count(log.String(), "not installed"))
	require.NotContains(t, log.String(), "watch refused")
	require.NoError(t, c.Flush(t.Context()))
	require.Zero(t, sink.countKinds()[trail.KindGapOpened], log)

	a.setAnswer(
		"evictionrequests",
		0,
		marshalText(t, newEvictionRequest("r1", "virt-launcher-db-x")),
		marshalText(t, newEvictionRequest("r2", "web-0")),
	)
	served.Store(true)
	r.requireEventually(t, "the right is missing", func() bool {
		return strings.Contains(log.String(), "no right to watch evictionrequests.lifecycle.k8s.io")
	})
	allowed.Store(true)
	r.requireEventually(t, "it is there", func() bool { return len(c.Watches()) == len(resources) && all() })
	require.NoError(t, c.Flush(t.Context()))
	require.Equal(t, 1, sink.countKinds()[trail.KindEvictionIntent])
	require.InDelta(
		t,
		1,
		testutil.ToFloat64(c.Metrics.Facts.WithLabelValues(string(trail.ObjectEvictionRequest), metrics.StageSkipped)),
		0,
	)
	served.Store(false)
	server.CloseClientConnections()
	r.requireEventually(t, "it is absent again", func() bool { return len(c.Watches()) == len(resources)-2 && all() })
	stop()
	require.NoError(t, <-done)
}
