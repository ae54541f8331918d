package whatif

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// ChangeKind says what is different.
type ChangeKind string

// What can be different.
const (
	ChangeHeldBack ChangeKind = "held_back" // an eviction would not have come when it did
	ChangeGaveUp   ChangeKind = "gave_up"   // KubeVirt would have given an evacuation up
	ChangeSooner   ChangeKind = "sooner"    // an eviction would have come that was kept back
)

// Rule says by what something would have been held back.
type Rule string

// The rules of the descheduler.
const (
	RuleInProgress Rule = "migration_in_progress"
	RuleCooldown   Rule = "cooldown"
	RuleNodeSlots  Rule = "node_limit"
	RuleTotalSlots Rule = "total_limit"
)

// Change is one difference to the recorded history.
type Change struct {
	Kind       ChangeKind `json:"kind"`
	At         time.Time  `json:"at"` // when the eviction was asked; of what is given up: when; of what comes sooner: when
	Namespace  string     `json:"namespace"`
	VMI        string     `json:"vmi"`
	VMIUID     string     `json:"vmi_uid"`
	Node       string     `json:"node"`                 // that the VM is on
	Rule       Rule       `json:"rule,omitempty"`       // of what is held back
	Until      time.Time  `json:"until,omitzero"`       // when nothing would have been in the way any more; zero where that is not within the period
	AskedAgain time.Time  `json:"asked_again,omitzero"` // when the descheduler asked for it, and might have it; zero where it did not
	Migrations int        `json:"migrations_saved"`
	Failed     int        `json:"failed_attempts_saved"`
	Stays      bool       `json:"stays"`                // it moved, and would not have then
	LeftAt     time.Time  `json:"left_at,omitzero"`     // when it moved; zero where it did not, or it is not known when
	HotSeenAt  time.Time  `json:"hot_seen_at,omitzero"` // when the descheduler last asked for a VM of the node after that; zero where it did not
	Sentence   string     `json:"sentence"`

	counted bool // it is counted and reported
	due     bool // it is to be reported when the attempts are over
	settled bool // it was reported
}

func (c *Change) formatVM() string { return c.Namespace + "/" + c.VMI }

// setSentence writes the sentence.
func (c *Change) setSentence() {
	switch c.Kind {
	case ChangeSooner:
		c.Sentence = fmt.Sprintf("%s could have been evicted from %s at %s: the recorded cooldown kept it there.", c.formatVM(), c.Node, trail.FormatClock(c.At))
		return
	case ChangeGaveUp:
		c.Sentence = fmt.Sprintf("KubeVirt would have given up moving %s away from %s at %s", c.formatVM(), c.Node, trail.FormatClock(c.At))
	case ChangeHeldBack:
		c.Sentence = fmt.Sprintf("The descheduler would not have evicted %s from %s at %s: %s", c.formatVM(), c.Node, trail.FormatClock(c.At), c.explainRule())
	}
	c.Sentence += c.countSaved()
	if c.Stays {
		c.Sentence += ", and it would have stayed there"
		if !c.LeftAt.IsZero() {
			c.Sentence += fmt.Sprintf(" instead of leaving at %s", trail.FormatClock(c.LeftAt))
		}
		if !c.HotSeenAt.IsZero() {
			c.Sentence += fmt.Sprintf("; the node was last seen hot at %s", trail.FormatClock(c.HotSeenAt))
		}
	}
	if !c.AskedAgain.IsZero() {
		c.Sentence += fmt.Sprintf("; it was asked for again at %s", trail.FormatClock(c.AskedAgain))
	}
	c.Sentence += "."
}

// countSaved says how many migrations would not have happened, and how many of them failed; nothing where none is saved.
func (c *Change) countSaved() string {
	if c.Migrations == 0 {
		return ""
	}
	text := "; " + formatPlural(c.Migrations, "fewer migration")
	switch {
	case c.Failed == 0:
		return text
	case c.Migrations == 1:
		return text + ", which failed"
	case c.Failed == c.Migrations:
		return text + ", all of which failed"
	}
	return text + fmt.Sprintf(", %d of which failed", c.Failed)
}

// explainRule says what is in the way, and until when.
func (c *Change) explainRule() string {
	why := map[Rule]string{
		RuleInProgress: "a migration of it was running", RuleCooldown: "its cooldown would have held",
		RuleNodeSlots: "the slots of the node would have been taken", RuleTotalSlots: "all slots would have been taken",
	}[c.Rule]
	if c.Until.IsZero() {
		return why + " to the end of the period"
	}
	return fmt.Sprintf("%s for %s more", why, c.Until.Sub(c.At).Round(time.Second))
}

func formatPlural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// computeWait is how long what is held back would have waited: until nothing was in the way, or the end of the period.
func (c *Change) computeWait(end time.Time) trail.Span {
	until := c.Until
	if until.IsZero() {
		until = end
	}
	return trail.Span(max(until.Sub(c.At), 0))
}
