package whatif

import (
	"cmp"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// addFinished notes a migration that ended, among the latest.
func (v *vm) addFinished(f finished) {
	if v.finished = append(v.finished, f); len(v.finished) > trail.FinishedKept {
		v.finished = slices.Delete(v.finished, 0, 1)
	}
}

// addCompletion notes the end of a migration as the VMI showed it.
func (v *vm) addCompletion(c trail.Completion) {
	i := len(v.completions)
	for i > 0 && v.completions[i-1].EndedAt.After(c.EndedAt) {
		i--
	}
	v.completions = slices.Insert(v.completions, i, c)
}

// replayCompletion takes the end of a migration as the VMI of the history showed it.
func (r *Replay) replayCompletion(c *Completion) {
	v := r.vms[c.VMIUID]
	if v == nil {
		v = r.vmOf("", "", c.VMIUID)
	}
	for _, a := range v.running {
		if a.UID == c.MigrationUID {
			if a.completed = true; !a.isKept() {
				return
			}
		}
	}
	if slices.Contains(v.unmade, c.MigrationUID) {
		return
	}
	v.completions = slices.DeleteFunc(v.completions, func(x trail.Completion) bool { return x.MigrationUID == c.MigrationUID })
	v.addCompletion(c.Completion)
}

// buildCooldownPolicy returns the policy of the cooldown at a time.
func (r *Replay) buildCooldownPolicy(at time.Time) trail.CooldownPolicy {
	was, c := r.env.CooldownPolicy(at), r.policy.Cooldown
	p := trail.CooldownPolicy{Model: was.Model}
	if p.Model == trail.CooldownNone {
		p.Model = trail.CooldownLive
	}
	p.Base = cmp.Or(time.Duration(c.Base), was.Base, trail.DefaultCooldown)
	p.Max = cmp.Or(time.Duration(c.Cap), was.Max, trail.DefaultMaxCooldown)
	p.Window = cmp.Or(time.Duration(c.Window), was.Window, trail.DefaultCooldownWindow)
	if c.Cap == 0 { // a recorded cap below a base that is asked about would be refused by the plugin
		p.Max = max(p.Max, p.Base)
	}
	return p
}

// checkCooldown returns by which rule of the cooldown plugin a VM may not be evicted now under the policy, and until when that holds; none where it
// may.
func (r *Replay) checkCooldown(v *vm) (Rule, time.Time) {
	if c := r.policy.Cooldown; c == nil || c.Off {
		return "", time.Time{}
	}
	for _, a := range v.running {
		if a.isKept() && !a.completed && !a.RunningAt.IsZero() && a.RunningAt.Before(r.now) {
			return RuleInProgress, a.FinishedAt
		}
	}
	if until := r.cooledUntil(v); r.now.Before(until) {
		return RuleCooldown, until
	}
	return "", time.Time{}
}

// cooledUntil returns the end of the cooldown that the policy computes now, which may be over; zero where there is none.
func (r *Replay) cooledUntil(v *vm) time.Time {
	if r.policy.Cooldown.Off || len(v.completions) == 0 {
		return time.Time{}
	}
	p := r.buildCooldownPolicy(r.now)
	v.dropOldCompletions(r.now.Add(-max(p.Window, r.env.CooldownPolicy(r.now).Window)))
	known, _ := r.env.Remembered(p, v.completions, r.now, v.listSeeds)
	return p.Decide(known, r.now).Until
}

// dropOldCompletions drops completions that count no more, but for the last: that stands on the VMI.
func (v *vm) dropOldCompletions(before time.Time) {
	for len(v.completions) > 1 && v.completions[0].EndedAt.Before(before) {
		v.completions = slices.Delete(v.completions, 0, 1)
	}
}

// listSeeds names the migrations that the plugin reads when it starts: the successes among those that KubeVirt kept.
func (v *vm) listSeeds(since time.Time) map[string]bool {
	seed := map[string]bool{}
	for _, f := range v.finished {
		if f.succeeded && !f.at.After(since) {
			seed[f.uid] = true
		}
	}
	return seed
}

// replayDecision takes a decision of the recorded cooldown: that it begins, that an act met it, or a counter that shows some.
func (r *Replay) replayDecision(d *trail.Decision) {
	switch {
	case d.Verdict == trail.VerdictHolds:
		v := r.vmOf(d.Namespace, d.VMI, d.VMIUID)
		v.cooledFrom, v.cooledUntil = d.DecidedAt, d.Until
	case d.Origin == trail.OriginObserved:
		r.replayBlockCounter(d)
	case d.Inputs.RequestID != nil && r.vms[d.VMIUID] != nil:
		r.vms[d.VMIUID].against = *d.Inputs.RequestID
	}
}
