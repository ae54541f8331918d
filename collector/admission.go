package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// ReviewAnnotation is the key under which the observer leaves the UID of its review in the audit event of the same
// request; the API server puts the webhook's name and a slash before it.
//
// Source: k8s.io/apiserver pkg/admission/plugin/webhook/validating/dispatcher.go.
const ReviewAnnotation = "evictrail-review"

// slimReview is what is read of an AdmissionReview.
//
// Source: k8s.io/api/admission/v1.
type slimReview struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Request    *struct {
		UID      string `json:"uid"`
		Resource struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
		SubResource string      `json:"subResource"`
		Name        string      `json:"name"`
		Namespace   string      `json:"namespace"`
		Operation   string      `json:"operation"`
		UserInfo    auditUser   `json:"userInfo"`
		Object      slimRequest `json:"object"`
		DryRun      *bool       `json:"dryRun"`
	} `json:"request"`
}

// Review is an admission review that was read.
type Review struct {
	UID     string
	Request Request // what was asked; nil where it is no eviction of a virt-launcher pod

	detail trail.RequestDetail
}

// ReadReview reads an AdmissionReview. Errors: it is none, or has no UID, without which it cannot be answered.
func ReadReview(raw []byte) (*Review, error) {
	var v slimReview
	switch err := jsonv2.Unmarshal(raw, &v, lenient); {
	case err != nil:
		return nil, fmt.Errorf("bad JSON: %w", clipError(err))
	case v.Kind != "AdmissionReview" || v.APIVersion != "admission.k8s.io/v1":
		return nil, fmt.Errorf("apiVersion %q, kind %q: expected an AdmissionReview of admission.k8s.io/v1", trail.ClipText(v.APIVersion, 60), trail.ClipText(v.Kind, 60))
	case v.Request == nil || v.Request.UID == "" || len(v.Request.UID) > 128:
		return nil, errors.New("no request.uid")
	}
	q := v.Request
	r := &Review{UID: q.UID, detail: trail.RequestDetail{User: trail.ClipText(q.UserInfo.Username, maxName), DryRun: q.DryRun != nil && *q.DryRun}}
	q.Object.fillDetail(&r.detail)
	r.detail.Unschedulable = nil
	isEviction := q.Operation == "CREATE" && q.Resource.Group == "" && q.Resource.Resource == "pods" && q.SubResource == "eviction"
	if !isEviction || !strings.HasPrefix(q.Name, launcherPrefix) || !isName(q.Namespace, q.Name) {
		return r, nil
	}
	o := tracker.RequestObservation{
		Source: trail.SourceAdmission, ID: q.UID, Action: trail.ActionEvict, Namespace: q.Namespace, Name: q.Name, Detail: r.detail,
	}
	r.Request = func(s tracker.Seen) tracker.RequestObservation { o.Seen = s; return o }
	return r, nil
}

func isName(namespace, name string) bool {
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// reviewAnswer is an AdmissionReview as it is answered.
type reviewAnswer struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Response   reviewResponse `json:"response"`
}

type reviewResponse struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

// Answer returns the answer to a review: always allowed. It leaves in the audit event what joins the two, and the words of
// the Eviction, which an audit policy at level Metadata would not show.
func (r *Review) Answer() []byte {
	a := reviewAnswer{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: reviewResponse{UID: r.UID, Allowed: true}}
	if r.Request != nil {
		a.Response.AuditAnnotations = map[string]string{ReviewAnnotation: r.UID}
		if r.detail.RequestedBy != "" {
			a.Response.AuditAnnotations[annotationRequestedBy] = r.detail.RequestedBy
		}
		if r.detail.StatedReason != "" {
			a.Response.AuditAnnotations[annotationReason] = r.detail.StatedReason
		}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		panic("marshal admission review: " + err.Error()) // plain strings: cannot fail
	}
	return raw
}
