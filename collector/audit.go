package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// slimAudit is what is read of an audit event.
//
// Source: k8s.io/apiserver pkg/apis/audit/v1, Event.
type slimAudit struct {
	Kind             string     `json:"kind"`
	APIVersion       string     `json:"apiVersion"`
	AuditID          string     `json:"auditID"`
	Stage            string     `json:"stage"`
	RequestURI       string     `json:"requestURI"`
	Verb             string     `json:"verb"`
	User             auditUser  `json:"user"`
	ImpersonatedUser *auditUser `json:"impersonatedUser"`
	SourceIPs        lastIPs    `json:"sourceIPs"`
	UserAgent        string     `json:"userAgent"`
	ObjectRef        *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Code    int    `json:"code"`
		Details *struct {
			Causes firstOf[struct {
				Reason string `json:"reason"`
			}] `json:"causes"`
		} `json:"details"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage  `json:"requestObject"`
	ReceivedAt    time.Time        `json:"requestReceivedTimestamp"`
	StageAt       time.Time        `json:"stageTimestamp"`
	Annotations   auditAnnotations `json:"annotations"`
}

type auditUser struct {
	Username string          `json:"username"`
	Groups   firstOf[string] `json:"groups"`
}

// launcherPrefix begins the name of every virt-launcher pod; KubeVirt's own webhook goes by it.
//
// Source: kubevirt pkg/virt-operator/resource/generate/components/webhooks.go.
const launcherPrefix = "virt-launcher"

// classifyAction returns what the event asks for, and whether that is among what is kept.
func (e *slimAudit) classifyAction() (trail.Action, bool) {
	o := e.ObjectRef
	if o == nil || e.Stage != "ResponseComplete" && e.Stage != "Panic" {
		return "", false
	}
	switch e.Verb + " " + o.APIGroup + " " + o.Resource + " " + o.Subresource {
	case "create  pods eviction":
		return trail.ActionEvict, strings.HasPrefix(o.Name, launcherPrefix)
	case "create kubevirt.io virtualmachineinstancemigrations ":
		return trail.ActionCreateMigration, !e.fromKubeVirt()
	case "delete kubevirt.io virtualmachineinstancemigrations ":
		return trail.ActionDeleteMigration, !e.fromKubeVirt()
	case "update subresources.kubevirt.io virtualmachines migrate", "update subresources.kubevirt.io virtualmachineinstances migrate":
		return trail.ActionMigrate, o.Name != ""
	case "update subresources.kubevirt.io virtualmachines evacuate", "update subresources.kubevirt.io virtualmachineinstances evacuate":
		return trail.ActionCancel, o.Name != ""
	case "patch  nodes ", "update  nodes ":
		return trail.ActionChangeNode, e.mayCordon()
	}
	return "", false
}

// fromKubeVirt reports whether KubeVirt itself asks: its migrations say what they are for, and whose wish they carry out is another request. An account of
// that name in another namespace may be anybody's, and somebody who acts as KubeVirt is not KubeVirt.
func (e *slimAudit) fromKubeVirt() bool {
	return e.impersonator() == "" && trail.IsKubeVirt(e.effectiveUser())
}

// heartbeats are the names of the service accounts that change nodes all the time, in whatever namespace they were installed: who may change nodes is nobody
// who may only edit a namespace.
//
// Source: kubevirt pkg/virt-operator/resource/generate/components/serviceaccountnames.go, cluster-kube-descheduler-operator softtainterserviceaccount.yaml.
var heartbeats = []string{"kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler", "openshift-descheduler-softtainter"}

// mayCordon reports whether a change of a node can be a cordon or a taint by somebody: the node's own kubelet, the
// controllers of Kubernetes, KubeVirt's heartbeats and the descheduler's soft tainter change nodes all the time, and never
// for that. Who acts as one of them may.
func (e *slimAudit) mayCordon() bool {
	user := e.effectiveUser()
	if e.impersonator() != "" {
		return true
	}
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	_, name, _ := strings.Cut(account, ":")
	return !strings.HasPrefix(user, "system:node:") && !strings.HasPrefix(user, "system:kube-") &&
		user != "system:serviceaccount:kube-system:node-controller" && (!isAccount || !slices.Contains(heartbeats, name))
}

// effectiveUser returns as whom was asked: the impersonated user where there is one.
func (e *slimAudit) effectiveUser() string {
	if e.ImpersonatedUser != nil && e.ImpersonatedUser.Username != "" {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// impersonator returns who asked as another user; empty where nobody did.
func (e *slimAudit) impersonator() string {
	if e.effectiveUser() == e.User.Username {
		return ""
	}
	return e.User.Username
}

// sourceIP joins the addresses from which was asked. All but the last come from headers, which a client can write: it is the one that the API server saw.
//
// Source: k8s.io/apiserver pkg/apis/audit/v1, Event.SourceIPs.
func (e *slimAudit) sourceIP() string { return strings.Join(e.SourceIPs, ", ") }

// birth is before any audit event: the first release of Kubernetes.
var birth = time.Date(2014, 6, 6, 0, 0, 0, 0, time.UTC)

// checkEvent says what makes an event unusable.
func (e *slimAudit) checkEvent(now time.Time) error {
	switch {
	case e.AuditID == "" || len(e.AuditID) > 128:
		return fmt.Errorf("auditID %q: expected a UUID", trail.ClipText(e.AuditID, 60))
	case e.ReceivedAt.Before(birth) || e.ReceivedAt.After(now.Add(24*time.Hour)):
		return fmt.Errorf("requestReceivedTimestamp %s: expected a time between %s and a day from now", e.ReceivedAt.Format(time.RFC3339), birth.Format(time.DateOnly))
	case e.StageAt.Before(e.ReceivedAt.Add(-time.Minute)) || e.StageAt.After(now.Add(24*time.Hour)):
		return fmt.Errorf("stageTimestamp %s: expected a time not before %s", e.StageAt.Format(time.RFC3339), e.ReceivedAt.Format(time.RFC3339))
	case e.ObjectRef.Resource != "nodes" && len(validation.IsDNS1123Label(e.ObjectRef.Namespace)) > 0:
		return fmt.Errorf("namespace %q: expected a DNS label", trail.ClipText(e.ObjectRef.Namespace, 80))
	case e.ObjectRef.Name != "" && len(validation.IsDNS1123Subdomain(e.ObjectRef.Name)) > 0:
		return fmt.Errorf("name %q: expected a DNS name", trail.ClipText(e.ObjectRef.Name, 80))
	case e.ObjectRef.Name == "" && e.Verb != "create":
		return errors.New("no objectRef.name")
	}
	return nil
}

// newRequest makes the observation of the event.
func (e *slimAudit) newRequest(action trail.Action) Request {
	o := tracker.RequestObservation{
		Source: trail.SourceAudit, ID: e.AuditID, Stage: e.Stage, Action: action, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		AskedAt: e.ReceivedAt, Detail: trail.RequestDetail{
			User: trail.ClipText(e.effectiveUser(), maxName), Impersonator: trail.ClipText(e.impersonator(), maxName), SourceIP: e.sourceIP(),
			Agent: trail.ClipText(e.UserAgent, maxName), AnsweredAt: e.StageAt, DryRun: isDryRun(e.RequestURI),
		},
	}
	d := &o.Detail
	if s := e.ResponseStatus; s != nil {
		d.Code, d.Status, d.Message = s.Code, trail.ClipText(s.Status, maxName), trail.ClipText(s.Message, maxText)
		if s.Details != nil {
			for _, c := range s.Details.Causes[:min(len(s.Details.Causes), 10)] {
				d.Causes = append(d.Causes, trail.ClipText(c.Reason, maxName))
			}
		}
	}
	e.readAnnotations(d)
	e.readBody(d)
	return func(s tracker.Seen) tracker.RequestObservation { o.Seen = s; return o }
}

func isDryRun(uri string) bool {
	_, query, _ := strings.Cut(uri, "?")
	values, err := url.ParseQuery(query)
	return err == nil && slices.Contains(values["dryRun"], "All")
}

// slimRequest is what is read of a request's body: an Eviction, or a change of a Node.
type slimRequest struct {
	Metadata struct {
		Annotations evictionAnnotations `json:"annotations"`
	} `json:"metadata"`
	DeleteOptions *struct {
		DryRun firstOf[string] `json:"dryRun"`
	} `json:"deleteOptions"`
	Spec *struct {
		Unschedulable *bool `json:"unschedulable"`
	} `json:"spec"`
}

// The annotations of an Eviction by which its sender explains itself.
//
// Source: descheduler pkg/descheduler/evictions/evictions.go.
const (
	annotationRequestedBy = "requested-by"
	annotationReason      = "reason"
)

// fillDetail takes the words of an Eviction's body.
func (r *slimRequest) fillDetail(d *trail.RequestDetail) {
	if by := r.Metadata.Annotations[annotationRequestedBy]; by != "" {
		d.RequestedBy = trail.ClipText(by, maxName)
	}
	if reason := r.Metadata.Annotations[annotationReason]; reason != "" {
		d.StatedReason = trail.ClipText(reason, maxText)
	}
	if r.DeleteOptions != nil && slices.Contains(r.DeleteOptions.DryRun, "All") {
		d.DryRun = true
	}
	if r.Spec != nil {
		d.Unschedulable = r.Spec.Unschedulable
	}
}

// readBody reads the request's body where the audit policy has it sent. A body of another shape, such as a JSON patch, says
// nothing that is kept.
func (e *slimAudit) readBody(d *trail.RequestDetail) {
	var r slimRequest
	if len(e.RequestObject) > 0 && jsonv2.Unmarshal(e.RequestObject, &r, lenient) == nil {
		r.fillDetail(d)
	}
}

// The endings and beginnings of keys of audit annotations that are understood. What stands before the ending is the
// name of a webhook or of a ValidatingAdmissionPolicy.
const (
	keyReview      = "/" + ReviewAnnotation
	keyRequestedBy = "/" + annotationRequestedBy
	keyReason      = "/" + annotationReason
	keyFailedOpen  = "failed-open.validating.webhook.admission.k8s.io/"
	keyOfServer    = ".k8s.io/reason" // the API server's own, about authorization
)

// auditAnnotations are the annotations of an audit event that are understood.
type auditAnnotations map[string]string

// UnmarshalJSONFrom reads those that are understood, and skips the others.
func (a *auditAnnotations) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return decodeKnown(d, (*map[string]string)(a), func(key string) bool {
		isWord := strings.HasSuffix(key, keyReview) || strings.HasSuffix(key, keyRequestedBy) || strings.HasSuffix(key, keyReason)
		return isWord && !strings.HasSuffix(key, keyOfServer) || strings.HasPrefix(key, keyFailedOpen)
	})
}

// evictionAnnotations are the annotations of an Eviction that are understood.
type evictionAnnotations map[string]string

// UnmarshalJSONFrom reads those that are understood, and skips the others.
func (a *evictionAnnotations) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return decodeKnown(d, (*map[string]string)(a), func(key string) bool { return key == annotationRequestedBy || key == annotationReason })
}

// readAnnotations reads what admission left in the event: our observer the UID of its review, and either it or a policy the
// words of the Eviction, also where no body is audited.
func (e *slimAudit) readAnnotations(d *trail.RequestDetail) {
	keys := make([]string, 0, len(e.Annotations))
	for key := range e.Annotations {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := e.Annotations[key]
		switch {
		case value == "":
		case strings.HasSuffix(key, keyReview):
			d.Review = trail.ClipText(value, maxName)
		case strings.HasSuffix(key, keyRequestedBy):
			d.RequestedBy = trail.ClipText(value, maxName)
		case strings.HasSuffix(key, keyReason):
			d.StatedReason = trail.ClipText(value, maxText)
		case strings.HasPrefix(key, keyFailedOpen) && len(d.FailedOpen) < 10:
			d.FailedOpen = append(d.FailedOpen, trail.ClipText(value, maxName))
		}
	}
}

// keptAudit and keptBody are what a recording keeps of an audit event and of the body of its request.
var (
	keptAudit = shapeOf(reflect.TypeFor[slimAudit]())
	keptBody  = shapeOf(reflect.TypeFor[slimRequest]())
)

// pruneEvent returns what a recording keeps of the event: what is read of it.
func (e *slimAudit) pruneEvent() (any, error) {
	kept := *e
	kept.RequestObject = nil
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	v, err := keptAudit.pruneJSON(raw)
	if body, bad := keptBody.pruneJSON(e.RequestObject); bad == nil && err == nil { // of another shape, such as a patch: nothing
		v.(map[string]any)["requestObject"] = keepWords(body)
	}
	return v, err
}

// keepWords takes from a body the annotations that are not read.
func keepWords(body any) any {
	object, _ := body.(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for key := range annotations {
		if key != annotationRequestedBy && key != annotationReason {
			delete(annotations, key)
		}
	}
	return body
}
