package whatif

import (
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// replayBlockCounter replays what a counter of the descheduler shows: that its cooldown kept it from evicting. Where that can only have been one VM, and
// nothing would have been in the way under the policy, its eviction comes now.
func (r *Replay) replayBlockCounter(d *trail.Decision) {
	if r.policy.Cooldown == nil || d.Inputs.ObservedReason != trail.DecidedCooldown {
		return
	}
	counted := r.isCounted(d.Namespace, d.Node)
	if n := len(d.Inputs.Candidates); n != 1 {
		reason := UnknownBlockOfNobody
		if n > 1 {
			reason = UnknownBlockOfMany
		}
		if counted {
			r.unknown[reason] += max(d.Count, 1)
		}
		return
	}
	v := r.named[d.Inputs.Candidates[0]]
	if v == nil || !r.inPeriod(r.now) || len(v.evacuations) > 0 || len(v.running) > 0 || r.now.Before(v.moving) {
		return
	}
	from, to := maxTime(d.Inputs.Since, v.cooledFrom), r.now // between which it was kept from it
	if v.cooledUntil.Before(to) {
		to = v.cooledUntil
	}
	switch until := r.cooledUntil(v); {
	case !until.Before(to):
		return
	case until.After(from):
		if counted {
			r.unknown[UnknownBlockWhen] += max(d.Count, 1)
		}
		return
	}
	n := r.nodeOf(d.Node)
	total, perNode := r.slotLimits()
	if perNode > 0 && n.policy >= perNode || total > 0 && r.all.policy >= total {
		return
	}
	r.evictSooner(v, n, counted)
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// evictSooner lets an eviction come that was kept back, and its migration succeed.
func (r *Replay) evictSooner(v *vm, n *node, counted bool) {
	began, done := r.now, r.now.Add(v.took)
	v.moving = done
	if v.moved = append(v.moved, done); len(v.moved) > latest {
		v.moved = slices.Delete(v.moved, 0, 1)
	}
	r.countSlot(n, false, true)
	uid := "sooner " + v.uid + " " + began.UTC().Format(time.RFC3339Nano)
	r.scheduleAt(done, func() {
		r.countSlot(n, false, false)
		v.addCompletion(trail.Completion{MigrationUID: uid, StartedAt: began, EndedAt: done})
		v.addFinished(finished{uid, done, true})
		v.elsewhere = true
		if counted && r.inPeriod(r.now) {
			r.out.Would.Migrations++
			r.out.Would.Moves++
		}
	})
	if !counted {
		return
	}
	r.out.Sooner++
	r.out.Would.Evictions++
	r.out.Would.Evacuations++
	r.addChange(&Change{Kind: ChangeSooner, At: began, Namespace: v.namespace, VMI: v.name, VMIUID: v.uid, Node: n.name})
}
