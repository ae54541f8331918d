package backtest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/rewind"
)

// The bounds of a question.
const (
	UsualPeriod  = 7 * 24 * time.Hour // where none is asked for
	UsualStep    = time.Minute
	LeastStep    = 10 * time.Second
	MostStep     = 5 * time.Minute // a series of which nothing is heard for longer has ended
	MostVariants = 32              // of a rule
	MostDays     = 31              // of a period that is asked for over HTTP
	mostSteps    = int(UsualPeriod / LeastStep)
	mostGaps     = 20 // that are named
)

// Question asks what would have come of alerts in a period of one cluster.
type Question struct {
	Cluster          string          // empty: the only one
	Since            time.Time       // zero: UsualPeriod before Until
	Until            time.Time       // zero: now or, where the cluster is not watched any more, when it was last seen
	Rules            []string        // names of alerts; none: all
	Thresholds       []Change        // that are tried in place of half and twice those that are
	For              []time.Duration // that are tried in place of half and twice that which is
	Step             time.Duration   // between two samples, and two evaluations; zero: UsualStep
	EvacuationTarget float64         // of alerts.Options; zero: that of alerts.DefaultOptions

	Progress func(done, total int) // is called now and then with how far the replay is; may be nil
}

// Answer is what would have come of alerts in a cluster.
type Answer struct {
	Cluster     string      `json:"cluster"`
	NotObserved []trail.Gap `json:"not_observed"` // in the period: alerts would have known less
	Report
}

// Source is what an answer is made of. A history is that of a whole cluster: a source has none for a caller who may not
// see all of it.
type Source interface {
	OnlyCluster(ctx context.Context, asked string) (string, error)
	LastSeen(ctx context.Context, cluster string, now time.Time) (time.Time, error)
	Rewind(ctx context.Context, cluster string, from, to time.Time) (*rewind.History, error)
	Unobserved(ctx context.Context, cluster string, from, to time.Time, most int) ([]trail.Gap, error)
}

// Validate fills in what is not asked for, but the period. The error says what is wrong with the rest.
func (q *Question) Validate() error {
	_, err := q.validate()
	return err
}

// validate is Validate; it returns how long before the period the samples have to begin, too.
func (q *Question) validate() (reach time.Duration, err error) {
	q.Step = cmp.Or(q.Step, UsualStep)
	q.EvacuationTarget = cmp.Or(q.EvacuationTarget, alerts.DefaultOptions().EvacuationTarget)
	switch {
	case q.Step < LeastStep || q.Step > MostStep:
		return 0, fmt.Errorf("step %s: expected %s to %s", model.Duration(q.Step), model.Duration(LeastStep),
			model.Duration(MostStep))
	case q.EvacuationTarget < alerts.LowestTarget || q.EvacuationTarget > alerts.HighestTarget:
		return 0, fmt.Errorf("evacuation-target %v: expected %v to %v", q.EvacuationTarget, alerts.LowestTarget,
			alerts.HighestTarget)
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return 0, fmt.Errorf("since %s: expected a time before until %s", trail.FormatClock(q.Since),
			trail.FormatClock(q.Until))
	case len(q.Thresholds) > 0 && len(q.Rules) != 1:
		return 0, fmt.Errorf("threshold: say of which alert, with one rule")
	}
	if n := (1 + len(q.Thresholds)) * (1 + len(q.For)); n > MostVariants {
		return 0, fmt.Errorf("threshold, for: %d combinations, with those of today; at most %d can be tried at once",
			n, MostVariants)
	}
	o := q.newOptions()
	return o.check()
}

// Bound is Validate for questions of others: the period and its steps are bounded, too. Now is the end of one that
// names none.
func (q *Question) Bound(now time.Time) error {
	if err := q.Validate(); err != nil {
		return err
	}
	until, length := q.Until, UsualPeriod
	if until.IsZero() {
		until = now
	}
	if !q.Since.IsZero() {
		length = until.Sub(q.Since)
	}
	switch {
	case length > MostDays*24*time.Hour:
		return fmt.Errorf("since %s, until %s: at most %d days can be asked about at once", trail.FormatClock(q.Since),
			trail.FormatClock(until), MostDays)
	case int(length/q.Step) > mostSteps:
		return fmt.Errorf("step %s: expected %s or more for so long a time", model.Duration(q.Step),
			model.Duration((length/time.Duration(mostSteps)).Truncate(time.Second)+time.Second))
	}
	return nil
}

func (q *Question) newOptions() Options {
	target := alerts.DefaultOptions()
	target.EvacuationTarget = q.EvacuationTarget
	return Options{
		Groups: alerts.Groups(target), Rules: q.Rules, Step: q.Step, Thresholds: q.Thresholds, For: q.For,
		Progress: q.Progress,
	}
}

// Ask answers a question from what a source has. Errors: those of Validate, trail.ErrNotFound where nothing was
// recorded in the period, *trail.AmbiguousError where there are several clusters and none is named, and that of the
// context.
func (q Question) Ask(ctx context.Context, s Source, now time.Time) (Answer, error) {
	a, err := q.ask(ctx, s, now)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("backtest: %w", ctx.Err())
	}
	return a, err
}

func (q Question) ask(ctx context.Context, s Source, now time.Time) (a Answer, err error) {
	reach, err := q.validate()
	if err != nil {
		return a, err
	}
	if a.Cluster, err = s.OnlyCluster(ctx, q.Cluster); err != nil {
		return a, err
	}
	if q.Until.IsZero() {
		if q.Until, err = s.LastSeen(ctx, a.Cluster, now); err != nil {
			return a, err
		}
	}
	if q.Since.IsZero() {
		q.Since = q.Until.Add(-UsualPeriod)
	}
	if !q.Since.Before(q.Until) {
		return a, fmt.Errorf("backtest: %w: %s is known up to %s, which is before since", trail.ErrNotFound, a.Cluster,
			trail.FormatClock(q.Until))
	}
	h, err := s.Rewind(ctx, a.Cluster, q.Since.Add(-reach), q.Until)
	if err != nil {
		return a, err
	}
	if h.RecordedFrom.IsZero() {
		return a, fmt.Errorf("backtest: %w: nothing was recorded of %s from %s to %s", trail.ErrNotFound, a.Cluster,
			trail.FormatClock(q.Since.Add(-reach)), trail.FormatClock(q.Until))
	}
	report, err := Run(ctx, h, q.Since, q.newOptions())
	if err != nil {
		return a, err
	}
	a.Report = *report
	gaps, err := s.Unobserved(ctx, a.Cluster, report.Since, report.Until, mostGaps)
	a.NotObserved = append([]trail.Gap{}, gaps...)
	return a, err
}

// ParseRules reads names of alerts, with commas between them.
func ParseRules(text string) ([]string, error) { return parseList(text, parseRule) }

func parseRule(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("rule %q: expected the name of an alert", text)
	}
	return text, nil
}

// ParseThresholds reads OTHER or PRESENT=OTHER, with commas between them.
func ParseThresholds(text string) ([]Change, error) { return parseList(text, parseThreshold) }

func parseThreshold(text string) (c Change, err error) {
	present, other, both := strings.Cut(text, "=")
	if !both {
		present, other = "", text
	}
	wrong := fmt.Errorf("threshold %q: expected a number, or PRESENT=OTHER such as 2100=3600", text)
	if both {
		if c.Present, err = parseNumber(present); err != nil || c.Present == 0 {
			return c, wrong
		}
	}
	if c.Other, err = parseNumber(other); err != nil {
		return c, wrong
	}
	return c, nil
}

// parseNumber reads a number that is one: infinity and NaN are no thresholds.
func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(n, 0) || math.IsNaN(n)) {
		err = strconv.ErrRange
	}
	return n, err
}

// ParseFor reads durations for which an expression has to hold, with commas between them.
func ParseFor(text string) ([]time.Duration, error) {
	return parseList(text, func(one string) (time.Duration, error) { return parseSpan("for", one) })
}

// ParseStep reads the time between two samples.
func ParseStep(text string) (time.Duration, error) { return parseSpan("step", text) }

// parseSpan reads a duration as rules have them; 0 is one, too.
func parseSpan(name, text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s %q: expected a duration such as 30s, 15m or 1h", name, text)
	}
	return time.Duration(d), nil
}

// parseList reads what commas part.
func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for part := range strings.SplitSeq(text, ",") {
		one, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// String writes a change as ParseThresholds reads it.
func (c Change) String() string {
	if c.Present == 0 {
		return formatNumber(c.Other)
	}
	return formatNumber(c.Present) + "=" + formatNumber(c.Other)
}
