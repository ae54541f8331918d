package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// TestAnswersDescribeTheirRecording checks the headers of lists and answers, and the list of recorders.
func TestAnswersDescribeTheirRecording(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	gaps := []trail.Gap{
		{Source: "pods", OpenedAt: at, Cause: "forbidden"},
		{Source: "evictrail", OpenedAt: at.Add(-time.Hour), ClosedAt: at.Add(-time.Minute), Cause: "not_running"},
	}
	const inHeader = "pods 2026-11-21T21:40:00Z/.. forbidden, evictrail 2026-11-21T20:40:00Z/2026-11-21T21:39:00Z not_running"
	well := trail.RecorderStatus{
		Cluster: "a", State: trail.RecorderRecording, Why: []string{}, Unseen: []string{}, At: at,
		Standby: &trail.StandbySigns{Used: true, AsOf: at.Add(-time.Minute)},
	}
	blind := trail.RecorderStatus{
		Cluster: "b", State: trail.RecorderNotRecording, Since: at, Why: []string{"Cannot watch."}, Unseen: []string{"pods"}, At: at, NotObserved: gaps,
		Details: []string{"pods is forbidden: User x"},
	}
	f := &fakeReader{recorders: []trail.RecorderStatus{well, blind}}
	f.listJSON = func(context.Context, trail.View, trail.Query) (trail.Page[json.RawMessage], error) {
		return trail.Page[json.RawMessage]{}, nil
	}
	f.why = func(context.Context, trail.Question) (trail.Answer, error) {
		return trail.Answer{Paragraph: "It moved.", Recorder: blind.Note(), NotObserved: gaps}, nil
	}
	f.whyNot = func(context.Context, trail.Question) (trail.NotAnswer, error) {
		return trail.NotAnswer{Paragraph: "Nothing.", NotObserved: gaps}, nil
	}
	h := api.Server{Readers: api.ForAll(f)}.Handler()

	list := sendGet(t, h, "/api/v1/loops")
	require.Equal(t, http.StatusOK, list.Code)
	require.Equal(t, "not_recording", list.Header().Get("Evictrail-Recorder-State"), "the worst of the clusters")
	require.Equal(t, at.Add(-time.Minute).Format(time.RFC3339), list.Header().Get("Evictrail-Standby-As-Of"), "the oldest, also of another cluster than the worst")
	require.Equal(t, inHeader, list.Header().Get("Evictrail-Not-Observed"))

	all := sendGet(t, h, "/api/v1/recorders?from=2026-11-21T20:00:00Z")
	require.Equal(t, http.StatusOK, all.Code)
	require.Contains(t, all.Body.String(), `"state": "not_recording"`)
	require.Contains(t, all.Body.String(), `"source": "pods"`)
	require.NotContains(t, all.Body.String(), "User x", "errors in full are for the operator")

	why := sendGet(t, h, "/api/v1/vms/shop/db-1/why")
	require.Equal(t, "not_recording", why.Header().Get("Evictrail-Recorder-State"))
	require.Contains(t, why.Body.String(), `"recorder": {`)
	require.Contains(t, why.Body.String(), `"not_observed": [`)

	past := sendGet(t, h, "/api/v1/vms/shop/db-1/why-not")
	require.Empty(t, past.Header().Values("Evictrail-Recorder-State"), "about the past the state now says nothing")
	require.Equal(t, inHeader, past.Header().Get("Evictrail-Not-Observed"))
}
