package whatif

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// roundSteps are the durations between which a sweep goes that names no step.
var roundSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 72 * time.Hour, 7 * 24 * time.Hour,
}

// UsualSweeps returns a sweep of each setting that can be swept, as it is written.
func UsualSweeps() []string {
	return []string{
		wordBase + "=30s..1h", wordCap + "=1h..12h", wordWindow + "=12h..72h", wordNodeLimit + "=1..5", wordTotalLimit + "=1..10", wordGiveUp + "=1..5",
	}
}

// Sweep is one setting from here to there: the policies of a trade-off curve.
type Sweep struct {
	Text     string   // as it is written
	Of       string   // the word of the setting
	With     Policy   // what else they have in common
	Policies []Policy // with the setting, in ascending order; two at least
}

// ParseSweep reads SETTING=FROM..TO or SETTING=FROM..TO/STEP, such as base=5m..60m, cap=1h..8h/1h or node-limit=1..5. Without a step
// durations go by round steps, and numbers one by one. Everything else of the policies is as in the one given.
func ParseSweep(text string, other Policy) (Sweep, error) {
	s := Sweep{Text: text, With: other}
	name, span, _ := strings.Cut(text, "=")
	bounds, step, _ := strings.Cut(span, "/")
	from, to, ok := strings.Cut(bounds, "..")
	wrong := fmt.Errorf("sweep %q: expected SETTING=FROM..TO or SETTING=FROM..TO/STEP, such as base=5m..60m, window=12h..72h/12h or give-up-after=1..5", text)
	if !ok {
		return s, wrong
	}
	var values []string
	switch s.Of = name; name {
	case wordBase, wordCap, wordWindow:
		values = expandDurations(from, to, step)
	case wordNodeLimit, wordTotalLimit, wordGiveUp:
		values = expandNumbers(from, to, step)
	default:
		return s, wrong
	}
	if len(values) < 2 || len(values) > MostPolicies {
		return s, fmt.Errorf("sweep %q: expected two values at least, and at most %d, in ascending order", text, MostPolicies)
	}
	for _, value := range values {
		p := other
		if other.Cooldown != nil {
			own := *other.Cooldown
			p.Cooldown = &own
		}
		if err := p.Set(name, value); err != nil {
			return s, fmt.Errorf("sweep %q: %w", text, err)
		}
		if err := p.Validate(); err != nil {
			return s, fmt.Errorf("sweep %q: %w", text, err)
		}
		s.Policies = append(s.Policies, p)
	}
	return s, nil
}

// Value returns what the policy has for a setting that can be swept: seconds, or a number.
func (p Policy) Value(of string) float64 {
	seconds := func(of func(*Cooldown) trail.Span) float64 {
		if p.Cooldown == nil {
			return 0
		}
		return time.Duration(of(p.Cooldown)).Seconds()
	}
	switch of {
	case wordBase:
		return seconds(func(c *Cooldown) trail.Span { return c.Base })
	case wordCap:
		return seconds(func(c *Cooldown) trail.Span { return c.Cap })
	case wordWindow:
		return seconds(func(c *Cooldown) trail.Span { return c.Window })
	case wordNodeLimit:
		return float64(p.NodeLimit)
	case wordTotalLimit:
		return float64(p.TotalLimit)
	case wordGiveUp:
		return float64(p.GiveUpAfter)
	}
	return 0
}

// expandDurations returns the steps between two durations, none where they cannot be read or are too many.
func expandDurations(from, to, step string) []string {
	first, err := time.ParseDuration(from)
	last, errLast := time.ParseDuration(to)
	if err != nil || errLast != nil || first >= last {
		return nil
	}
	if step == "" {
		return expandRoundly(first, last)
	}
	by, _ := time.ParseDuration(step)
	if by = by.Truncate(time.Second); by <= 0 || (last-first)/by >= MostPolicies {
		return nil
	}
	var out []string
	for d := first; d <= last; d += by {
		out = append(out, d.String())
	}
	return out
}

// expandRoundly returns both ends and the round steps between them.
func expandRoundly(first, last time.Duration) []string {
	out := []string{first.String()}
	for _, d := range roundSteps {
		if first < d && d < last {
			out = append(out, d.String())
		}
	}
	return append(out, last.String())
}

// expandNumbers returns the steps between two numbers, none where they cannot be read or are too many.
func expandNumbers(from, to, step string) []string {
	first, err := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	by := 1
	if step != "" {
		by, _ = strconv.Atoi(step)
	}
	if err != nil || errLast != nil || by <= 0 || (last-first)/by >= MostPolicies {
		return nil
	}
	var out []string
	for n := first; n <= last; n += by {
		out = append(out, strconv.Itoa(n))
	}
	return out
}
