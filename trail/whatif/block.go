package whatif

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// counted takes what a counter of the descheduler tells: that its cooldown kept it from evicting. Where that can only have been one VM, and
// nothing would have been in the way under the policy, its eviction comes now.
func (r *Replay) counted(d *trail.Decision) {
	if r.policy.Cooldown == nil || d.Inputs.ObservedReason != trail.DecidedCooldown {
		return
	}
	told := r.tells(d.Namespace, d.Node)
	if n := len(d.Inputs.Candidates); n != 1 {
		reason := UnknownBlockOfNobody
		if n > 1 {
			reason = UnknownBlockOfMany
		}
		if told {
			r.unknown[reason] += max(d.Count, 1)
		}
		return
	}
	v := r.named[d.Inputs.Candidates[0]]
	if v == nil || !r.inPeriod(r.now) || len(v.evacuations) > 0 || len(v.running) > 0 || r.now.Before(v.moving) {
		return
	}
	from, to := later(d.Inputs.Since, v.cooledFrom), r.now // between which it was kept from it
	if v.cooledUntil.Before(to) {
		to = v.cooledUntil
	}
	switch until := r.cooledUntil(v); {
	case !until.Before(to):
		return
	case until.After(from):
		if told {
			r.unknown[UnknownBlockWhen] += max(d.Count, 1)
		}
		return
	}
	n := r.nodeOf(d.Node)
	total, perNode := r.limits()
	if perNode > 0 && n.policy >= perNode || total > 0 && r.all.policy >= total {
		return
	}
	r.sooner(v, n, told)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner lets an eviction come that was kept back, and its migration succeed.
func (r *Replay) sooner(v *vm, n *node, told bool) {
	began, done := r.now, r.now.Add(v.took)
	v.moving = done
	if v.moved = append(v.moved, done); len(v.moved) > latest {
		v.moved = slices.Delete(v.moved, 0, 1)
	}
	r.take(n, false, true)
	uid := "sooner " + v.uid + " " + began.UTC().Format(time.RFC3339Nano)
	r.at(done, func() {
		r.take(n, false, false)
		v.complete(trail.Completion{MigrationUID: uid, StartedAt: began, EndedAt: done})
		v.finish(finished{uid, done, true})
		v.elsewhere = true
		if told && r.inPeriod(r.now) {
			r.out.Would.Migrations++
			r.out.Would.Moves++
		}
	})
	if !told {
		return
	}
	r.out.Sooner++
	r.out.Would.Evictions++
	r.out.Would.Evacuations++
	r.change(&Change{Kind: ChangeSooner, At: began, Namespace: v.namespace, VMI: v.name, VMIUID: v.uid, Node: n.name})
}
