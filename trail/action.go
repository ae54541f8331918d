package trail

import "time"

// What else people and programs asked of the API server: who made a migration, deleted it, cancelled an evacuation,
// cordoned a node. An audit event at level Metadata names the object but not what it became, so each is joined with
// the change that was seen on the object, by time. Where two users are possible, nobody is named.

// actionSlack is how long after an answer its effect may still show, and how far the clocks may be apart.
const actionSlack = 2 * time.Second

// findSoleRequest returns the detail of the requests if all are of one user, and of one who acts as that user, nil otherwise.
func findSoleRequest(facts []*RequestDetail) *RequestDetail {
	for _, d := range facts {
		if d.User != facts[0].User || d.Impersonator != facts[0].Impersonator {
			return nil
		}
	}
	if len(facts) == 0 || facts[0].User == "" {
		return nil
	}
	return facts[0]
}

// isWithinRequest reports whether a change at a time can be the effect of a request. Times of objects have a resolution of 1 s.
func isWithinRequest(f Fact, d *RequestDetail, at time.Time) bool {
	return !at.Before(f.OccurredAt.Truncate(time.Second)) && !at.After(maxTime(f.OccurredAt, d.AnsweredAt).Add(actionSlack))
}

// selectAcceptedRequests selects the requests for an action that the API server granted.
func selectAcceptedRequests(facts []Fact, action Action, is func(Fact, *RequestDetail) bool) []*RequestDetail {
	var out []*RequestDetail
	for _, f := range facts {
		if d, ok := f.Detail.(*RequestDetail); ok && d.Action == action && d.isAccepted() && is(f, d) {
			out = append(out, d)
		}
	}
	return out
}

// createdBy returns who made a migration; nil where unknown. KubeVirt's own are not looked for: their objects say
// it, and what they were made for has a requester of its own.
func (m *migration) createdBy(own []Fact, env *Env) *RequestDetail {
	if m.spec.Evacuation || m.spec.WorkloadUpdate || m.spec.VolumeUpdate {
		return nil
	}
	here := env.findMigrationRequests(m.Namespace)
	named := selectAcceptedRequests(here, ActionCreateMigration, func(_ Fact, d *RequestDetail) bool { return d.Name == m.Name })
	if len(named) > 0 {
		return findSoleRequest(named)
	}
	if called := selectAcceptedRequests(own, ActionMigrate, func(f Fact, d *RequestDetail) bool { return isWithinRequest(f, d, m.CreatedAt) }); len(called) > 0 {
		return findSoleRequest(called)
	}
	return findSoleRequest(selectAcceptedRequests(here, ActionCreateMigration, func(f Fact, d *RequestDetail) bool {
		return d.Name == "" && isWithinRequest(f, d, m.CreatedAt)
	}))
}

// deletedBy returns who deleted a migration first; nil where unknown.
func (m *migration) deletedBy(env *Env) *RequestDetail {
	for _, f := range env.findMigrationRequests(m.Namespace) {
		d, ok := f.Detail.(*RequestDetail)
		if ok && d.Action == ActionDeleteMigration && d.Name == m.Name && d.isAccepted() && !f.OccurredAt.Before(m.CreatedAt.Add(-time.Second)) {
			return d
		}
	}
	return nil
}

// cancelledBy returns who cancelled an evacuation through the subresource; nil where unknown. Of an end that was not
// seen when it happened, any cancellation since the mark may be the cause.
func (e *evacuation) cancelledBy(own []Fact) *RequestDetail {
	if e.Outcome != OutcomeCancelled {
		return nil
	}
	return findSoleRequest(selectAcceptedRequests(own, ActionCancel, func(f Fact, d *RequestDetail) bool {
		whileOpen := e.endLate && f.OccurredAt.After(e.MarkedAt) && !f.OccurredAt.After(e.EndedAt)
		return whileOpen || computeDistance(e.EndedAt, f.OccurredAt, d.AnsweredAt) <= markSlack
	}))
}

// nodeChangedBy returns who cordoned, uncordoned or tainted a node, from the change that was seen on it; nil where nobody
// saw it. Where the request's body was audited it says so itself.
func (e *Env) nodeChangedBy(change Fact) *RequestDetail {
	return findSoleRequest(selectAcceptedRequests(e.nodes[change.Node], ActionChangeNode, func(f Fact, d *RequestDetail) bool {
		if cordons := change.Kind == KindNodeCordoned; d.Unschedulable != nil && (change.What != WhatCordon || *d.Unschedulable != cordons) {
			return false
		}
		return !change.Late && computeDistance(change.OccurredAt, f.OccurredAt, d.AnsweredAt) <= actionSlack
	}))
}
