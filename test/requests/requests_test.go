package requests_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

var now = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// readRequests returns what the reader takes of a body, with the report.
func readRequests(t *testing.T, body []byte) ([]tracker.RequestObservation, collector.AuditReport) {
	t.Helper()
	var taken []tracker.RequestObservation
	report, err := collector.AuditReader{Now: now, Take: func(r collector.Request) error {
		taken = append(taken, r(tracker.Seen{At: now}))
		return nil
	}}.Read(bytes.NewReader(body))
	require.NoError(t, err)
	return taken, report
}

// TestRecordedEventsAsKubernetesWritesThem reads every recorded audit event into Kubernetes' own type, strictly, writes
// all of a log as an API server's webhook does, and takes the same from it as from the log.
func TestRecordedEventsAsKubernetesWritesThem(t *testing.T) {
	t.Parallel()
	logs, err := fs.Glob(evictrail.Recordings(), "*/audit.jsonl.gz")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	codec := audit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion)
	for _, name := range logs {
		packed, err := fs.ReadFile(evictrail.Recordings(), name)
		require.NoError(t, err)
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		list := auditv1.EventList{}
		lines := bufio.NewScanner(unpacked)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			d.DisallowUnknownFields()
			var event auditv1.Event
			require.NoError(t, d.Decode(&event), name)
			list.Items = append(list.Items, event)
		}
		require.NoError(t, lines.Err())
		body, err := runtime.Encode(codec, &list)
		require.NoError(t, err)

		sent, report := readRequests(t, body)
		require.Zero(t, report.Refused, report.First)
		logged, fromLog := readRequests(t, packed)
		require.Equal(t, logged, sent, name)
		require.Equal(t, fromLog.Skipped, report.Skipped)
		require.Equal(t, len(list.Items), report.Events())
	}
}

// TestReviewAsKubernetesWritesIt reads a review that Kubernetes' own type wrote, and Kubernetes' own type reads the
// answer.
func TestReviewAsKubernetesWritesIt(t *testing.T) {
	t.Parallel()
	yes := true
	body, err := json.Marshal(&policyv1.Eviction{
		TypeMeta: metav1.TypeMeta{Kind: "Eviction", APIVersion: "policy/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "virt-launcher-db-x", Namespace: "shop",
			Annotations: map[string]string{"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by P/L: "},
		},
	})
	require.NoError(t, err)
	raw, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("u-1"), Kind: metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, SubResource: "eviction", Name: "virt-launcher-db-x", Namespace: "shop",
			Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: "alice"}, Object: runtime.RawExtension{Raw: body}, DryRun: &yes,
		},
	})
	require.NoError(t, err)
	review, err := collector.ReadReview(raw)
	require.NoError(t, err)
	require.Equal(t, tracker.RequestObservation{
		Seen: tracker.Seen{At: now}, Source: trail.SourceAdmission, ID: "u-1", Action: trail.ActionEvict, Namespace: "shop", Name: "virt-launcher-db-x",
		Detail: trail.RequestDetail{User: "alice", RequestedBy: "sigs.k8s.io/descheduler", StatedReason: "triggered by P/L: ", DryRun: true},
	}, review.Request(tracker.Seen{At: now}))

	var answer admissionv1.AdmissionReview
	d := json.NewDecoder(bytes.NewReader(review.Answer()))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&answer))
	require.Equal(t, &admissionv1.AdmissionResponse{UID: "u-1", Allowed: true, AuditAnnotations: map[string]string{
		"evictrail-review": "u-1", "requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by P/L: ",
	}}, answer.Response)
}
