package trail

import (
	"cmp"
	"slices"
	"time"
)

// joinRequestEffects returns the requests on the pods of one VM and what each did: which mark it left, which evacuation it met,
// whether it shut the VM down. Marks that no request explains give one of their own.
func joinRequestEffects(pods map[string]*launcher, lives []*life, env *Env) []*request {
	var requests []*request
	for _, p := range pods {
		requests = append(requests, requestsOf(env.findPodRequests(p.podSubject()), env)...)
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
		r.joinOpenEvacuation()
		r.Effect = r.computeEffect()
	}
	for _, l := range lives {
		for _, e := range l.evacuations {
			if e.request == nil && e.MarkedBy != MarkedByTaint {
				e.inferRequesters(launcherOn(pods, l.uid, e.Node, e.MarkedAt), env)
				requests = append(requests, requestOfMark(e, l, pods))
			}
		}
	}
	slices.SortFunc(requests, func(a, b *request) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	foldRepeats(requests)
	return requests
}

// tieMarks finds the request that left each mark: the one that was answered so at the time of the mark; then, without an
// answer, the first that asked before the mark was seen, as KubeVirt refuses those after it, else the nearest in time; then
// one that was answered so and lies further off, as clocks may.
func tieMarks(requests []*request, lives []*life, env *Env) {
	var near []couple[*evacuation, *request]
	for _, l := range lives {
		before := time.Time{}
		for _, e := range l.evacuations {
			for _, r := range requests {
				if apart, ok := r.leftMark(e, l, before); ok {
					rank := 0
					switch {
					case r.Answer == AnswerUnknown:
						rank = 1
						if asked := e.openAt.Sub(r.RequestedAt); !e.late && asked >= 0 && !r.RequestedAt.Before(before) {
							apart = -asked
						}
					case apart > markSlack:
						rank = 2
					}
					near = append(near, couple[*evacuation, *request]{e, r, rank, apart, r.ID.String() + e.ID.String()})
				}
			}
			before = e.EndedAt
		}
	}
	for e, r := range pairNearest(near, map[*request]bool{}) {
		e.askedBy(r, env)
	}
}

// leftMark reports whether a request can have left the mark of an evacuation, and how far apart the two are. The mark was
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
		return computeDistance(e.MarkedAt, r.RequestedAt, r.AnsweredAt), possible
	}
	apart := computeDistance(e.openAt, r.RequestedAt, r.AnsweredAt)
	return apart, apart <= markSlack || r.Answer == AnswerMarked && apart <= markFar
}

// askedBy says who asked for an evacuation. That the mark came with the annotation of the descheduler proves that the
// Eviction carried it; that says who asked only where the sender is not known, as every client can write it.
func (e *evacuation) askedBy(r *request, env *Env) {
	marked := e.RequesterClass == RequesterDescheduler && e.Confidence == ConfidenceAsserted
	if marked && r.Requester == "" {
		r.RequesterClass = RequesterDescheduler
	}
	e.request, r.evacuation = r, e
	r.ID = hashID("request", e.ID.String())
	r.EvacuationID = new(e.ID)
	if r.Answer == AnswerUnknown {
		r.Answer = AnswerMarked
	}
	r.Evidence += "; mark " + e.ID.String()
	e.SeenLate = e.SeenLate || r.SeenLate
	if (e.late || e.MarkedBy == MarkedByMigration) && !r.AnsweredAt.IsZero() && r.AnsweredAt.Before(e.MarkedAt) {
		e.MarkedAt = r.AnsweredAt
	}
	if r.RequesterClass == RequesterUnknown && e.RequesterClass != RequesterUnknown {
		return
	}
	e.Requester, e.RequesterClass, e.Impersonator, e.Confidence = r.Requester, r.RequesterClass, r.Impersonator, r.Confidence
	e.Trigger = triggerOf(r.RequesterClass, env.isCordoned(e.Node, e.MarkedAt))
	e.Evidence = r.Evidence
}

// triggerOf names the trigger of an evacuation whose requester is known: the class says who called, the state of the
// node whether it was a drain.
func triggerOf(class RequesterClass, cordoned bool) Trigger {
	switch {
	case class == RequesterDescheduler:
		return TriggerDescheduler
	case cordoned:
		return TriggerDrain
	}
	return TriggerEviction
}

// joinOpenEvacuation ties a request that changed nothing to the evacuation that was under way.
func (r *request) joinOpenEvacuation() {
	if r.evacuation != nil || r.life == nil || r.DryRun || r.Answer != AnswerAlreadyMarked && r.Answer != AnswerUnknown {
		return
	}
	for _, e := range r.life.evacuations {
		if !e.MarkedAt.After(r.RequestedAt.Add(reviewSlack)) && (e.EndedAt.IsZero() || !e.EndedAt.Before(r.RequestedAt.Add(-reviewSlack))) {
			r.evacuation, r.EvacuationID = e, new(e.ID)
		}
	}
}

// computeEffect returns what the request changed. An allowed eviction deletes its pod: with the guest in it that is a shutdown.
func (r *request) computeEffect() Effect {
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

// requestOfMark returns the request that must have been there because its mark was.
func requestOfMark(e *evacuation, l *life, pods map[string]*launcher) *request {
	r := &request{life: l, evacuation: e}
	confidence := e.Confidence
	if confidence == ConfidenceUnknown {
		confidence = ConfidenceInferred // that somebody asked; not who
	}
	r.EvictionRequest = EvictionRequest{
		ID: hashID("request", e.ID.String()), Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid, Node: e.Node, RequestedAt: e.MarkedAt,
		Requester: e.Requester, RequesterClass: e.RequesterClass, Source: string(SourceMark), Confidence: confidence, Answer: AnswerMarked,
		Effect: EffectEvacuation, EvacuationID: new(e.ID), Evidence: e.Evidence, EventID: new(e.ID), SeenLate: e.SeenLate,
	}
	if p := launcherOn(pods, l.uid, e.Node, e.MarkedAt); p != nil {
		r.pod, r.Pod = p, p.name
	}
	return r
}

// foldRepeats ties the repetitions of a request to the first of them: those of one requester that met one evacuation, or that
// got the same answer for the same pod again within a while. It also picks those that matter to the node. Requests come in the
// order of their times.
func foldRepeats(requests []*request) {
	heads, salientAt := map[[4]string]*request{}, map[[4]string]time.Time{}
	for _, r := range requests {
		key := r.foldedBy()
		head := heads[key]
		if r.Salient = r.RequesterClass == RequesterDescheduler || r.RequestedAt.Sub(salientAt[key]) >= time.Minute; r.Salient {
			salientAt[key] = r.RequestedAt
		}
		if head == nil || r.evacuation == nil && r.RequestedAt.Sub(maxTime(head.RequestedAt, head.LastRepeatAt)) > repeatGap {
			heads[key] = r
			continue
		}
		r.RepeatOf = new(head.ID)
		head.Repeats++
		head.LastRepeatAt = r.RequestedAt
	}
}

// foldedBy names what the repetitions of a request have in common: who asks, and for what.
func (r *request) foldedBy() [4]string {
	what := string(r.Answer) + " " + string(r.Effect)
	switch {
	case r.DryRun:
		what = "dry run"
	case r.evacuation != nil:
		what = r.evacuation.ID.String()
	}
	return [4]string{r.Pod, cmp.Or(r.Requester, string(r.RequesterClass)), r.Impersonator, what}
}
