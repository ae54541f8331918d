package whatif

import (
	"time"
)

// Source returns events one after the other, in the order of their times; false when there are no more.
type Source func() (Event, bool, error)

// progressEvery is after how many events progress is reported.
const progressEvery = 5000

// Replay replays what sources give under all policies that are asked about, in one pass.
func (q *Question) Replay(h *History, sources []Source) (Answer, error) {
	policies := q.All()
	replays := make([]*Replay, 0, len(policies)+1)
	for _, p := range policies {
		replays = append(replays, New(p, h))
	}
	replays = append(replays, New(Policy{}, h)) // shows what really happened
	events := 0
	err := inOrder(sources, func(e Event) {
		for _, r := range replays {
			r.Step(e)
		}
		if events++; q.Progress != nil && events%progressEvery == 0 {
			q.Progress(e.At)
		}
	})
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Cluster: q.Cluster, Namespace: q.Namespace, Node: q.Node, Since: q.Since, Until: q.Until, Assumptions: listAssumptions(policies)}
	if q.Sweep != nil {
		a.SweepOf = q.Sweep.Of
	}
	for i, r := range replays {
		result, recorded := r.End()
		if i == len(policies) {
			a.Recorded, a.Rules = recorded, rulesAt(r.env, h.Until.Add(-time.Nanosecond))
			continue
		}
		if q.Sweep != nil && i >= len(policies)-len(q.Sweep.Policies) {
			result.Swept, result.Value = true, result.Policy.Value(q.Sweep.Of)
		}
		a.Policies = append(a.Policies, result)
	}
	return a, nil
}

// inOrder hands out the events of all sources in the order of their times.
func inOrder(sources []Source, take func(Event)) error {
	type head struct {
		Event
		more bool
	}
	heads := make([]head, len(sources))
	next := func(i int) (err error) {
		heads[i].Event, heads[i].more, err = sources[i]()
		return err
	}
	for i := range sources {
		if err := next(i); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i := range heads {
			if heads[i].more && (first < 0 || heads[i].Compare(&heads[first].Event) < 0) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		take(heads[first].Event)
		if err := next(first); err != nil {
			return err
		}
	}
}
