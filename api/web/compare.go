package web

import (
	"time"

	"github.com/evictrail/evictrail/trail"
)

// withParam names the second moment of a page that compares two: by default that is now.
const withParam = "with"

// comparison is what is said of a VM or a node at two moments, the earlier one first.
type comparison struct {
	First, Second time.Time
	Now           bool // the second moment is now
	Lines         []comparedLine
	Hidden        []hidden // of the form that chooses the second moment
}

// comparedLine is one line of a comparison; a text is empty where nothing is said.
type comparedLine struct{ Label, First, Second string }

// Same reports whether both moments say the same.
func (l comparedLine) Same() bool { return l.First == l.Second }

// compareMoments has a page of the past show what is said of its VM or node at its moment beside what is said now, or at the moment that a visitor chose. c is as of the
// moment of the page.
func (v *visit) compareMoments(c *trail.Cluster, of trail.Subject, describe func(*trail.Cluster) []trail.BriefLine) error {
	if !v.Past() {
		return nil
	}
	with, err := v.parsePastParam(withParam)
	if err != nil {
		return err
	}
	other, err := v.reader.Ask(v.Context(), trail.Question{Cluster: c.Name, Of: of, At: with})
	if err != nil {
		return err
	}
	lines, others := describe(c), describe(other)
	compared := comparison{First: v.Moment.At, Second: other.Now, Now: with.IsZero(), Hidden: v.hiddenWithout(withParam, zoneParam)}
	if compared.Second.Before(compared.First) {
		compared.First, compared.Second, lines, others = compared.Second, compared.First, others, lines
	}
	compared.Lines = joinLines(lines, others)
	v.Compared = &compared
	return nil
}

// joinLines puts lines of one label beside each other, in the order of the first ones.
func joinLines(first, second []trail.BriefLine) []comparedLine {
	var out []comparedLine
	at := map[string]int{}
	for _, l := range first {
		at[l.Label] = len(out)
		out = append(out, comparedLine{l.Label, l.Text, ""})
	}
	for _, l := range second {
		if i, known := at[l.Label]; known {
			out[i].Second = l.Text
		} else {
			out = append(out, comparedLine{l.Label, "", l.Text})
		}
	}
	return out
}
