package backtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// Change is another number in place of a threshold.
type Change struct {
	Present float64 `json:"present"`
	Other   float64 `json:"other"`
}

// Variant is a rule with a threshold and a `for`, and what would have come of it.
type Variant struct {
	Threshold *Change       `json:"threshold,omitempty"` // nil: as it is
	For       time.Duration `json:"-"`
	ForText   string        `json:"for"`
	Present   bool          `json:"present"` // nothing is changed

	Count       int     `json:"firings"`
	FiringFor   float64 `json:"firing_seconds"` // of all firings together
	WithCause   int     `json:"with_cause"`     // firings beside which something wrong is recorded
	WithoutAny  int     `json:"without_cause"`
	StillFiring int     `json:"still_firing"` // at the end of the period

	Firings []Firing `json:"-"`

	expr string
}

// Describe says what is changed in a variant of the rule.
func (r *RuleReport) Describe(v *Variant) string {
	switch {
	case v.Present:
		return "present"
	case v.Threshold == nil:
		return "for " + v.ForText
	}
	text := fmt.Sprintf("%s in place of %s", formatNumber(v.Threshold.Other), formatNumber(v.Threshold.Present))
	if v.ForText != r.For {
		text += ", for " + v.ForText
	}
	return text
}

// newVariants returns what is tried of a rule: first as it is. Where nothing is asked for, half and twice each
// threshold and its `for`, one at a time; else all combinations of what is asked for.
func (o *Options) newVariants(r rule) ([]*Variant, error) {
	thresholds, err := o.listChanges(r)
	if err != nil {
		return nil, err
	}
	holds := o.For
	asked := len(o.Thresholds) > 0 || len(o.For) > 0
	if !asked && r.hold > 0 {
		holds = []time.Duration{r.hold / 2, 2 * r.hold}
	}
	out := []*Variant{newVariant(r, nil, r.hold)}
	for _, hold := range holds {
		out = append(out, newVariant(r, nil, hold))
	}
	for _, c := range thresholds {
		out = append(out, newVariant(r, &c, r.hold))
		if !asked {
			continue
		}
		for _, hold := range o.For {
			out = append(out, newVariant(r, &c, hold))
		}
	}
	for _, v := range out {
		if v.Threshold == nil {
			continue
		}
		if v.expr, err = replaceThreshold(r.Expr, v.Threshold.Present, v.Threshold.Other); err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Alert, err)
		}
	}
	return dropRepeated(out), nil
}

// listChanges returns the other thresholds that are tried of a rule.
func (o *Options) listChanges(r rule) ([]Change, error) {
	there := findThresholds(r.expr)
	var out []Change
	for _, c := range o.Thresholds {
		switch {
		case c.Present == 0 && len(there) == 1:
			c.Present = there[0]
		case !slices.Contains(there, c.Present):
			return nil, &ThresholdError{Rule: r.Alert, Asked: c, There: there}
		}
		out = append(out, c)
	}
	if len(o.Thresholds) > 0 || len(o.For) > 0 {
		return out, nil
	}
	for _, present := range there {
		for _, other := range []float64{halveNumber(present), 2 * present} {
			if other != present {
				out = append(out, Change{present, roundNumber(other)})
			}
		}
	}
	return out, nil
}

// halveNumber returns half of a threshold, of a whole number a whole one.
func halveNumber(n float64) float64 {
	if n == math.Trunc(n) {
		return math.Ceil(n / 2)
	}
	return n / 2
}

func newVariant(r rule, c *Change, hold time.Duration) *Variant {
	return &Variant{Threshold: c, For: hold, ForText: model.Duration(hold).String(), Present: c == nil &&
		hold == r.hold, expr: r.Expr}
}

// dropRepeated keeps one of those that are the same.
func dropRepeated(all []*Variant) []*Variant {
	known := map[string]bool{}
	return slices.DeleteFunc(all, func(v *Variant) bool {
		key := v.expr + "\xff" + v.ForText
		repeated := known[key]
		known[key] = true
		return repeated
	})
}

// ThresholdError is a threshold that a rule does not have.
type ThresholdError struct {
	Rule  string
	Asked Change
	There []float64
}

func (e *ThresholdError) Error() string {
	if len(e.There) == 0 {
		return fmt.Sprintf("threshold: %s has no threshold: it fires where something is there, and only its `for` can be "+
			"another", e.Rule)
	}
	has := ""
	for i, n := range e.There {
		if i > 0 {
			has += ", "
		}
		has += formatNumber(n)
	}
	if e.Asked.Present == 0 {
		return fmt.Sprintf("threshold: %s has several thresholds (%s): say which, as in %s=%s", e.Rule, has,
			formatNumber(e.There[0]), formatNumber(e.Asked.Other))
	}
	return fmt.Sprintf("threshold: %s compares nothing to %s; its thresholds: %s", e.Rule,
		formatNumber(e.Asked.Present), has)
}
