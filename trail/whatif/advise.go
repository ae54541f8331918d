package whatif

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Week is the period of which advice is checked.
const Week = 7 * Day

// Advice is which policy to take, and how the same advice would have fared in the weeks before: each time it rests on
// the weeks before that one alone.
type Advice struct {
	Cluster        string        `json:"cluster"`
	Since          time.Time     `json:"since"` // of the weeks that the advice of today rests on
	Until          time.Time     `json:"until"`
	LearnedFrom    int           `json:"learned_from_weeks"`
	Policies       []string      `json:"policies"` // that were compared
	Now            Choice        `json:"now"`      // on the weeks that it rests on
	Text           string        `json:"text"`
	Caveats        []string      `json:"caveats"`
	Weeks          []AdvisedWeek `json:"weeks"` // the oldest first
	Regret         int           `json:"regret"`
	RegretPresent  int           `json:"regret_present"`
	Changes        int           `json:"changes"` // how often the advice was another than in the week before
	Recommendation `json:"-"`    // of today
	Learned        Answer        `json:"-"` // what the advice of today rests on
}

// AdvisedWeek is what would have come of advice in a week that it did not know.
type AdvisedWeek struct {
	Since         time.Time `json:"since"`
	Until         time.Time `json:"until"`
	Migrations    int       `json:"migrations"`     // that ended, with the settings that were in force
	Advised       Choice    `json:"advised"`        // by the weeks before
	Best          Choice    `json:"best"`           // by the week itself
	Regret        int       `json:"regret"`         // migrations that the best would have saved beyond the advised
	RegretPresent int       `json:"regret_present"` // beyond the settings that were in force
}

// Choice is a policy, and what it would have changed in a period.
type Choice struct {
	Policy    string     `json:"policy"` // "recorded": none is recommended, the settings stay
	Saved     int        `json:"migrations_saved"`
	HeldBack  int        `json:"evictions_held_back"`
	WaitTotal trail.Span `json:"wait_total_seconds"`
	StaysHot  int        `json:"stays_hot"`
}

// WaitMean returns how long an eviction that is held back would have waited on average.
func (c Choice) WaitMean() time.Duration {
	r := Result{HeldBack: c.HeldBack, WaitTotal: c.WaitTotal}
	return r.WaitMean()
}

// AdvicePolicies returns the policies that advice compares where none are named: each usual value of each setting that
// can be set today.
func AdvicePolicies() []Policy {
	var out []Policy
	for _, text := range UsualSweeps() {
		s, err := ParseSweep(text, Policy{})
		if err != nil {
			continue // none is: they are a fixed list, which a test reads
		}
		for _, p := range s.Policies {
			if p.Possible() {
				out = append(out, p)
			}
		}
	}
	return out
}

// Advise returns advice from the answers of weeks that follow each other, the oldest first, each about the same
// policies. An answer without policies is of a week in which nothing happened. Each advice rests on so many weeks
// before.
func Advise(weeks []Answer, learn int) Advice {
	a := Advice{LearnedFrom: learn, Caveats: []string{}, Weeks: []AdvisedWeek{}}
	for i := range weeks {
		if len(weeks[i].Policies) > 0 && a.Policies == nil {
			for k := range weeks[i].Policies {
				a.Policies = append(a.Policies, weeks[i].Policies[k].Name)
			}
		}
	}
	for i := learn; i < len(weeks); i++ {
		before := addAnswers(weeks[i-learn : i])
		advised := weeks[i].choose(before.Recommend())
		best := weeks[i].choose(weeks[i].Recommend())
		w := AdvisedWeek{
			Since: weeks[i].Since, Until: weeks[i].Until, Migrations: weeks[i].Recorded.Migrations, Advised: advised,
			Best:   best,
			Regret: best.Saved - advised.Saved, RegretPresent: best.Saved,
		}
		if n := len(a.Weeks); n > 0 && a.Weeks[n-1].Advised.Policy != advised.Policy {
			a.Changes++
		}
		a.Regret, a.RegretPresent = a.Regret+w.Regret, a.RegretPresent+w.RegretPresent
		a.Weeks = append(a.Weeks, w)
	}
	a.Learned = addAnswers(weeks[max(0, len(weeks)-learn):])
	a.Cluster, a.Since, a.Until = a.Learned.Cluster, a.Learned.Since, a.Learned.Until
	a.Recommendation = a.Learned.Recommend()
	a.Now = a.Learned.choose(a.Recommendation)
	a.Text, a.Caveats = a.Recommendation.Text, append(a.Caveats, a.Recommendation.Caveats...)
	if n := len(a.Weeks); n > 0 && a.Weeks[n-1].Advised.Policy != a.Now.Policy {
		a.Changes++
	}
	return a
}

// choose returns what a recommendation would have changed in the period of an answer.
func (a *Answer) choose(r Recommendation) Choice {
	c := Choice{Policy: Policy{}.String()}
	if r.Result == nil {
		return c
	}
	c.Policy = r.Result.Name
	for i := range a.Policies {
		if p := &a.Policies[i]; p.Name == r.Result.Name {
			c.Saved, c.HeldBack, c.WaitTotal, c.StaysHot = a.NetSaved(p), p.HeldBack, p.WaitTotal, p.StaysHot
		}
	}
	return c
}

// addAnswers adds up what would have been different in weeks, as if they were one period: as far as a Recommendation
// needs it.
func addAnswers(weeks []Answer) Answer {
	var sum Answer
	for i := range weeks {
		w := &weeks[i]
		if sum.Since.IsZero() {
			sum.Since = w.Since
		}
		sum.Until = w.Until
		if w.Cluster != "" {
			sum.Cluster = w.Cluster
		}
		if w.Rules != nil {
			sum.Rules = w.Rules
		}
		sum.Recorded = sum.Recorded.add(w.Recorded)
		if len(sum.Policies) == 0 {
			sum.Policies = make([]Result, len(w.Policies))
		}
		for k := range w.Policies {
			sum.Policies[k].addWeek(&w.Policies[k])
		}
	}
	return sum
}

func (t Tally) add(o Tally) Tally {
	return Tally{
		t.Evictions + o.Evictions, t.Evacuations + o.Evacuations, t.Migrations + o.Migrations, t.Failed +
			o.Failed, t.Moves + o.Moves,
		t.Loops + o.Loops,
	}
}

// addWeek adds what a policy would have changed in one more week.
func (r *Result) addWeek(w *Result) {
	r.Name, r.Policy = w.Name, w.Policy
	r.Would = r.Would.add(w.Would)
	r.MigrationsSaved += w.MigrationsSaved
	r.HeldBack += w.HeldBack
	r.AskedAgain += w.AskedAgain
	r.WaitTotal += w.WaitTotal
	r.WaitLongest = max(r.WaitLongest, w.WaitLongest)
	r.GaveUp += w.GaveUp
	r.StaysHot += w.StaysHot
}

// Stability says in a sentence how often the advice changed, and what following it would have been worth.
func (a *Advice) Stability() string {
	if len(a.Weeks) == 0 {
		return "No week is left to check it: more history is needed."
	}
	text := "The advice was the same in each of the weeks below, and is today"
	if a.Changes > 0 {
		text = fmt.Sprintf("The advice changed %s from week to week", formatTimes(a.Changes))
	}
	return text + fmt.Sprintf(". In %s following it would have cost %s more than the best in hindsight, and the "+
		"settings in force %d more.",
		formatPlural(len(a.Weeks), "week"), formatPlural(a.Regret, "migration"), a.RegretPresent)
}

// Legend says what the columns of a table of weeks count.
func (a *Advice) Legend() string {
	return `Saved are migrations that would not have happened, regret those that the best in hindsight would have saved beyond the advised policy: ` +
		`it is below zero where the advised one saves more, at a longer wait. "recorded": the settings stay.`
}

func formatTimes(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
