package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// Recommendation is which of the policies of an answer to take, or why none.
type Recommendation struct {
	Result  *Result  // nil: none is recommended
	Text    string   // what it saves, and what it costs, in one sentence; or why none is recommended
	Caveats []string // what to know before it is set, a sentence each
}

const (
	leastMigrations = 5  // in the period: from fewer nothing can be learned
	leastShare      = 10 // a policy that saves less than one in so many is not worth setting
)

// Recommend returns the policy that costs least among those that save nearly as much as the best of them: at least four fifths. What costs
// less makes evictions wait for less time in total, then leaves fewer VMs on nodes that stayed hot. Policies that nobody implements today are
// recommended only where no other saves anything.
//
// None is recommended where fewer than five migrations ended, where less than a tenth of them would be saved, and where as many VMs would stay
// on nodes that went on being hot.
func (a *Answer) Recommend() Recommendation {
	if n := a.Recorded.Migrations; n < leastMigrations {
		return Recommendation{Text: fmt.Sprintf("No recommendation: %s ended in this period, and fewer than %d say nothing about the next ones.", formatPlural(n, "migration"), leastMigrations)}
	}
	saving, possible := a.findSaving()
	if len(saving) == 0 {
		return Recommendation{Text: "No recommendation: none of these policies saves a migration."}
	}
	most := slices.MaxFunc(saving, func(x, y *Result) int { return cmp.Compare(a.NetSaved(x), a.NetSaved(y)) })
	if a.NetSaved(most)*leastShare < a.Recorded.Migrations {
		return Recommendation{Text: fmt.Sprintf("No recommendation: none of these policies saves a tenth of the %d migrations; %s saves %d.", a.Recorded.Migrations, most.Name, a.NetSaved(most))}
	}
	near := slices.DeleteFunc(slices.Clone(saving), func(r *Result) bool { return 5*a.NetSaved(r) < 4*a.NetSaved(most) })
	best := slices.MinFunc(near, func(x, y *Result) int {
		return cmp.Or(cmp.Compare(x.WaitTotal, y.WaitTotal), cmp.Compare(x.StaysHot, y.StaysHot), cmp.Compare(a.NetSaved(y), a.NetSaved(x)))
	})
	if n := a.NetSaved(best); best.StaysHot >= n {
		return Recommendation{Text: fmt.Sprintf("No recommendation: %s saves %s and leaves %s on nodes that stayed hot; they were needed.", best.Name, formatPlural(n, "migration"), formatPlural(best.StaysHot, "VM"))}
	}
	out := Recommendation{Result: best, Text: a.weigh(best) + "."}
	if more := a.NetSaved(most) - a.NetSaved(best); more > 0 {
		out.Caveats = append(out.Caveats, fmt.Sprintf("%s would save %d more, at %s.", most.Name, more, most.describeCost()))
	}
	if n := best.HeldBack - best.AskedAgain; n > 0 {
		out.Caveats = append(out.Caveats, fmt.Sprintf("%d of %s held back came from VMs that were not asked for again when they could go: they may only come later.", n, formatPlural(best.HeldBack, "eviction")))
	}
	if !possible {
		out.Caveats = append(out.Caveats, "None of the policies compared here that can be set today saves a migration.")
	}
	return out
}

// findSaving returns the results that save migrations: those of policies that can be set today or, where there are none, all.
func (a *Answer) findSaving() (saving []*Result, possible bool) {
	var all []*Result
	for i := range a.Policies {
		r := &a.Policies[i]
		if a.NetSaved(r) <= 0 {
			continue
		}
		all = append(all, r)
		if r.Policy.Possible() {
			saving = append(saving, r)
		}
	}
	if len(saving) > 0 {
		return saving, true
	}
	return all, false
}

// NetSaved returns how many fewer migrations there would have been, those that would have come sooner among them.
func (a *Answer) NetSaved(r *Result) int { return a.Recorded.Migrations - r.Would.Migrations }

// weigh says what a policy saves, and what it costs.
func (a *Answer) weigh(r *Result) string {
	return fmt.Sprintf("%s saves up to %d of %d migrations; it costs %s", r.Name, a.NetSaved(r), a.Recorded.Migrations, r.describeCost())
}

// describeCost says what a policy costs.
func (r *Result) describeCost() string {
	var costs []string
	if r.HeldBack > 0 {
		costs = append(costs, fmt.Sprintf("a mean wait of %s for %s", trail.Age(r.WaitMean()), formatPlural(r.HeldBack, "eviction")))
	}
	if r.GaveUp > 0 {
		costs = append(costs, formatPlural(r.GaveUp, "evacuation")+" given up")
	}
	if r.StaysHot > 0 {
		costs = append(costs, formatPlural(r.StaysHot, "move")+" fewer from nodes that stayed hot")
	}
	if len(costs) == 0 {
		return "no wait"
	}
	if n := len(costs) - 1; n > 0 {
		return strings.Join(costs[:n], ", ") + " and " + costs[n]
	}
	return costs[0]
}
