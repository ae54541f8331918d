package backtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/trail/rewind"
)

// Options say what is tried.
type Options struct {
	Groups     []alerts.Group
	Rules      []string        // names of alerts; none: all
	Step       time.Duration   // between two samples, and two evaluations
	Thresholds []Change        // in place of those that are; Present 0: the only one
	For        []time.Duration // in place of that which is
	Progress   func(done, total int)
}

// Report is what would have come of alerts in a period.
type Report struct {
	Since        time.Time      `json:"since"`
	Until        time.Time      `json:"until"`
	StepSeconds  float64        `json:"step_seconds"`
	Rules        []*RuleReport  `json:"rules"`
	NotInHistory []NotInHistory `json:"not_in_history"`
}

// RuleReport is what would have come of one alert.
type RuleReport struct {
	Alert    string     `json:"alert"`
	Severity string     `json:"severity"`
	Expr     string     `json:"expr"`
	For      string     `json:"for"`
	Variants []*Variant `json:"variants"` // the first is the rule as it is
	Firings  []Firing   `json:"firings"`  // of the first, in the order of their times
}

// NotInHistory is an alert of which a history cannot say whether it would have fired.
type NotInHistory struct {
	Alert    string   `json:"alert"`
	Severity string   `json:"severity"`
	Reads    []string `json:"reads"` // metrics
	Reason   string   `json:"reason"`
}

// check returns how long before the period the samples have to begin for the rules that are asked for. Errors:
// *RuleError, *ThresholdError.
func (o *Options) check() (reach time.Duration, err error) {
	p, _, err := o.newProgram()
	if err != nil {
		return 0, err
	}
	for _, r := range p.alerting {
		if _, err := o.newVariants(r); err != nil {
			return 0, err
		}
	}
	return p.reach, nil
}

// RuleError is a name that no alert has.
type RuleError struct {
	Name  string
	There []string // the names that there are
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("rule: no alert is named %q; there are: %s", e.Name, strings.Join(e.There, ", "))
}

func (o *Options) newProgram() (program, []NotInHistory, error) {
	recording, alerting, err := parseRules(o.Groups)
	if err != nil {
		return program{}, nil, err
	}
	for _, name := range o.Rules {
		if !slices.ContainsFunc(alerting, func(r rule) bool { return r.Alert == name }) {
			return program{}, nil, &RuleError{name, alerts.ListNames(o.Groups)}
		}
	}
	p, missing := newProgram(recording, alerting, o.Rules)
	return p, missing, nil
}

// stepsTogether is how many steps are evaluated at once: what Prometheus' engine holds grows with them.
const stepsTogether = 240

// mostSamples bounds what the engine holds of one query.
const mostSamples = 100_000_000

// Run replays a history and evaluates alerts over it from a time on; what comes before fills their windows. Errors:
// *RuleError, *ThresholdError; where the context is over, that of the context.
func Run(ctx context.Context, h *rewind.History, since time.Time, o Options) (*Report, error) {
	p, missing, err := o.newProgram()
	if err != nil {
		return nil, err
	}
	since = trimHistory(h, since, o.Step)
	report := &Report{
		Since: since, Until: h.To, StepSeconds: o.Step.Seconds(), Rules: []*RuleReport{},
		NotInHistory: append([]NotInHistory{}, missing...),
	}
	b := &backtest{
		Options: o, program: p, since: since, data: newDatabase(h.From.UnixMilli(), o.Step.Milliseconds()),
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: mostSamples, Timeout: time.Hour,
			LookbackDelta: 5 * time.Minute}),
	}
	b.sampler = newSampler(h, p.metrics, b.data)
	for _, r := range p.alerting {
		variants, err := o.newVariants(r)
		if err != nil {
			return nil, err
		}
		report.Rules = append(report.Rules, &RuleReport{
			Alert: r.Alert, Severity: r.Labels[labelSeverity], Expr: r.Expr, For: model.Duration(r.hold).String(),
			Variants: variants,
		})
		its := make([]*ruling, len(variants))
		for i, v := range variants {
			its[i] = newRuling(v.For, r.keep)
		}
		b.rulings = append(b.rulings, its)
	}
	if err := b.run(ctx, int(h.To.Sub(h.From)/o.Step), report.Rules); err != nil {
		return nil, cmp.Or(ctx.Err(), err) // the engine has errors of its own for that
	}
	causes := findCauses(h)
	for i, r := range report.Rules {
		for k, v := range r.Variants {
			v.sum(b.rulings[i][k].finish(), causes, h.To)
		}
		r.Firings = r.Variants[0].Firings
	}
	return report, nil
}

// trimHistory has a period begin when the first fact was observed, on the same steps, and returns from when on it is
// reported.
func trimHistory(h *rewind.History, since time.Time, step time.Duration) time.Time {
	if unseen := h.RecordedFrom.Sub(h.From); unseen > 0 {
		h.From = h.From.Add(unseen.Truncate(step))
	}
	if since.Before(h.From) {
		return h.From
	}
	return since
}

// backtest is one run.
type backtest struct {
	Options
	program program
	since   time.Time
	data    *database
	sampler *sampler
	engine  *promql.Engine
	rulings [][]*ruling // by rule and variant
}

// run takes samples and evaluates rules, some steps at a time.
func (b *backtest) run(ctx context.Context, last int, rules []*RuleReport) error {
	for first := 0; first <= last; first += stepsTogether {
		until := min(first+stepsTogether-1, last)
		for step := first; step <= until; step++ {
			if err := b.sampler.takeSample(step); err != nil {
				return err
			}
		}
		if err := b.record(ctx, first, until); err != nil {
			return err
		}
		if err := b.evaluateAlerts(ctx, first, until, rules); err != nil {
			return err
		}
		if b.Progress != nil {
			b.Progress(until+1, last+1)
		}
	}
	return nil
}

// record evaluates the recording rules, each over all steps before the next: none of them reads a later one.
func (b *backtest) record(ctx context.Context, first, last int) error {
	for _, r := range b.program.recording {
		values, err := b.query(ctx, r.Expr, first, last)
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.Record, err)
		}
		b.data.write(r.Record, values, first, last)
	}
	return nil
}

func (b *backtest) evaluateAlerts(ctx context.Context, first, last int, rules []*RuleReport) error {
	for first <= last && b.data.timeOf(first) < b.since.UnixMilli() { // windows are filled
		first++
	}
	if first > last {
		return nil
	}
	var steps []time.Time
	for step := first; step <= last; step++ {
		steps = append(steps, time.UnixMilli(b.data.timeOf(step)).UTC())
	}
	for i, r := range rules {
		values := map[string]promql.Matrix{} // by expression: variants differ in `for` alone, too
		for k, v := range r.Variants {
			found, known := values[v.expr]
			if !known {
				var err error
				if found, err = b.query(ctx, v.expr, first, last); err != nil {
					return fmt.Errorf("rule %s: %w", r.Alert, err)
				}
				values[v.expr] = found
			}
			b.rulings[i][k].follow(found, steps)
		}
	}
	return nil
}

// query evaluates an expression at some steps.
func (b *backtest) query(ctx context.Context, expr string, first, last int) (promql.Matrix, error) {
	from, to := time.UnixMilli(b.data.timeOf(first)), time.UnixMilli(b.data.timeOf(last))
	q, err := b.engine.NewRangeQuery(ctx, b.data, nil, expr, from, to, b.Step)
	if err != nil {
		return nil, err
	}
	result := q.Exec(ctx)
	matrix, err := result.Matrix()
	out := make(promql.Matrix, len(matrix))
	for i, s := range matrix { // closing the query takes its memory back
		out[i] = promql.Series{Metric: s.Metric, Floats: slices.Clone(s.Floats)}
	}
	q.Close()
	return out, err
}

// sum counts the firings of a variant, and finds what stood beside them.
func (v *Variant) sum(firings []Firing, causes []Cause, until time.Time) {
	slices.SortFunc(firings, func(a, b Firing) int {
		return cmp.Or(a.FiredAt.Compare(b.FiredAt), cmp.Compare(formatLabels(a.Labels), formatLabels(b.Labels)))
	})
	v.Firings, v.Count = append([]Firing{}, firings...), len(firings)
	for i := range v.Firings {
		f := &v.Firings[i]
		f.addCauses(causes, until)
		v.FiringFor += f.EndOr(until).Sub(f.FiredAt).Seconds()
		if len(f.Causes) > 0 {
			v.WithCause++
		} else {
			v.WithoutAny++
		}
		if f.EndedAt.IsZero() {
			v.StillFiring++
		}
	}
}
