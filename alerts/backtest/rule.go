package backtest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/metrics"
)

// rule is a rule that Prometheus' parser has read.
type rule struct {
	alerts.Rule
	expr parser.Expr
	hold time.Duration // for
	keep time.Duration // keep_firing_for
}

// parseRules reads all rules of groups.
func parseRules(groups []alerts.Group) (recording, alerting []rule, err error) {
	for _, g := range groups {
		for _, r := range g.Rules {
			expr, err := parseExpr(r.Expr)
			if err != nil {
				return nil, nil, fmt.Errorf("rule %s%s: %w", r.Alert, r.Record, err)
			}
			next := rule{Rule: r, expr: expr}
			if next.hold, err = parseDuration(r.For); err != nil {
				return nil, nil, fmt.Errorf("rule %s: for: %w", r.Alert, err)
			}
			if next.keep, err = parseDuration(r.KeepFiringFor); err != nil {
				return nil, nil, fmt.Errorf("rule %s: keep_firing_for: %w", r.Alert, err)
			}
			if r.Record != "" {
				recording = append(recording, next)
			} else {
				alerting = append(alerting, next)
			}
		}
	}
	return recording, alerting, nil
}

func parseExpr(text string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(text)
}

// parseDuration reads a duration as Prometheus writes it; empty is none.
func parseDuration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := model.ParseDuration(text)
	return time.Duration(d), err
}

// listMetrics returns the names of the metrics and recording rules that an expression reads.
func listMetrics(expr parser.Expr) []string {
	names := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			names[s.Name] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(names))
}

// findReach returns how far back from a moment an expression looks.
func findReach(expr parser.Expr) time.Duration {
	var most time.Duration
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		reach := s.OriginalOffset
		if len(path) > 0 {
			if m, is := path[len(path)-1].(*parser.MatrixSelector); is {
				reach += m.Range
			}
		}
		most = max(most, reach)
		return nil
	})
	return most
}

// program is the rules that are evaluated, and what they need.
type program struct {
	recording []rule // that the alerts read, in the order of their groups
	alerting  []rule
	metrics   map[string]bool // of evictrail that they read
	reach     time.Duration   // how far back from a moment they look together
}

// newProgram picks the alerts of some names, all where none are given, that a history can answer for, and what they
// read. The others are returned with what is missing.
func newProgram(recording, alerting []rule, names []string) (program, []NotInHistory) {
	p := program{metrics: map[string]bool{}}
	byName := map[string]rule{}
	for _, r := range recording {
		byName[r.Record] = r
	}
	var missing []NotInHistory
	needed := map[string]bool{}
	for _, r := range alerting {
		if len(names) > 0 && !slices.Contains(names, r.Alert) {
			continue
		}
		reads, records, reach := followReads(r, byName)
		if why := findMissing(r, reads); why != "" {
			missing = append(missing, NotInHistory{r.Alert, r.Labels[labelSeverity],
				slices.Sorted(maps.Keys(reads)), why})
			continue
		}
		p.alerting, p.reach = append(p.alerting, r), max(p.reach, reach)
		maps.Copy(needed, records)
		maps.Copy(p.metrics, reads)
	}
	for _, r := range recording {
		if needed[r.Record] {
			p.recording = append(p.recording, r)
		}
	}
	return p, missing
}

// followReads returns the metrics and the recording rules that a rule reads, also by way of others, and how far back it
// looks.
func followReads(r rule, byName map[string]rule) (reads, records map[string]bool, reach time.Duration) {
	reads, records = map[string]bool{}, map[string]bool{}
	for _, name := range listMetrics(r.expr) {
		record, is := byName[name]
		if !is {
			reads[name] = true
			continue
		}
		more, through, further := followReads(record, byName)
		records[name] = true
		maps.Copy(reads, more)
		maps.Copy(records, through)
		reach = max(reach, further)
	}
	return reads, records, reach + findReach(r.expr)
}

// labelSeverity and componentFleet are as in package alerts.
const (
	labelSeverity  = "severity"
	labelComponent = "component"
	componentFleet = "fleet"
)

// findMissing says what a history does not have of what an alert reads; empty where it has everything.
func findMissing(r rule, reads map[string]bool) string {
	if r.Labels[labelComponent] == componentFleet {
		return "it compares several clusters, and one is replayed"
	}
	// The descheduler's own counters are in the history as facts, and evictrail's stand for them in the same rule.
	if !slices.ContainsFunc(slices.Collect(maps.Keys(reads)), func(name string) bool {
		return !metrics.IsReplayable(name) && name != metrics.DeschedulerBlocksTotal
	}) {
		return ""
	}
	return "how it stood with evictrail itself or its scrape is not recorded"
}

// findThresholds returns the numbers to which an expression compares, each once, in the order in which they are
// written. Zero, and what a value has to be equal to, are none: they say whether, not how much.
func findThresholds(expr parser.Expr) []float64 {
	var out []float64
	forEachThreshold(expr, func(value float64, _ *parser.Expr) {
		if !slices.Contains(out, value) {
			out = append(out, value)
		}
	})
	return out
}

// forEachThreshold calls do with each threshold of an expression, and where it stands in it.
func forEachThreshold(expr parser.Expr, do func(value float64, at *parser.Expr)) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		b, is := node.(*parser.BinaryExpr)
		if !is || !b.Op.IsComparisonOperator() || b.Op == parser.EQLC || b.Op == parser.NEQ {
			return nil
		}
		for _, side := range []*parser.Expr{&b.LHS, &b.RHS} {
			if value, constant := evaluateConstant(*side); constant && value != 0 {
				do(value, side)
			}
		}
		return nil
	})
}

// evaluateConstant returns the value of a number, or of a product of numbers.
func evaluateConstant(expr parser.Expr) (float64, bool) {
	switch e := expr.(type) {
	case *parser.NumberLiteral:
		return e.Val, true
	case *parser.ParenExpr:
		return evaluateConstant(e.Expr)
	case *parser.BinaryExpr:
		left, known := evaluateConstant(e.LHS)
		right, both := evaluateConstant(e.RHS)
		if known && both && e.Op == parser.MUL {
			return roundNumber(left * right), true
		}
	}
	return 0, false
}

// roundNumber removes the noise of the last digits.
func roundNumber(n float64) float64 { return math.Round(n*1e9) / 1e9 }

// replaceThreshold returns an expression with another number wherever it compares to one.
func replaceThreshold(text string, present, other float64) (string, error) {
	expr, err := parseExpr(text)
	if err != nil {
		return "", err
	}
	forEachThreshold(expr, func(value float64, at *parser.Expr) {
		if value == present {
			*at = &parser.NumberLiteral{Val: other}
		}
	})
	return expr.String(), nil
}
