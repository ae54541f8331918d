package collector

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/evictrail/evictrail/trail"
)

// AuditReport counts what a reading of audit events came to.
type AuditReport struct {
	Lines   int    `json:"lines"`
	Taken   int    `json:"taken"`   // events about evictions and migrations
	Skipped int    `json:"skipped"` // events about something else
	Refused int    `json:"refused"` // lines and events that cannot be used
	First   string `json:"first_refused,omitempty"`
}

// Events counts the events that were read.
func (r *AuditReport) Events() int { return r.Taken + r.Skipped + r.Refused }

func (r *AuditReport) refuse(where string, err error) {
	r.Refused++
	if r.First == "" {
		r.First = fmt.Sprintf("%s: %v", where, err)
	}
}

// MaxAudit bounds a body of audit events and a line of an audit log, in bytes, unpacked.
//
// Source: kube-apiserver --audit-webhook-truncate-max-batch-size, 10 MiB.
const MaxAudit = 10 << 20

// ErrTooLarge says that audit events unpack to more than the reader allows.
var ErrTooLarge = errors.New("too large")

// AuditReader reads audit events: an EventList as a kube-apiserver sends it, or an audit log with one event a line,
// plain or gzip.
type AuditReader struct {
	Now   time.Time           // events more than a day later are refused
	Limit int64               // of unpacked bytes; 0: none
	Take  func(Request) error // is given each event that matters; its error ends the reading
}

// Request is a request that lacks how it was seen.
type Request func(trail.Seen) trail.RequestObservation

// Read reads to the end. What cannot be used is counted and left out; the error is that of Take or of a stream that
// breaks off, and what was read before counts all the same.
func (a AuditReader) Read(in io.Reader) (AuditReport, error) {
	var report AuditReport
	plain, err := unpack(in)
	if err != nil {
		return report, err
	}
	if a.Limit > 0 {
		plain = &limited{plain, a.Limit}
	}
	lines := &lineReader{in: bufio.NewReaderSize(plain, 256<<10)}
	first, err := lines.next()
	if err == nil && first != nil && !json.Valid(first) {
		if document, whole := lines.document(first); whole {
			report.Lines = 1
			return report, a.line(document, &report)
		}
	}
	for ; err == nil; first, err = lines.next() {
		report.Lines++
		if takeErr := a.line(first, &report); takeErr != nil {
			return report, takeErr
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return report, nil
	case errors.Is(err, ErrTooLarge):
		return report, fmt.Errorf("audit events: %w: at most %d bytes", err, a.Limit)
	}
	return report, fmt.Errorf("audit events are cut short after line %d, what was before is taken: %w", report.Lines, err)
}

// unpack reads gzip where the first bytes say so.
func unpack(in io.Reader) (io.Reader, error) {
	b := bufio.NewReader(in)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read audit events: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("read audit events: bad gzip: %w", err)
	}
	return z, nil
}

// limited fails where a reader gives more bytes than allowed.
type limited struct {
	in   io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// lineReader cuts a stream into lines. A line longer than MaxAudit comes as nil, and is not held.
type lineReader struct {
	in  *bufio.Reader
	buf []byte
}

// next gives the next line that is not empty; it is valid until the call after. The last line may lack its end.
func (l *lineReader) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		tooLong, err := l.fill()
		line := bytes.TrimSpace(l.buf)
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, err
		case tooLong:
			return nil, nil
		case len(line) > 0:
			return line, nil
		}
	}
}

func (l *lineReader) fill() (tooLong bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if !tooLong {
			l.buf = append(l.buf, part...)
		}
		if len(l.buf) > MaxAudit {
			tooLong, l.buf = true, l.buf[:0]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return tooLong, err
		}
	}
}

// document gives the whole stream where it is one JSON document over several lines. Where it is not, the stream stands
// as if it had not been looked at.
func (l *lineReader) document(first []byte) ([]byte, bool) {
	all := bytes.NewBuffer(append(slices.Clone(first), '\n'))
	_, err := io.Copy(all, io.LimitReader(l.in, MaxAudit))
	if err == nil && all.Len() <= MaxAudit && json.Valid(all.Bytes()) {
		return all.Bytes(), true
	}
	rest := all.Bytes()[len(first)+1:]
	l.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), failing{err}, l.in), 256<<10)
	return nil, false
}

// failing gives an error, where there is one.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// auditHead is what tells an event from a list of events.
type auditHead struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Items      []json.RawMessage `json:"items"`
}

var errTooLong = fmt.Errorf("longer than %d bytes", MaxAudit)

// line takes one line: an event or a list of events.
func (a AuditReader) line(raw []byte, report *AuditReport) error {
	where := fmt.Sprintf("line %d", report.Lines)
	if raw == nil {
		report.refuse(where, errTooLong)
		return nil
	}
	var e slimAudit
	err := json.Unmarshal(raw, &e)
	if err == nil && e.Kind == "EventList" {
		var list auditHead
		if err = json.Unmarshal(raw, &list); err == nil {
			return a.list(list.Items, where, report)
		}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("bad JSON: %w", err)
	case !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") || e.Kind != "Event":
		err = fmt.Errorf("apiVersion %q, kind %q: expected an Event or EventList of audit.k8s.io", clip(e.APIVersion, 60), clip(e.Kind, 60))
	default:
		return a.event(&e, where, report)
	}
	report.refuse(where, err)
	return nil
}

func (a AuditReader) list(items []json.RawMessage, where string, report *AuditReport) error {
	for i, item := range items {
		var e slimAudit
		at := fmt.Sprintf("%s, item %d", where, i+1)
		if err := json.Unmarshal(item, &e); err != nil {
			report.refuse(at, fmt.Errorf("bad JSON: %w", err))
			continue
		}
		if err := a.event(&e, at, report); err != nil {
			return err
		}
	}
	return nil
}

// event takes, skips or refuses one event.
func (a AuditReader) event(e *slimAudit, where string, report *AuditReport) error {
	action, matters := e.action()
	if !matters {
		report.Skipped++
		return nil
	}
	if err := e.check(a.Now); err != nil {
		report.refuse(where, err)
		return nil
	}
	report.Taken++
	return a.Take(e.request(action))
}

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
			Causes []struct {
				Reason string `json:"reason"`
			} `json:"causes"`
		} `json:"details"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage   `json:"requestObject"`
	ReceivedAt    time.Time         `json:"requestReceivedTimestamp"`
	StageAt       time.Time         `json:"stageTimestamp"`
	Annotations   map[string]string `json:"annotations"`
}

type auditUser struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// launcherPrefix begins the name of every virt-launcher pod; KubeVirt's own webhook goes by it.
//
// Source: kubevirt pkg/virt-operator/resource/generate/components/webhooks.go.
const launcherPrefix = "virt-launcher"

// action tells what the event asks for, and whether that is among what is kept.
func (e *slimAudit) action() (trail.Action, bool) {
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

// fromKubeVirt tells whether KubeVirt itself asks: its migrations say what they are for, and whose wish they carry out
// is another request.
func (e *slimAudit) fromKubeVirt() bool {
	name, ok := strings.CutPrefix(e.user(), "system:serviceaccount:")
	return ok && (strings.HasSuffix(name, ":kubevirt-controller") || strings.HasSuffix(name, ":kubevirt-apiserver"))
}

// mayCordon tells whether a change of a node can be a cordon or a taint by somebody: the node's own kubelet and the
// controllers of Kubernetes change nodes all the time, and never for that.
func (e *slimAudit) mayCordon() bool {
	user := e.user()
	return !strings.HasPrefix(user, "system:node:") && !strings.HasPrefix(user, "system:kube-") &&
		!strings.HasPrefix(user, "system:serviceaccount:kube-system:node-") && !strings.Contains(user, "softtainter")
}

func (e *slimAudit) user() string {
	if e.ImpersonatedUser != nil && e.ImpersonatedUser.Username != "" {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// birth is before any audit event: the first release of Kubernetes.
var birth = time.Date(2014, 6, 6, 0, 0, 0, 0, time.UTC)

// check says what makes an event unusable.
func (e *slimAudit) check(now time.Time) error {
	switch {
	case e.AuditID == "" || len(e.AuditID) > 128:
		return fmt.Errorf("auditID %q: expected a UUID", clip(e.AuditID, 60))
	case e.ReceivedAt.Before(birth) || e.ReceivedAt.After(now.Add(24*time.Hour)):
		return fmt.Errorf("requestReceivedTimestamp %s: expected a time between %s and a day from now", e.ReceivedAt.Format(time.RFC3339), birth.Format(time.DateOnly))
	case e.StageAt.Before(e.ReceivedAt.Add(-time.Minute)) || e.StageAt.After(now.Add(24*time.Hour)):
		return fmt.Errorf("stageTimestamp %s: expected a time not before %s", e.StageAt.Format(time.RFC3339), e.ReceivedAt.Format(time.RFC3339))
	case e.ObjectRef.Resource != "nodes" && len(validation.IsDNS1123Label(e.ObjectRef.Namespace)) > 0:
		return fmt.Errorf("namespace %q: expected a DNS label", clip(e.ObjectRef.Namespace, 80))
	case e.ObjectRef.Name != "" && len(validation.IsDNS1123Subdomain(e.ObjectRef.Name)) > 0:
		return fmt.Errorf("name %q: expected a DNS name", clip(e.ObjectRef.Name, 80))
	case e.ObjectRef.Name == "" && e.Verb != "create":
		return errors.New("no objectRef.name")
	}
	return nil
}

// The longest texts that are kept, in bytes. Names are far shorter; texts are what people wrote.
const (
	maxName = 512
	maxText = 4096
)

// request makes the observation of the event.
func (e *slimAudit) request(action trail.Action) Request {
	o := trail.RequestObservation{
		Source: trail.SourceAudit, ID: e.AuditID, Stage: e.Stage, Action: action, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		AskedAt: e.ReceivedAt, Detail: trail.RequestDetail{
			User: clip(e.user(), maxName), Agent: clip(e.UserAgent, maxName), AnsweredAt: e.StageAt, DryRun: isDryRun(e.RequestURI),
		},
	}
	d := &o.Detail
	if s := e.ResponseStatus; s != nil {
		d.Code, d.Status, d.Message = s.Code, clip(s.Status, maxName), clip(s.Message, maxText)
		if s.Details != nil {
			for _, c := range s.Details.Causes[:min(len(s.Details.Causes), 10)] {
				d.Causes = append(d.Causes, clip(c.Reason, maxName))
			}
		}
	}
	e.annotated(d)
	e.body(d)
	return func(s trail.Seen) trail.RequestObservation { o.Seen = s; return o }
}

func isDryRun(uri string) bool {
	_, query, _ := strings.Cut(uri, "?")
	values, err := url.ParseQuery(query)
	return err == nil && slices.Contains(values["dryRun"], "All")
}

// slimRequest is what is read of a request's body: an Eviction, or a change of a Node.
type slimRequest struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	DeleteOptions *struct {
		DryRun []string `json:"dryRun"`
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

// read takes the words of an Eviction's body.
func (r *slimRequest) read(d *trail.RequestDetail) {
	if by := r.Metadata.Annotations[annotationRequestedBy]; by != "" {
		d.RequestedBy = clip(by, maxName)
	}
	if reason := r.Metadata.Annotations[annotationReason]; reason != "" {
		d.StatedReason = clip(reason, maxText)
	}
	if r.DeleteOptions != nil && slices.Contains(r.DeleteOptions.DryRun, "All") {
		d.DryRun = true
	}
	if r.Spec != nil {
		d.Unschedulable = r.Spec.Unschedulable
	}
}

// body reads the request's body where the audit policy has it sent. A body of another shape, such as a JSON patch, says
// nothing that is kept.
func (e *slimAudit) body(d *trail.RequestDetail) {
	var r slimRequest
	if len(e.RequestObject) > 0 && json.Unmarshal(e.RequestObject, &r) == nil {
		r.read(d)
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

// annotated reads what admission left in the event: our observer the UID of its review, and either it or a policy the
// words of the Eviction, also where no body is audited.
func (e *slimAudit) annotated(d *trail.RequestDetail) {
	keys := make([]string, 0, len(e.Annotations))
	for key := range e.Annotations {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := e.Annotations[key]
		switch {
		case value == "" || strings.HasSuffix(key, keyOfServer):
		case strings.HasSuffix(key, keyReview):
			d.Review = clip(value, maxName)
		case strings.HasSuffix(key, keyRequestedBy):
			d.RequestedBy = clip(value, maxName)
		case strings.HasSuffix(key, keyReason):
			d.StatedReason = clip(value, maxText)
		case strings.HasPrefix(key, keyFailedOpen) && len(d.FailedOpen) < 10:
			d.FailedOpen = append(d.FailedOpen, clip(value, maxName))
		}
	}
}

// clip cuts a text to at most n bytes, at the end of a rune, and says so.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:n-len(mark)], "") + mark
}
