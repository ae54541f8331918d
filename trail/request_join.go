package trail

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// EvictionRequest is one call of pods/eviction on a virt-launcher pod, one row no matter who saw it: the audit log, the
// observer, or nobody, so that only the mark that it left shows it.
type EvictionRequest struct {
	ID             FactID         `json:"request_id"`
	Namespace      string         `json:"namespace"`
	VMI            string         `json:"vmi,omitempty"`
	VMIUID         string         `json:"vmi_uid,omitempty"`
	Node           string         `json:"node,omitempty"` // of the pod
	Pod            string         `json:"pod,omitempty"`  // empty where only the mark shows the request, and the pod was not seen
	RequestedAt    time.Time      `json:"requested_at"`
	AnsweredAt     time.Time      `json:"answered_at,omitzero"`
	Requester      string         `json:"requester,omitempty"` // user name; empty where unknown
	RequesterClass RequesterClass `json:"requester_class"`
	Impersonator   string         `json:"impersonator,omitempty"` // user name of who acted as the requester; empty where nobody did, or the audit log did not see it
	SourceIP       string         `json:"source_ip,omitempty"`    // as RequestDetail has it
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
	Salient        bool           `json:"salient"` // it matters to its node: each of the descheduler's, of the polls of others one a minute
	Evidence       string         `json:"evidence"`
	EventID        *FactID        `json:"event_id,omitempty"` // of the fact that shows it: what was seen first of the observer, the audit log and the mark
	SeenLate       bool           `json:"seen_late"`          // it was reported more than 10 min after its answer
	Policy         string         `json:"policy,omitempty"`   // SettingsInForce.Policy when it was requested
}

// Effect says what a request changed.
type Effect string

// The effects of an eviction request. It is empty where nothing seen shows it.
const (
	EffectEvacuation Effect = "evacuation" // it marked the VMI
	EffectShutdown   Effect = "shutdown"   // its pod ran the guest: the VM was shut down, not moved
	EffectNone       Effect = "none"       // refused, repeated, a dry run, or the pod had ended already
)

// Tolerances of joining what different clocks saw.
const (
	reviewSlack = 2 * time.Second // between an audit event and the review of the same request
	markSlack   = 5 * time.Second // between a request and the sight of its mark
	markFar     = time.Minute     // the same, where the answer proves a mark and none is nearer: clocks may be apart
	repeatGap   = 15 * time.Minute
)

// request is an EvictionRequest with what deriving it needs.
type request struct {
	EvictionRequest
	audit, review *Fact // nil where that source did not see it; both where only a mark shows the request
	life          *life // nil where the VMI is not known
	pod           *launcher
	evacuation    *evacuation
}

// requestsOf returns each request once, in the order of their times: what the audit log and the observer say of the
// same one is joined by the UID of the review, which the observer leaves in the audit event, else by pod, user and time.
func requestsOf(facts []Fact, env *Env) []*request {
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
		out = append(out, newRequest(a, r, env))
	}
	for _, r := range reviews {
		out = append(out, newRequest(nil, r, env))
	}
	wanted := podEvictionOf(facts)
	for _, r := range out {
		r.attributeEvictor(&wanted, env)
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
	inTime := slices.SortedFunc(maps.Values(reviews), func(a, b *Fact) int { return a.OccurredAt.Compare(b.OccurredAt) })
	for _, a := range audits {
		d := a.Detail.(*RequestDetail)
		if d.Review != "" {
			if r := reviews[string(SourceAdmission)+":"+d.Review]; r != nil {
				of[a], taken[r] = r, true
			}
			continue
		}
		from := sort.Search(len(inTime), func(i int) bool { return !inTime[i].OccurredAt.Before(a.OccurredAt.Add(-reviewSlack)) })
		for _, r := range inTime[from:] {
			apart := computeDistance(r.OccurredAt, a.OccurredAt, d.AnsweredAt)
			if apart > reviewSlack {
				break
			}
			if r.Detail.(*RequestDetail).User == d.User && a.Subject == r.Subject {
				near = append(near, couple[*Fact, *Fact]{a, r, 0, apart, a.ID.String() + r.ID.String()})
			}
		}
	}
	for a, r := range pairNearest(near, taken) {
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

// pairNearest pairs one to one, the nearest first. Those of b that are taken are left out, and get taken.
func pairNearest[A, B comparable](couples []couple[A, B], taken map[B]bool) map[A]B {
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

// computeDistance returns how far a time is outside of an interval; zero within it.
func computeDistance(at, from, to time.Time) time.Duration {
	if to.Before(from) {
		to = from
	}
	return max(from.Sub(at), at.Sub(to), 0)
}

// confidenceIn says how a request is known: observed where the API server's audit log has it. What only the observer has, somebody who knows
// its path may have made up.
func confidenceIn(audit *Fact) Confidence {
	if audit == nil {
		return ConfidenceAsserted
	}
	return ConfidenceObserved
}

// newRequest returns a request from what the audit log and the observer saw of it. The audit event knows the answer and
// the API server's time; either may know the stated reason.
func newRequest(audit, review *Fact, env *Env) *request {
	r := &request{audit: audit, review: review}
	first := cmp.Or(audit, review)
	d := first.Detail.(*RequestDetail)
	r.EvictionRequest = EvictionRequest{
		ID: cmp.Or(review, audit).ID, Namespace: first.Namespace, VMI: d.VMIName(), Pod: d.Name, RequestedAt: first.OccurredAt,
		AnsweredAt: d.AnsweredAt, Requester: d.User, RequesterClass: env.classOf(d),
		Impersonator: d.Impersonator, SourceIP: d.SourceIP, UserAgent: d.Agent, StatedReason: d.StatedReason,
		Source: string(d.Source), Confidence: confidenceIn(audit), DryRun: d.DryRun, Answer: d.Answer(), AnswerCode: d.Code,
		AnswerText: d.Message, Evidence: first.Evidence, EventID: new(cmp.Or(review, audit).ID), SeenLate: first.Late,
	}
	if audit != nil && review != nil {
		seen := review.Detail.(*RequestDetail)
		r.Source = sourceBoth
		r.StatedReason = cmp.Or(seen.StatedReason, r.StatedReason) // an admission policy trims what the audit event has
		r.DryRun = r.DryRun || seen.DryRun
		r.Evidence = review.Evidence + "; " + audit.Evidence
		r.SeenLate = false // the observer saw it at once
		d = &RequestDetail{RequestedBy: cmp.Or(seen.RequestedBy, d.RequestedBy)}
	}
	r.Evidence += d.saysItIs(r.RequesterClass)
	return r
}
