package whatif

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Answer is what would have been different in a period, under each policy.
type Answer struct {
	Cluster     string       `json:"cluster"`
	Namespace   string       `json:"namespace,omitempty"` // that it is about; empty: of all
	Node        string       `json:"node,omitempty"`      // the same
	Since       time.Time    `json:"since"`               // inclusive
	Until       time.Time    `json:"until"`               // exclusive
	Recorded    Tally        `json:"recorded"`            // what really happened
	Rules       *Rules       `json:"rules,omitempty"`     // of the descheduler that were in force at the end; nil where none were seen
	Policies    []Result     `json:"policies"`            // in the order in which they were asked about, those of a sweep last
	SweepOf     string       `json:"sweep_of,omitempty"`  // the setting that was swept
	Assumptions []Assumption `json:"assumptions"`         // that any of the policies rests on
}

// Rules are those of the descheduler as they were seen in force.
type Rules struct {
	Model      string    `json:"model"` // of the cooldown: trail.CooldownLive, trail.CooldownReseeded or trail.CooldownNone
	Cooldown   *Cooldown `json:"cooldown,omitempty"`
	NodeLimit  int       `json:"node_limit,omitempty"`  // 0: none
	TotalLimit int       `json:"total_limit,omitempty"` // 0: none
}

// rulesAt returns the rules in force at a time, nil where no policy was ever seen.
func rulesAt(env *trail.Env, at time.Time) *Rules {
	node, total, known := env.SlotLimits(at)
	if !known {
		return nil
	}
	p := env.CooldownPolicy(at)
	out := &Rules{Model: p.Model, NodeLimit: node, TotalLimit: total}
	if p.Model != trail.CooldownNone {
		out.Cooldown = &Cooldown{Base: trail.Span(p.Base), Cap: trail.Span(p.Max), Window: trail.Span(p.Window)}
	}
	return out
}

// RulesText says by which rules the descheduler went at the end of the period.
func (a *Answer) RulesText() string {
	if a.Rules == nil {
		return "The policy of the descheduler was not seen."
	}
	text := "The descheduler had no cooldown"
	if c := a.Rules.Cooldown; c != nil {
		text = fmt.Sprintf("The descheduler had a cooldown of %s, at most %s, counting %s back (%s)", formatDuration(c.Base), formatDuration(c.Cap), formatDuration(c.Window), a.Rules.Model)
	}
	for _, l := range []struct {
		n     int
		where string
	}{{a.Rules.NodeLimit, "from a node"}, {a.Rules.TotalLimit, "in total"}} {
		if l.n > 0 {
			text += fmt.Sprintf(", %d at a time %s", l.n, l.where)
		}
	}
	return text + "."
}

// Empty reports whether nothing happened in the period that a policy could have changed.
func (a *Answer) Empty() bool { return a.Recorded.Evacuations == 0 && a.Recorded.Evictions == 0 }

// Swept returns the results of the sweep, those of the other policies first.
func (a *Answer) Swept() (others, swept []Result) {
	for i := range a.Policies {
		if a.Policies[i].Swept {
			return a.Policies[:i], a.Policies[i:]
		}
	}
	return a.Policies, nil
}

// Tally counts what happened in the period, or would have.
type Tally struct {
	Evictions   int `json:"evictions"`       // of the descheduler, each once however often it was repeated
	Evacuations int `json:"evacuations"`     // no matter who asked
	Migrations  int `json:"migrations"`      // that ended
	Failed      int `json:"failed_attempts"` // of these
	Moves       int `json:"moves"`           // of these: guests that came to another node
	Loops       int `json:"loops"`           // that opened
}

// Result is what would have been different under one policy.
type Result struct {
	Name    string  `json:"name"` // the policy as it is written
	Policy  Policy  `json:"policy"`
	Swept   bool    `json:"swept,omitempty"` // it is a point of the sweep
	Value   float64 `json:"value,omitempty"` // of the setting that was swept: seconds, or a number
	Would   Tally   `json:"would"`           // what would have happened
	Changed bool    `json:"changed"`         // anything at all

	MigrationsSaved int                    `json:"migrations_saved"`      // that would not have happened
	FailedSaved     int                    `json:"failed_attempts_saved"` // of these
	RequestsSaved   int                    `json:"requests_saved"`        // repetitions that the descheduler would not have sent
	HeldBack        int                    `json:"evictions_held_back"`   // that would not have come when they did
	AskedAgain      int                    `json:"asked_again"`           // of these: whose VM the descheduler asked for later, when it might have it
	WaitTotal       trail.Span             `json:"wait_total_seconds"`    // from when they were asked until nothing would have been in the way
	WaitLongest     trail.Span             `json:"wait_longest_seconds"`
	Sooner          int                    `json:"evictions_sooner"` // that were kept back, and would not have been
	GaveUp          int                    `json:"gave_up"`          // evacuations that KubeVirt would have given up while it went on
	Stays           int                    `json:"stays"`            // moves away from a node that would not have been made when they were
	StaysHot        int                    `json:"stays_hot"`        // of these: whose node the descheduler went on to relieve
	VMsStaying      int                    `json:"vms_staying"`      // how many VMs that are
	LoopsAvoided    map[trail.LoopKind]int `json:"loops_avoided"`    // by kind
	Unknown         []Unknown              `json:"unknown"`          // what the history does not show, the most frequent first
	Changes         []Change               `json:"changes"`          // the first of them, in the order of their times
	ChangesMore     int                    `json:"changes_more"`     // that are only counted
}

// WaitMean returns how long an eviction that is held back would have waited on average.
func (r *Result) WaitMean() time.Duration {
	if r.HeldBack == 0 {
		return 0
	}
	return (time.Duration(r.WaitTotal) / time.Duration(r.HeldBack)).Round(time.Second)
}

// Longest returns how long an eviction that is held back would have waited at most.
func (r *Result) Longest() time.Duration { return time.Duration(r.WaitLongest) }

// LoopsSaved counts the loops that would not have opened.
func (r *Result) LoopsSaved() int {
	n := 0
	for _, of := range r.LoopsAvoided {
		n += of
	}
	return n
}

// UnknownCount counts what the history does not show.
func (r *Result) UnknownCount() int {
	n := 0
	for _, u := range r.Unknown {
		n += u.Count
	}
	return n
}
