package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a requester wants of a pod (EvictionRequest.spec.intent).
//
// Source: k8s.io/api lifecycle/v1alpha1, EvictionRequestIntent.
const (
	IntentEviction  = "Eviction"
	IntentWithdrawn = "Withdrawn"
)

// The conditions of an EvictionRequest and of an Eviction that are recorded.
//
// Source: k8s.io/api lifecycle/v1alpha1, EvictionConditionType.
const (
	ConditionTargetEvicted = "TargetEvicted"
	ConditionFailed        = "Failed"
)

// ImperativeEvictor is the responder of Kubernetes that has its turn last. It calls pods/eviction until the pod goes.
//
// Source: k8s.io/api lifecycle/v1alpha1, EvictionResponderImperativeEviction.
const ImperativeEvictor = "imperative-eviction.k8s.io/evictor"

// IntentDetail is what a requester wants of a pod, as its EvictionRequest has it, or the Eviction of the pod.
type IntentDetail struct {
	Name      string `json:"name,omitempty"` // of the object that says so; empty where it was gone when we came back
	PodUID    string `json:"pod_uid,omitempty"`
	Requester string `json:"requester"` // a name that the requester chose, such as acme.io/upgrade
	Intent    string `json:"intent"`
}

func (*IntentDetail) isDetail() {}

// ResponderDetail is how far a responder is with the Eviction of a pod, and what it reports. The times are its own.
type ResponderDetail struct {
	PodUID      string    `json:"pod_uid,omitempty"`
	Responder   string    `json:"responder"`
	Priority    int32     `json:"priority"`
	State       string    `json:"state"`
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
	ExpectedAt  time.Time `json:"expected_at,omitzero"` // when it expects to be done
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Last        bool      `json:"last,omitempty"` // no later message of the responder is recorded
}

func (*ResponderDetail) isDetail() {}

// podEviction is the eviction of one pod that requesters want by EvictionRequests: who wanted it when, and when the
// imperative evictor was to carry it out.
type podEviction struct {
	intents []intentChange // in the order of their times
	evictor []interval
}

// intentChange is a fact by which a requester came to want the eviction, or ceased to.
type intentChange struct {
	fact      *Fact
	requester string
	wants     bool
}

// podEvictionOf puts together what the facts about a pod say, which are in the order of their times. An Eviction
// lists its requesters, too: that counts where their EvictionRequests were not seen.
func podEvictionOf(facts []Fact) podEviction {
	var p podEviction
	objects := map[string]map[string]bool{} // whether it is wanted, by requester and by the UID of the object that says so
	listed := map[string]map[string]bool{}
	wants := func(requester string) bool {
		by := objects[requester]
		if by == nil {
			by = listed[requester]
		}
		for _, wanted := range by {
			if wanted {
				return true
			}
		}
		return false
	}
	for i := range facts {
		f := &facts[i]
		switch d := f.Detail.(type) {
		case *IntentDetail:
			before, by := wants(d.Requester), objects
			if f.Object.Kind == ObjectEviction {
				by = listed
			}
			if by[d.Requester] == nil {
				by[d.Requester] = map[string]bool{}
			}
			by[d.Requester][f.Object.UID] = f.Reason == ReasonEvictionWanted
			if after := wants(d.Requester); after != before {
				p.intents = append(p.intents, intentChange{f, d.Requester, after})
			}
		case *ResponderDetail:
			p.addEvictorState(f, d)
		}
	}
	return p
}

// addEvictorState notes when the imperative evictor has its turn, and when that is over.
func (p *podEviction) addEvictorState(f *Fact, d *ResponderDetail) {
	if d.Responder != ImperativeEvictor || f.Reason == ReasonResponderReports {
		return
	}
	last := len(p.evictor) - 1
	switch open := last >= 0 && p.evictor[last].to.IsZero(); {
	case f.Reason == ReasonResponderActive && !open:
		p.evictor = append(p.evictor, interval{from: f.OccurredAt})
	case f.Reason != ReasonResponderActive && open:
		p.evictor[last].to = f.OccurredAt.Add(time.Second) // its times have a resolution of 1 s
	}
}

// evictsFor returns the requesters for whom the imperative evictor evicted the pod at a time, in the order of their
// requests; none where it did not.
func (p *podEviction) evictsFor(at time.Time) []string {
	then := func(i interval) bool { return i.containsTime(at) || i.containsTime(at.Add(envSlack)) }
	if !slices.ContainsFunc(p.evictor, then) {
		return nil
	}
	var names []string
	for i, c := range p.intents {
		wanted := interval{from: c.fact.OccurredAt}
		for _, later := range p.intents[i+1:] {
			if later.requester == c.requester {
				wanted.to = later.fact.OccurredAt
				break
			}
		}
		if c.wants && then(wanted) && !slices.Contains(names, c.requester) {
			names = append(names, c.requester)
		}
	}
	return names
}

// mostRequesters bounds the requesters of one pod that are named as who asked.
const mostRequesters = 5

// joinRequesters names those who asked together.
func joinRequesters(names []string) string {
	if more := len(names) - mostRequesters; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostRequesters], ", "), more)
	}
	return strings.Join(names, ", ")
}

// classOfRequesters returns the class of those who made EvictionRequests: the one that is stated for all of their
// names.
func (e *Env) classOfRequesters(names []string) RequesterClass {
	class, stated := e.thresholds.Accounts.classOf(names[0])
	for _, name := range names {
		if of, is := e.thresholds.Accounts.classOf(name); !stated || !is || of != class {
			return RequesterEvictionRequest
		}
	}
	return class
}

// The accounts of the imperative evictor: kube-controller-manager runs it, with an account of its own in this
// namespace or with that of all its controllers.
const (
	controllerManager = "system:kube-controller-manager"
	controllerAccount = serviceAccount + "kube-system:"
)

// mayBeEvictor reports whether the account that sent a request can be the imperative evictor's: it is none that is
// known as somebody else's.
func (r *request) mayBeEvictor() bool {
	own := r.RequesterClass == RequesterServiceAccount && strings.HasPrefix(r.Requester, controllerAccount)
	return r.Impersonator == "" && (own || r.Requester == controllerManager)
}

// attributeEvictor names the requesters of EvictionRequests as who asked, instead of the imperative evictor that
// called for them.
func (r *request) attributeEvictor(p *podEviction, env *Env) {
	if !r.mayBeEvictor() {
		return
	}
	if names := p.evictsFor(r.RequestedAt); len(names) > 0 {
		r.Evidence += "; " + r.Requester + " called for EvictionRequests"
		r.Requester, r.RequesterClass = joinRequesters(names), env.classOfRequesters(names)
	}
}

// inferRequesters names the requesters of EvictionRequests as who asked for an evacuation of which no request was
// seen, where the imperative evictor evicted its pod when the VMI was marked.
func (e *evacuation) inferRequesters(pod *launcher, env *Env) {
	if pod == nil || e.MarkedBy != MarkedByMark || e.RequesterClass != RequesterUnknown {
		return
	}
	p := podEvictionOf(env.findPodRequests(pod.podSubject()))
	if names := p.evictsFor(e.MarkedAt); len(names) > 0 {
		e.Requester, e.RequesterClass = joinRequesters(names), env.classOfRequesters(names)
		e.Confidence = ConfidenceInferred
		e.Trigger = triggerOf(e.RequesterClass, env.isCordoned(e.Node, e.MarkedAt))
		e.Evidence = fmt.Sprintf(
			"the evictor of Kubernetes was active for EvictionRequests about pod %s when the VMI was marked", pod.name)
	}
}
