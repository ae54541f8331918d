package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// whatIfBody is the form, and what came of it.
type whatIfBody struct {
	Since, Until, Namespace, Node string // as they were typed
	Proposals                     []proposal
	Own                           []ownField
	KeepMark, TryOnce             bool // of the policy of one's own
	Sweeps                        []sweepChoice
	SweepFrom, SweepTo            string // as they were typed
	Other, Sweep                  string // the same, in the policy language
	Words                         []string
	Problem                       string // what is wrong with what was typed; empty: nothing
	Nothing                       string // why there is no answer; empty: there is one, or nothing was asked
	Answer                        *whatif.Answer
	Others                        []policyResult // of the policies that are not of the sweep
	OtherRows, SweptRows          []whatif.Row
	Curves                        curves
	Recommended                   whatif.Recommendation
	HowToSet                      *howToSet // of the policy that is recommended; nil: none is
	Unknown                       []unseen
}

// proposal is a ready-made policy that can be ticked.
type proposal struct {
	Name, About string
	Ticked      bool
}

// ownField is a setting of the policy of one's own.
type ownField struct {
	Word, Label, Example string
	Value                string // as it was typed
	Number               bool   // it is a whole number, else a duration
}

// sweepChoice is a setting that can be swept.
type sweepChoice struct {
	Word, Label string
	Chosen      bool
}

// policyResult is what would have been different under one policy, and how it is set.
type policyResult struct {
	whatif.Result
	First, More []whatif.Change // that are shown, and that are folded
	HowToSet    *howToSet
}

// howToSet is how a policy is set today.
type howToSet struct {
	Obstacles []string
	Patches   []whatif.Patch
}

// unseen is something that the history does not show, and how often with which policy.
type unseen struct{ Text, Counts string }

// proposals are the policies that can be ticked.
var proposals = []proposal{
	{Name: "keep-mark", About: "Keep the in-progress mark on the pod until the evacuation ends"},
	{Name: "try-once", About: "KubeVirt tries an eviction of the descheduler once"},
	{Name: "give-up-after=3", About: "KubeVirt gives up any evacuation after three attempts"},
	{Name: "cooldown=off", About: "No cooldown of the descheduler"},
}

// ownFields are the settings of a policy of one's own. Each is a word of the policy language, and a parameter of the page.
var ownFields = []ownField{
	{Word: "base", Label: "Cooldown after a migration", Example: "6m"},
	{Word: "cap", Label: "Longest cooldown", Example: "1h"},
	{Word: "window", Label: "Migrations count for", Example: "24h"},
	{Word: "node-limit", Label: "Evictions at once from a node", Example: "1", Number: true},
	{Word: "total-limit", Label: "Evictions at once in total", Example: "5", Number: true},
	{Word: "give-up-after", Label: "KubeVirt gives up after attempts", Example: "3", Number: true},
}

func whatIfPage(v *visit) error {
	v.Title = "What if"
	b := readWhatIfForm(v)
	if v.Cluster == "" && (len(v.Clusters) == 1 || !b.asks(v)) {
		v.Cluster = clusterToSave(v.Clusters)
	}
	status := http.StatusOK
	if b.asks(v) {
		q, err := b.parseQuestion(v)
		if err != nil {
			b.Problem, status = trail.UpperFirst(err.Error()), http.StatusBadRequest
		} else if err := b.loadAnswer(v, q); err != nil {
			return err
		}
	}
	v.Content = b
	return v.renderPage("whatif", status)
}

// readWhatIfForm reads the form as it was sent.
func readWhatIfForm(v *visit) *whatIfBody {
	b := &whatIfBody{
		Since: v.param("since"), Until: v.param("until"), Namespace: v.param("namespace"), Node: v.param("node"), Other: v.param("other"), Sweep: v.param("sweep"),
		Words: whatif.Words(), KeepMark: v.param("keep-mark") != "", TryOnce: v.param("try-once") != "", SweepFrom: v.param("sweep-from"), SweepTo: v.param("sweep-to"),
	}
	ticked := v.URL.Query()["policy"]
	for _, p := range proposals {
		p.Ticked = slices.Contains(ticked, p.Name)
		b.Proposals = append(b.Proposals, p)
	}
	for _, f := range ownFields {
		f.Value = v.param(f.Word)
		b.Own = append(b.Own, f)
		b.Sweeps = append(b.Sweeps, sweepChoice{f.Word, f.Label, v.param("sweep-of") == f.Word})
	}
	return b
}

// clusterToSave returns the cluster with most to save: with most loops of the last day, then most stuck evacuations; the first of several, empty
// where there is none.
func clusterToSave(all []trail.ClusterSummary) string {
	best := ""
	var most [2]int
	for _, c := range all {
		if weight := [2]int{c.Loops + c.Closed, c.Stuck}; best == "" || slices.Compare(weight[:], most[:]) > 0 {
			best, most = c.Name, weight
		}
	}
	return best
}

// asks reports whether anything is asked.
func (b *whatIfBody) asks(v *visit) bool {
	return len(v.URL.Query()["policy"]) > 0 || b.Other != "" || b.sweepText(v) != "" || b.ownText() != ""
}

// ownText writes the fields in the policy language; empty where none is filled.
func (b *whatIfBody) ownText() string {
	var words []string
	for _, f := range b.Own {
		if f.Value != "" {
			words = append(words, f.Word+"="+strings.ReplaceAll(f.Value, " ", ""))
		}
	}
	if b.KeepMark {
		words = append(words, "keep-mark")
	}
	if b.TryOnce {
		words = append(words, "try-once")
	}
	return strings.Join(words, " ")
}

// sweepText writes the sweep in the policy language: the one that was written so, else the one of the fields, whose bounds are the usual ones
// where they are empty; empty where there is none.
func (b *whatIfBody) sweepText(v *visit) string {
	of := v.param("sweep-of")
	if b.Sweep != "" || of == "" {
		return b.Sweep
	}
	from, to := b.SweepFrom, b.SweepTo
	for _, usual := range whatif.UsualSweeps() {
		if bounds, found := strings.CutPrefix(usual, of+"="); found {
			least, most, _ := strings.Cut(bounds, "..")
			from, to = cmp.Or(from, least), cmp.Or(to, most)
		}
	}
	return of + "=" + from + ".." + to
}

// parseQuestion reads the form. With a sweep the policy of one's own is what its policies have in common, else it is one more policy.
func (b *whatIfBody) parseQuestion(v *visit) (whatif.Question, error) {
	now := v.asked
	q := whatif.Question{Cluster: v.Cluster, Namespace: b.Namespace, Node: b.Node}
	var err error
	if q.Since, err = trail.ParseTime(b.Since, now); err != nil {
		return q, fmt.Errorf("from: %w", err)
	}
	if q.Until, err = trail.ParseTime(b.Until, now); err != nil {
		return q, fmt.Errorf("to: %w", err)
	}
	policies := slices.Clone(v.URL.Query()["policy"])
	if b.Other != "" {
		policies = append(policies, strings.Split(b.Other, ";")...)
	}
	own, sweep := b.ownText(), b.sweepText(v)
	if own != "" && sweep == "" {
		policies = append(policies, own)
	}
	if q.Policies, err = whatif.ParsePolicies(policies); err != nil {
		return q, err
	}
	if sweep != "" {
		var with whatif.Policy
		if own != "" {
			if with, err = whatif.ParsePolicy(own); err != nil {
				return q, err
			}
		}
		s, err := whatif.ParseSweep(sweep, with)
		if err != nil {
			return q, err
		}
		q.Sweep = &s
	}
	return q, q.Bound(now)
}

// loadAnswer gets the answer. That nothing is found is one, too.
func (b *whatIfBody) loadAnswer(v *visit, q whatif.Question) error {
	a, err := v.reader.WhatIf(v.Context(), q)
	switch {
	case errors.Is(err, trail.ErrNotFound):
		b.Nothing = "No evacuation began in that time, so no policy could have changed anything. Choose a longer time."
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		b.Nothing = "Replaying that took too long. Choose less time or fewer policies, or ask `evictrail whatif` on the command line, which waits."
		return nil
	case err != nil:
		return err
	}
	v.Cluster, v.AsOf = a.Cluster, a.Until
	b.Answer = &a
	others, swept := a.Swept()
	b.OtherRows, b.SweptRows, b.Curves = whatif.JoinRows(others), whatif.JoinRows(swept), curvesOf(&a, swept)
	if b.Recommended = a.Recommend(); b.Recommended.Result != nil {
		b.HowToSet = howToSetPolicy(b.Recommended.Result.Policy, a.Rules)
	}
	b.nameUnknown(others)
	for _, r := range others {
		shown := min(len(r.Changes), changesShown)
		b.Others = append(b.Others, policyResult{r, r.Changes[:shown], r.Changes[shown:], howToSetPolicy(r.Policy, a.Rules)})
	}
	return nil
}

// changesShown is how many differences of a policy are shown; the others are folded.
const changesShown = 3

func howToSetPolicy(p whatif.Policy, rules *whatif.Rules) *howToSet {
	return &howToSet{p.Obstacles(), p.Patches(rules)}
}

// nameUnknown lists what the history does not show, each reason once.
func (b *whatIfBody) nameUnknown(results []whatif.Result) {
	texts := map[whatif.UnknownReason]int{}
	for i := range results {
		for _, u := range results[i].Unknown {
			at, known := texts[u.Reason]
			if !known {
				at = len(b.Unknown)
				texts[u.Reason] = at
				b.Unknown = append(b.Unknown, unseen{Text: u.Text})
			}
			b.Unknown[at].Counts = strings.TrimPrefix(fmt.Sprintf("%s, %d with %s", b.Unknown[at].Counts, u.Count, results[i].Name), ", ")
		}
	}
}
