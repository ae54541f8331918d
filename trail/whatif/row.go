package whatif

import (
	"cmp"
	"maps"
	"strings"
)

// Row is one line of a table of results: a policy, or neighbours of a sweep that all change the same.
type Row struct {
	Result        // of the first
	Last   Result // of the neighbours; the first where it has none
}

// Joined reports whether the row has several policies.
func (r *Row) Joined() bool { return r.Name != r.Last.Name }

// Label names the policies of the row: "base=2m to 5m".
func (r *Row) Label(of string) string {
	if !r.Joined() {
		return r.Name
	}
	return r.Name + " to " + r.Last.SettingText(of)
}

// JoinRows joins neighbours of a sweep that change the same; other results are rows of their own.
func JoinRows(results []Result) []Row {
	var out []Row
	for i := range results {
		r := &results[i]
		if n := len(out) - 1; n >= 0 && r.Swept && out[n].Swept && out[n].sameOutcome(r) {
			out[n].Last = *r
			continue
		}
		out = append(out, Row{*r, *r})
	}
	return out
}

// sameOutcome reports whether two policies would have changed the same, as far as it is counted.
func (r *Result) sameOutcome(o *Result) bool {
	figures := func(x *Result) [14]int {
		return [14]int{
			x.Would.Evictions, x.Would.Migrations, x.MigrationsSaved, x.FailedSaved, x.RequestsSaved, x.HeldBack, x.AskedAgain, int(x.WaitTotal), int(x.WaitLongest),
			x.Sooner, x.GaveUp, x.StaysHot, x.VMsStaying, x.UnknownCount(),
		}
	}
	return figures(r) == figures(o) && maps.Equal(r.LoopsAvoided, o.LoopsAvoided)
}

// SettingText returns the value of a setting as the policy writes it; empty where it does not state that setting.
func (r *Result) SettingText(of string) string {
	for word := range strings.FieldsSeq(r.Name) {
		if value, found := strings.CutPrefix(word, of+"="); found {
			return value
		}
	}
	return ""
}

// Setting returns the value of a setting as it was in force at the end of the period: seconds, or a number, and how it is written. Not known:
// false.
func (r *Rules) Setting(of string) (value float64, text string, known bool) {
	if r == nil {
		return 0, "", false
	}
	p := Policy{Cooldown: r.Cooldown, NodeLimit: r.NodeLimit, TotalLimit: r.TotalLimit}
	if value = p.Value(of); value == 0 {
		return 0, "", false
	}
	result := Result{Name: p.String()}
	return value, cmp.Or(result.SettingText(of), "0"), true
}
