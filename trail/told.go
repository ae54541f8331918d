package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// EvictionRequest is one call of pods/eviction on a virt-launcher pod, told once whoever saw it: the audit log, the
// observer, or nobody, so that only the mark that it left tells of it.
type EvictionRequest struct {
	ID             FactID         `json:"request_id"`
	Namespace      string         `json:"namespace"`
	VMI            string         `json:"vmi,omitempty"`
	VMIUID         string         `json:"vmi_uid,omitempty"`
	Node           string         `json:"node,omitempty"` // of the pod
	Pod            string         `json:"pod,omitempty"`  // empty where only the mark tells, and the pod was not seen
	RequestedAt    time.Time      `json:"requested_at"`
	AnsweredAt     time.Time      `json:"answered_at,omitzero"`
	Requester      string         `json:"requester,omitempty"` // user name; empty where nobody saw it
	RequesterClass RequesterClass `json:"requester_class"`
	UserAgent      string         `json:"user_agent,omitempty"`
	StatedReason   string         `json:"stated_reason,omitempty"` // verbatim, from the Eviction's annotation
	Source         string         `json:"source"`                  // admission, audit, admission+audit or mark
	Confidence     Confidence     `json:"confidence"`
	DryRun         bool           `json:"dry_run"`
	Answer         RequestAnswer  `json:"answer"`
	AnswerCode     int            `json:"answer_code,omitempty"` // HTTP; 0 where it was not seen
	AnswerText     string         `json:"answer_text,omitempty"`
	Effect         Effect         `json:"effect,omitempty"`
	EvacuationID   *FactID        `json:"evacuation_id,omitempty"` // that it began, or that it met
	RepeatOf       *FactID        `json:"repeat_of,omitempty"`     // the same requester's first request of the kind
	Repeats        int            `json:"repeats"`                 // how many later requests repeat this one
	LastRepeatAt   time.Time      `json:"last_repeat_at,omitzero"`
	Evidence       string         `json:"evidence"`
	SeenLate       bool           `json:"seen_late"` // it was told more than 10 min after its answer
}

// Effect says what a request changed.
type Effect string

// The effects of an eviction request. It is empty where nothing seen tells.
const (
	EffectEvacuation Effect = "evacuation" // it marked the VMI
	EffectShutdown   Effect = "shutdown"   // its pod ran the guest: the VM was shut down, not moved
	EffectNone       Effect = "none"       // refused, repeated, a dry run, or the pod had ended already
)

// Tolerances of joining what different clocks saw.
const (
	reviewSlack = 2 * time.Second // between an audit event and the review of the same request
	markSlack   = 5 * time.Second // between a request and the sight of its mark
	repeatGap   = 15 * time.Minute
)

// request is an EvictionRequest with what deriving it needs.
type request struct {
	EvictionRequest
	audit, review *Fact // at most one of them is nil; both are where only a mark tells of the request
	life          *life // nil where the VMI is not known
	pod           *launcher
	evacuation    *evacuation
}

// requestsOf tells each request once, in the order of their times: what the audit log and the observer say of the
// same one is joined by the UID of the review, which the observer leaves in the audit event, else by pod, user and time.
func requestsOf(facts []Fact) []*request {
	audits, reviews := map[string]*Fact{}, map[string]*Fact{}
	for i := range facts {
		f := &facts[i]
		d, ok := f.Detail.(*RequestDetail)
		switch {
		case !ok || d.Action != ActionEvict:
		case d.Source == SourceAdmission:
			reviews[f.Object.UID] = f
		case audits[f.Object.UID] == nil || f.Value == stageComplete:
			audits[f.Object.UID] = f
		}
	}
	of := joinReviews(audits, reviews)
	var out []*request
	for _, a := range audits {
		r := of[a]
		if r != nil {
			delete(reviews, r.Object.UID)
		}
		out = append(out, newRequest(a, r))
	}
	for _, r := range reviews {
		out = append(out, newRequest(nil, r))
	}
	slices.SortFunc(out, func(a, b *request) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out
}

// stageComplete is the stage in which an audit event knows the answer.
const stageComplete = "ResponseComplete"

// joinReviews finds the review of each audited request that has one.
func joinReviews(audits, reviews map[string]*Fact) map[*Fact]*Fact {
	of, taken := map[*Fact]*Fact{}, map[*Fact]bool{}
	var near []couple[*Fact, *Fact]
	for _, a := range audits {
		d := a.Detail.(*RequestDetail)
		if d.Review != "" {
			if r := reviews[string(SourceAdmission)+":"+d.Review]; r != nil {
				of[a], taken[r] = r, true
			}
			continue
		}
		for _, r := range reviews {
			rd := r.Detail.(*RequestDetail)
			apart := outside(r.OccurredAt, a.OccurredAt, d.AnsweredAt)
			if rd.User == d.User && a.Subject == r.Subject && apart <= reviewSlack {
				near = append(near, couple[*Fact, *Fact]{a, r, 0, apart, a.ID.String() + r.ID.String()})
			}
		}
	}
	for a, r := range nearest(near, taken) {
		of[a] = r
	}
	return of
}

// couple is a pair that may belong together, and how far apart the two are.
type couple[A, B comparable] struct {
	a     A
	b     B
	rank  int // lower ones first
	apart time.Duration
	tie   string // orders what is equal
}

// nearest pairs one to one, the nearest first. Those of b that are taken are left out, and get taken.
func nearest[A, B comparable](couples []couple[A, B], taken map[B]bool) map[A]B {
	slices.SortFunc(couples, func(x, y couple[A, B]) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.apart, y.apart), strings.Compare(x.tie, y.tie))
	})
	out := map[A]B{}
	for _, c := range couples {
		if _, has := out[c.a]; !has && !taken[c.b] {
			out[c.a], taken[c.b] = c.b, true
		}
	}
	return out
}

// outside tells how far a time is outside of an interval; zero within it.
func outside(at, from, to time.Time) time.Duration {
	if to.Before(from) {
		to = from
	}
	return max(from.Sub(at), at.Sub(to), 0)
}

// newRequest tells a request from what the audit log and the observer saw of it. The audit event knows the answer and
// the API server's time; either may know the stated reason.
func newRequest(audit, review *Fact) *request {
	r := &request{audit: audit, review: review}
	first := cmp.Or(audit, review)
	d := first.Detail.(*RequestDetail)
	r.EvictionRequest = EvictionRequest{
		ID: cmp.Or(review, audit).ID, Namespace: first.Namespace, VMI: d.vmi(), Pod: d.Name, RequestedAt: first.OccurredAt,
		AnsweredAt: d.AnsweredAt, Requester: d.User, RequesterClass: d.requesterClass(), UserAgent: d.Agent, StatedReason: d.StatedReason,
		Source: string(d.Source), Confidence: ConfidenceObserved, DryRun: d.DryRun, Answer: d.answer(), AnswerCode: d.Code,
		AnswerText: d.Message, Evidence: first.Evidence, SeenLate: first.Late,
	}
	if audit != nil && review != nil {
		seen := review.Detail.(*RequestDetail)
		r.Source = string(SourceAdmission) + "+" + string(SourceAudit)
		r.StatedReason = cmp.Or(r.StatedReason, seen.StatedReason)
		r.DryRun = r.DryRun || seen.DryRun
		if c := seen.requesterClass(); c == RequesterDescheduler {
			r.RequesterClass = c
		}
		r.Evidence = review.Evidence + "; " + audit.Evidence
		r.SeenLate = false // the observer saw it at once
	}
	return r
}

// tellRequests tells the requests on the pods of one VM and what each did: which mark it left, which evacuation it met,
// whether it shut the VM down. Marks that no request explains give one of their own.
func tellRequests(facts []Fact, lives []*life, env *Env) []*request {
	pods := launchersOf(facts)
	var requests []*request
	for _, p := range pods {
		requests = append(requests, requestsOf(env.requests(p.subject()))...)
	}
	for _, r := range requests {
		r.pod = pods[r.Pod]
		r.Node = r.pod.node
		r.life = lifeOf(lives, r.pod.vmiUID)
		if r.life == nil {
			r.life = lifeAt(lives, r.RequestedAt)
		}
		r.VMI, r.VMIUID = r.pod.vmi, r.pod.vmiUID
		if r.life != nil {
			r.VMIUID = r.life.uid
		}
	}
	tieMarks(requests, lives, env)
	for _, r := range requests {
		r.meet()
		r.Effect = r.effect()
	}
	for _, l := range lives {
		for _, e := range l.evacuations {
			if e.request == nil && e.MarkedBy != MarkedByTaint {
				requests = append(requests, requestOfMark(e, l, pods))
			}
		}
	}
	slices.SortFunc(requests, func(a, b *request) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	fold(requests)
	return requests
}

// tieMarks finds the request that left each mark: the one that was answered so at the time of the mark. Without an
// answer the nearest in time must do.
func tieMarks(requests []*request, lives []*life, env *Env) {
	var near []couple[*evacuation, *request]
	for _, l := range lives {
		before := time.Time{}
		for _, e := range l.evacuations {
			for _, r := range requests {
				if apart, ok := r.leftMark(e, l, before); ok {
					rank := 0
					if r.Answer == AnswerUnknown {
						rank = 1
					}
					near = append(near, couple[*evacuation, *request]{e, r, rank, apart, r.ID.String() + e.ID.String()})
				}
			}
			before = e.EndedAt
		}
	}
	for e, r := range nearest(near, map[*request]bool{}) {
		e.askedBy(r, env)
	}
}

// leftMark tells whether a request can have left the mark of an evacuation, and how far apart the two are. The mark was
// set within the request; one that a list showed may be as old as the end of the evacuation before it.
func (r *request) leftMark(e *evacuation, l *life, before time.Time) (time.Duration, bool) {
	if r.DryRun || r.life != l || e.MarkedBy == MarkedByTaint || r.Answer != AnswerMarked && r.Answer != AnswerUnknown {
		return 0, false
	}
	if r.Node != "" && r.Node != e.Node {
		return 0, false
	}
	if e.late || e.MarkedBy == MarkedByMigration {
		possible := !r.RequestedAt.After(e.MarkedAt.Add(markSlack)) && !r.RequestedAt.Before(before.Add(-markSlack))
		return outside(e.MarkedAt, r.RequestedAt, r.AnsweredAt), possible
	}
	apart := outside(e.openAt, r.RequestedAt, r.AnsweredAt)
	return apart, apart <= markSlack
}

// askedBy says who asked for an evacuation. That the mark came with the annotation of the descheduler proves that the
// Eviction carried it, whatever else is known of its sender.
func (e *evacuation) askedBy(r *request, env *Env) {
	marked := e.RequesterClass == RequesterDescheduler && e.Confidence == ConfidenceAsserted
	if marked {
		r.RequesterClass = RequesterDescheduler
	}
	e.request, r.evacuation = r, e
	r.ID = hashID("request", e.ID.String())
	r.EvacuationID = &e.ID
	if r.Answer == AnswerUnknown {
		r.Answer = AnswerMarked
	}
	r.Evidence += "; mark " + e.ID.String()
	if (e.late || e.MarkedBy == MarkedByMigration) && !r.AnsweredAt.IsZero() && r.AnsweredAt.Before(e.MarkedAt) {
		e.MarkedAt = r.AnsweredAt
	}
	if r.RequesterClass == RequesterUnknown && e.RequesterClass != RequesterUnknown {
		return
	}
	e.Requester, e.RequesterClass, e.Confidence = r.Requester, r.RequesterClass, ConfidenceObserved
	e.Trigger = triggerOf(r.RequesterClass, env.cordoned(e.Node, e.MarkedAt))
	e.Evidence = r.Evidence
}

// triggerOf names the trigger of an evacuation whose requester is known: the class says who called, the state of the
// node whether it was a drain.
func triggerOf(class RequesterClass, cordoned bool) Trigger {
	switch {
	case class == RequesterDescheduler:
		return TriggerDescheduler
	case class == RequesterKubeVirt:
		return TriggerWorkloadUpdate // virt-controller evicts only to update launchers, with the method Evict
	case cordoned:
		return TriggerDrain
	}
	return TriggerEviction
}

// meet ties a request that changed nothing to the evacuation that was under way.
func (r *request) meet() {
	if r.evacuation != nil || r.life == nil || r.DryRun || r.Answer != AnswerAlreadyMarked && r.Answer != AnswerUnknown {
		return
	}
	for _, e := range r.life.evacuations {
		if !e.MarkedAt.After(r.RequestedAt.Add(reviewSlack)) && (e.EndedAt.IsZero() || !e.EndedAt.Before(r.RequestedAt.Add(-reviewSlack))) {
			r.evacuation, r.EvacuationID = e, &e.ID
		}
	}
}

// effect tells what the request changed. An allowed eviction deletes its pod: with the guest in it that is a shutdown.
func (r *request) effect() Effect {
	switch {
	case r.DryRun:
		return EffectNone
	case r.Answer == AnswerMarked && r.evacuation != nil:
		return EffectEvacuation
	case r.Answer == AnswerMarked, r.Answer == AnswerUnknown:
		return ""
	case r.Answer != AnswerAllowed:
		return EffectNone
	case r.pod == nil || r.life == nil:
		return ""
	case r.pod.ranGuest(r.life, r.RequestedAt):
		return EffectShutdown
	}
	return EffectNone
}

// requestOfMark tells the request that must have been there because its mark was.
func requestOfMark(e *evacuation, l *life, pods map[string]*launcher) *request {
	r := &request{life: l, evacuation: e}
	confidence := e.Confidence
	if confidence == ConfidenceUnknown {
		confidence = ConfidenceInferred // that somebody asked; not who
	}
	r.EvictionRequest = EvictionRequest{
		ID: hashID("request", e.ID.String()), Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid, Node: e.Node, RequestedAt: e.MarkedAt,
		RequesterClass: e.RequesterClass, Source: string(SourceMark), Confidence: confidence, Answer: AnswerMarked,
		Effect: EffectEvacuation, EvacuationID: &e.ID, Evidence: e.Evidence, SeenLate: e.SeenLate,
	}
	if p := launcherOn(pods, l.uid, e.Node, e.MarkedAt); p != nil {
		r.pod, r.Pod = p, p.name
	}
	return r
}

// fold ties the repetitions of a request to the first of them: those of one requester that met one evacuation, or that
// got the same answer for the same pod again within a while. Requests come in the order of their times.
func fold(requests []*request) {
	heads := map[[3]string]*request{}
	for _, r := range requests {
		key := r.foldedBy()
		head := heads[key]
		if head == nil || r.evacuation == nil && r.RequestedAt.Sub(later(head.RequestedAt, head.LastRepeatAt)) > repeatGap {
			heads[key] = r
			continue
		}
		r.RepeatOf = &head.ID
		head.Repeats++
		head.LastRepeatAt = r.RequestedAt
	}
}

// foldedBy names what the repetitions of a request have in common: who asks, and for what.
func (r *request) foldedBy() [3]string {
	what := string(r.Answer) + " " + string(r.Effect)
	switch {
	case r.DryRun:
		what = "dry run"
	case r.evacuation != nil:
		what = r.evacuation.ID.String()
	}
	return [3]string{r.Pod, cmp.Or(r.Requester, string(r.RequesterClass)), what}
}

// who names the requester as people say it.
func (r *EvictionRequest) who() string { return actor(r.Requester, r.RequesterClass) }

// saying quotes the stated reason, empty where none was stated.
func (r *EvictionRequest) saying() string {
	if reason := strings.TrimSpace(r.StatedReason); reason != "" {
		return fmt.Sprintf(", saying %q", reason)
	}
	return ""
}

// sentence tells one request.
func (r *EvictionRequest) sentence() string {
	dry := ""
	if r.DryRun {
		dry = " as a dry run"
	}
	return fmt.Sprintf("%s asked to evict pod %s%s%s: %s.", opening(r.who()), r.Pod, dry, r.saying(), r.outcome())
}

// repeatSentence tells the repetitions of a request; r is the first of them.
func (r *EvictionRequest) repeatSentence(head *request) string {
	if head.Repeats == 1 {
		return fmt.Sprintf("%s asked again: %s.", opening(r.who()), r.outcome())
	}
	return fmt.Sprintf("%s asked again, %s until %s: %s.", opening(r.who()), plural(head.Repeats, "time"), clock(head.LastRepeatAt), r.outcome())
}

// outcome says what became of the request.
func (r *EvictionRequest) outcome() string {
	switch r.Answer {
	case AnswerMarked:
		if r.DryRun {
			return "KubeVirt would mark it to be moved"
		}
		return "KubeVirt accepted to move it"
	case AnswerAlreadyMarked:
		return "it is already to be moved, nothing changed"
	case AnswerNotMigratable:
		return "refused, as it cannot be live-migrated"
	case AnswerTargetPod:
		return "refused, as the pod is the target of a migration"
	case AnswerPDB:
		return "refused by a PodDisruptionBudget"
	case AnswerNotFound:
		return "the pod was gone"
	case AnswerError:
		return strings.TrimSpace(fmt.Sprintf("it failed%s %s", codeText(r.AnswerCode), r.AnswerText))
	case AnswerUnknown:
		return "the answer was not seen"
	case AnswerAllowed:
		if r.Effect == EffectShutdown {
			return "allowed, and the pod held the guest: the VM is shut down, not moved"
		}
		if r.Effect == EffectNone {
			return "allowed; the pod had ended before, the VM was not touched"
		}
		return "allowed"
	}
	return string(r.Answer)
}
