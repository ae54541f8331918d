package trail

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// RequestSource says who saw a request.
type RequestSource string

// The sources of requests. A request that only its mark shows has the source mark.
const (
	SourceAudit     RequestSource = "audit"
	SourceAdmission RequestSource = "admission"
	SourceMark      RequestSource = "mark"
)

// sourceBoth is the source of a request that the observer and the audit log both saw.
const sourceBoth = string(SourceAdmission + "+" + SourceAudit)

// Action says what was asked for.
type Action string

// The actions that are recorded, as audit events name them: verb and resource.
const (
	ActionEvict           Action = "create pods/eviction"
	ActionCreateMigration Action = "create virtualmachineinstancemigrations"
	ActionDeleteMigration Action = "delete virtualmachineinstancemigrations"
	ActionMigrate         Action = "update virtualmachines/migrate"
	ActionCancel          Action = "update virtualmachineinstances/evacuate/cancel"
	ActionChangeNode      Action = "patch nodes"
)

// RequestDetail is what is kept of a request: who asked, with which words, and the answer. Nothing of a body is kept
// but the fields named here.
type RequestDetail struct {
	Source        RequestSource `json:"source"`
	Action        Action        `json:"action"`
	Name          string        `json:"name,omitempty"`         // of the object
	User          string        `json:"user,omitempty"`         // the impersonated one where there is one
	Impersonator  string        `json:"impersonator,omitempty"` // who acted as User: the one that the API server authenticated; only the audit log has it
	SourceIP      string        `json:"source_ip,omitempty"`    // of several, separated by commas, only the last is one that the API server saw itself
	Agent         string        `json:"user_agent,omitempty"`
	AnsweredAt    time.Time     `json:"answered_at,omitzero"`
	Code          int           `json:"code,omitempty"`   // HTTP; zero where the answer was not seen
	Status        string        `json:"status,omitempty"` // of the answer: Success, Failure, or empty
	Message       string        `json:"message,omitempty"`
	Causes        []string      `json:"causes,omitempty"`       // reasons in the answer's details
	RequestedBy   string        `json:"requested_by,omitempty"` // the Eviction's annotation requested-by
	StatedReason  string        `json:"stated_reason,omitempty"`
	DryRun        bool          `json:"dry_run,omitempty"`
	Review        string        `json:"review,omitempty"`        // UID of the review by our observer that an audit event names
	Unschedulable *bool         `json:"unschedulable,omitempty"` // what a change of a node sets; nil where it was not seen
	FailedOpen    []string      `json:"failed_open,omitempty"`   // webhooks that did not answer and were passed over
}

func (*RequestDetail) isDetail() {}

// RequestAnswer is what became of an eviction request.
type RequestAnswer string

// The answers to an eviction request (reference: kubevirt-signals §1.1, descheduler-signals §6).
const (
	AnswerMarked        RequestAnswer = "marked"         // KubeVirt marked the VMI now
	AnswerAlreadyMarked RequestAnswer = "already_marked" // it was marked before; nothing changed
	AnswerNotMigratable RequestAnswer = "not_migratable"
	AnswerTargetPod     RequestAnswer = "target_pod" // the pod is the target of a migration
	AnswerPDB           RequestAnswer = "pdb"        // a PodDisruptionBudget forbids it
	AnswerAllowed       RequestAnswer = "allowed"    // the pod was deleted
	AnswerNotFound      RequestAnswer = "not_found"
	AnswerError         RequestAnswer = "error"
	AnswerUnknown       RequestAnswer = "unknown" // the answer was not seen
)

// Answers lists the answers to an eviction request.
func Answers() []RequestAnswer { return answerLabels.values() }

// Texts of KubeVirt's eviction webhook; the API server puts its own words before them.
//
// Source: kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go.
const (
	textTriggered     = "Eviction triggered evacuation of VMI"
	textInProgress    = "Evacuation in progress"
	textNotMigratable = "is configured with an eviction strategy but is not live-migratable"
	textTargetPod     = "Eviction request for target Pod"
)

// Texts of the API server's own answers to an eviction.
//
// Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
const (
	causeBudget    = "DisruptionBudget"
	textBudget     = "violate the pod's disruption budget"
	textManyBudget = "more than one PodDisruptionBudget"
)

// Answer classifies the answer to an eviction request by its text first: KubeVirt's and the API server's refusals share the code 429, and
// several budgets are answered 201 with status Failure.
func (d *RequestDetail) Answer() RequestAnswer {
	has := func(text string) bool { return strings.Contains(d.Message, text) }
	switch {
	case has(textInProgress):
		return AnswerAlreadyMarked
	case has(textTriggered):
		return AnswerMarked
	case has(textNotMigratable):
		return AnswerNotMigratable
	case has(textTargetPod):
		return AnswerTargetPod
	case has(textBudget), has(textManyBudget), slices.Contains(d.Causes, causeBudget):
		return AnswerPDB
	case d.Code == 0:
		return AnswerUnknown
	case d.Code == 404:
		return AnswerNotFound
	case d.Code >= 200 && d.Code < 300 && d.Status != "Failure":
		return AnswerAllowed
	}
	return AnswerError
}

// isAccepted reports whether the API server did what was asked.
func (d *RequestDetail) isAccepted() bool {
	return d.Code >= 200 && d.Code < 300 && d.Status != "Failure" && !d.DryRun
}

// VMIName returns the name of the VMI that the answer's text names, empty where it names none.
func (d *RequestDetail) VMIName() string {
	if _, after, ok := strings.Cut(d.Message, textTriggered+` "`); ok {
		name, _, _ := strings.Cut(after, `"`)
		_, name, _ = strings.Cut(name, "/")
		return name
	}
	if before, _, ok := strings.Cut(d.Message, " "+textNotMigratable); ok {
		return before[strings.LastIndexByte(before, ' ')+1:]
	}
	return ""
}

// codeText writes an HTTP code as people say it, empty where none was seen.
func codeText(code int) string {
	if code == 0 {
		return ""
	}
	return " (" + strconv.Itoa(code) + ")"
}
