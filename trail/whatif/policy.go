package whatif

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Policy is what would have been in force. What it leaves out stays as it was at each moment of the history: the zero Policy is the
// recorded one.
type Policy struct {
	Cooldown    *Cooldown `json:"cooldown,omitempty"`      // nil: as recorded
	NodeLimit   int       `json:"node_limit,omitempty"`    // evictions of the descheduler under way from one node; 0: as recorded
	TotalLimit  int       `json:"total_limit,omitempty"`   // the same from all nodes; 0: as recorded
	KeepMark    bool      `json:"keep_mark,omitempty"`     // the in-progress mark stays on the pod until the evacuation ends
	TryOnce     bool      `json:"try_once,omitempty"`      // KubeVirt tries an eviction of the descheduler once
	GiveUpAfter int       `json:"give_up_after,omitempty"` // attempts after which KubeVirt gives up any evacuation; 0: never
}

// Cooldown is how the descheduler would hold back a VM that was migrated. A setting that is zero is as recorded at the time, else the
// plugin's default.
type Cooldown struct {
	Off    bool       `json:"off,omitempty"`
	Base   trail.Span `json:"base_seconds,omitempty"`
	Cap    trail.Span `json:"cap_seconds,omitempty"`
	Window trail.Span `json:"window_seconds,omitempty"`
}

// The words of a policy. Those with a value are written word=value.
const (
	WordRecorded   = "recorded"
	wordCooldown   = "cooldown" // on or off
	wordBase       = "base"
	wordCap        = "cap"
	wordWindow     = "window"
	wordNodeLimit  = "node-limit"
	wordTotalLimit = "total-limit"
	wordKeepMark   = "keep-mark"
	wordTryOnce    = "try-once"
	wordGiveUp     = "give-up-after"
)

// The values of the word cooldown.
const (
	cooldownOn  = "on"
	cooldownOff = "off"
)

// Words lists how policies are written, for help and completion.
func Words() []string {
	return []string{
		WordRecorded, wordKeepMark, wordTryOnce, wordGiveUp + "=N", wordCooldown + "=off", wordCooldown + "=on", wordBase + "=15m", wordCap + "=6h",
		wordWindow + "=48h", wordNodeLimit + "=N", wordTotalLimit + "=N",
	}
}

// Proposals returns those of the discussion in KubeVirt how the dual retry loop could be ended.
func Proposals() []Policy {
	return []Policy{{KeepMark: true}, {TryOnce: true}, {GiveUpAfter: 3}}
}

// Names writes policies one after the other.
func Names(policies []Policy) string {
	var out []string
	for _, p := range policies {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

// ParsePolicies reads policies as ParsePolicy does; none makes none.
func ParsePolicies(texts []string) ([]Policy, error) {
	var out []Policy
	for _, text := range texts {
		p, err := ParsePolicy(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// ParsePolicy reads a policy: words, with spaces or commas between them, such as "base=5m cap=1h keep-mark". The error says what was
// expected.
func ParsePolicy(text string) (Policy, error) {
	var p Policy
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 {
		return p, fmt.Errorf("policy %q: expected words such as %s", text, strings.Join(Words(), ", "))
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if err := p.Set(name, value); err != nil {
			return p, fmt.Errorf("policy %q: %w", text, err)
		}
	}
	return p, p.Validate()
}

// Set states one setting by its word; value is empty for words without one.
func (p *Policy) Set(name, value string) (err error) {
	switch name {
	case WordRecorded, wordKeepMark, wordTryOnce:
		if value != "" {
			return fmt.Errorf("%s: takes no value", name)
		}
		p.KeepMark, p.TryOnce = p.KeepMark || name == wordKeepMark, p.TryOnce || name == wordTryOnce
	case wordCooldown:
		if value != cooldownOn && value != cooldownOff {
			return fmt.Errorf("%s=%s: expected on or off, or %s=15m, %s=6h, %s=48h", name, value, wordBase, wordCap, wordWindow)
		}
		p.ensureCooldown().Off = value == cooldownOff
	case wordBase:
		p.ensureCooldown().Base, err = parsePositiveDuration(name, value)
	case wordCap:
		p.ensureCooldown().Cap, err = parsePositiveDuration(name, value)
	case wordWindow:
		p.ensureCooldown().Window, err = parsePositiveDuration(name, value)
	case wordNodeLimit:
		p.NodeLimit, err = atLeastOne(name, value)
	case wordTotalLimit:
		p.TotalLimit, err = atLeastOne(name, value)
	case wordGiveUp:
		p.GiveUpAfter, err = atLeastOne(name, value)
	default:
		return fmt.Errorf("%q: expected one of %s", name, strings.Join(Words(), ", "))
	}
	return err
}

// ensureCooldown returns the cooldown to set.
func (p *Policy) ensureCooldown() *Cooldown {
	p.Cooldown = cmp.Or(p.Cooldown, &Cooldown{})
	return p.Cooldown
}

func parsePositiveDuration(name, value string) (trail.Span, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("%s=%s: expected a duration of a second or more, such as 5m", name, value)
	}
	return trail.Span(d.Round(time.Second)), nil
}

func atLeastOne(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1e6 {
		return 0, fmt.Errorf("%s=%s: expected a whole number from 1 on", name, value)
	}
	return n, nil
}

// Validate says what makes the settings contradict each other.
func (p Policy) Validate() error {
	c := p.Cooldown
	switch {
	case c == nil:
		return nil
	case c.Off && (c.Base != 0 || c.Cap != 0 || c.Window != 0):
		return fmt.Errorf("policy %q: a cooldown that is off has no base, cap or window", p)
	case c.Base != 0 && c.Cap != 0:
		return trail.CooldownSettings{Base: time.Duration(c.Base), Max: time.Duration(c.Cap)}.Validate()
	}
	return nil
}

// String writes the policy as ParsePolicy reads it.
func (p Policy) String() string {
	var words []string
	add := func(set bool, format string, args ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	if c := p.Cooldown; c != nil {
		add(c.Off, "%s=%s", wordCooldown, cooldownOff)
		add(*c == Cooldown{}, "%s=%s", wordCooldown, cooldownOn)
		add(c.Base != 0, "%s=%s", wordBase, formatDuration(c.Base))
		add(c.Cap != 0, "%s=%s", wordCap, formatDuration(c.Cap))
		add(c.Window != 0, "%s=%s", wordWindow, formatDuration(c.Window))
	}
	add(p.NodeLimit != 0, "%s=%d", wordNodeLimit, p.NodeLimit)
	add(p.TotalLimit != 0, "%s=%d", wordTotalLimit, p.TotalLimit)
	add(p.KeepMark, wordKeepMark)
	add(p.TryOnce, wordTryOnce)
	add(p.GiveUpAfter != 0, "%s=%d", wordGiveUp, p.GiveUpAfter)
	if len(words) == 0 {
		return WordRecorded
	}
	return strings.Join(words, " ")
}

// formatDuration writes a duration without the units that are zero at its end.
func formatDuration(s trail.Span) string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
