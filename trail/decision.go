package trail

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Layer says who holds a VM back.
type Layer string

// The layers that hold a VM back.
const (
	LayerCooldown Layer = "descheduler_cooldown" // the descheduler, after a migration
	LayerBackoff  Layer = "kubevirt_backoff"     // KubeVirt, after a failed migration
)

// Layers lists the layers.
func Layers() []Layer { return layerLabels.values() }

// Verdict says what a decision means for the VM.
type Verdict string

// The verdicts.
const (
	VerdictHolds    Verdict = "holds"    // from here on the VM is held back
	VerdictBlocked  Verdict = "blocked"  // an act met what holds it: it was stopped, or should have been
	VerdictReleased Verdict = "released" // it is held back no more
)

// The reasons of decisions.
const (
	DecidedCompleted  = "migration_completed"   // a migration ended: a cooldown begins
	DecidedAgain      = "computed_anew"         // the descheduler was started, or its policy changed, while it held
	DecidedFailed     = "migration_failed"      // an attempt failed: a backoff begins
	DecidedInProgress = "migration_in_progress" // an act met a running migration
	DecidedCooldown   = "cooldown"              // an act met a cooldown
	DecidedExpired    = "expired"               // the time is over
	DecidedOver       = "over"                  // the evacuation or the VMI ended before the time was over
	DecidedObserved   = "observed_block"        // a counter of the descheduler rose
)

// How a decision is known.
const (
	OriginDerived  = "derived"  // by our model
	OriginObserved = "observed" // by a counter, which names no VM
)

// Decision is one step of what holds a VM back: it begins, is met, or is over. It has every input, so that a reader can
// redo the sum.
type Decision struct {
	ID        FactID    `json:"decision_id"`
	Namespace string    `json:"namespace"`
	VMI       string    `json:"vmi,omitempty"` // empty for observed ones: the counter names no VM
	VMIUID    string    `json:"vmi_uid,omitempty"`
	Node      string    `json:"node,omitempty"` // of the guest at that time
	DecidedAt time.Time `json:"decided_at"`
	Layer     Layer     `json:"layer"`
	Verdict   Verdict   `json:"verdict"`
	Reason    string    `json:"reason"`
	Base      Span      `json:"base_seconds,omitempty"`
	Count     int       `json:"count,omitempty"`             // of completions, of failed attempts, or of observed blocks
	Effective Span      `json:"effective_seconds,omitempty"` // how long it holds
	Until     time.Time `json:"until,omitzero"`
	Cap       Span      `json:"cap_seconds,omitempty"`
	Window    Span      `json:"window_seconds,omitempty"` // in which completions count
	Capped    bool      `json:"capped"`
	Model     string    `json:"model"` // whose rules were followed
	Origin    string    `json:"origin"`
	Inputs    Inputs    `json:"inputs"`
	EventID   *FactID   `json:"event_id,omitempty"` // of the fact that it follows from

	toldAt time.Time // for reading: by the finest clock there is; zero: DecidedAt
}

// Inputs are what a decision was computed from, beyond its own columns.
type Inputs struct {
	Migration            string      `json:"migration,omitempty"`
	MigrationUID         string      `json:"migration_uid,omitempty"`
	StartedAt            time.Time   `json:"started_at,omitzero"`
	EndedAt              time.Time   `json:"ended_at,omitzero"`
	Completions          []time.Time `json:"completions,omitempty"`           // that the descheduler has in its memory
	TrueCount            int         `json:"true_count,omitempty"`            // of completions that really were
	TrueEffective        Span        `json:"true_effective,omitempty"`        // what they would give
	DeschedulerStartedAt time.Time   `json:"descheduler_started_at,omitzero"` // since when its memory goes back
	Failed               []string    `json:"failed,omitempty"`                // the failed migrations that count
	Survivors            int         `json:"survivors,omitempty"`             // finished migrations that still existed
	Finding              string      `json:"finding,omitempty"`               // where memory and history differ
	Requester            string      `json:"requester,omitempty"`             // whose act met it
	RequestID            *FactID     `json:"request_id,omitempty"`            // the act that met it
	Candidates           []string    `json:"candidates,omitempty"`            // VMs that an observed block can be about
	Since                time.Time   `json:"since,omitzero"`                  // from when the blocks were counted
	Target               string      `json:"target,omitempty"`                // whose counter
	ObservedReason       string      `json:"observed_reason,omitempty"`       // the counter's own word
}

// inOrder sorts decisions by their times.
func inOrder(decisions []Decision) []Decision {
	slices.SortStableFunc(decisions, func(a, b Decision) int {
		return cmp.Or(a.DecidedAt.Compare(b.DecidedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return decisions
}

// heldAt returns the decision of a layer that holds a VM back at a time, nil where none does.
func heldAt(decisions []Decision, layer Layer, at time.Time) *Decision {
	var held *Decision
	for i := range decisions {
		d := &decisions[i]
		if d.Layer != layer || d.DecidedAt.After(at) {
			continue
		}
		switch d.Verdict {
		case VerdictHolds:
			held = d
		case VerdictReleased:
			held = nil
		case VerdictBlocked:
		}
	}
	if held != nil && !at.Before(held.Until) {
		return nil
	}
	return held
}

// renderSentence returns a decision; empty where a line would only repeat another.
func (d *Decision) renderSentence() string {
	switch {
	case d.Verdict == VerdictHolds && d.Layer == LayerBackoff:
		return fmt.Sprintf("KubeVirt waits %s before its next attempt, until %s (%s in a row).", formatSpan(time.Duration(d.Effective)), FormatClock(d.Until), formatCountInWords(d.Count, "failure"))
	case d.Reason == DecidedAgain:
		return fmt.Sprintf("The descheduler recomputes the cooldown, as it was started or its policy changed: %s, until %s%s.", formatSpan(time.Duration(d.Effective)), FormatClock(d.Until), d.describeCause())
	case d.Verdict == VerdictHolds:
		return fmt.Sprintf("The descheduler leaves it alone for %s, until %s%s.", formatSpan(time.Duration(d.Effective)), FormatClock(d.Until), d.describeCause())
	case d.Verdict == VerdictBlocked && d.Reason == DecidedInProgress:
		return fmt.Sprintf("By its policy the descheduler should not have asked: migration %s was running.", d.Inputs.Migration)
	case d.Verdict == VerdictBlocked && d.Reason == DecidedCooldown:
		return fmt.Sprintf("By its policy the descheduler should not have asked before %s: the cooldown of %s held.", FormatClock(d.Until), formatSpan(time.Duration(d.Effective)))
	}
	return ""
}

// describeCause says from what a cooldown follows.
func (d *Decision) describeCause() string {
	text := " (after one migration"
	if d.Count > 1 {
		text = fmt.Sprintf(" (%s in %s", FormatCount(d.Count, "migration"), formatBriefDuration(time.Duration(d.Window)))
	}
	if d.Capped {
		text += "; the most it may be"
	}
	if d.Inputs.Finding != "" {
		text += "; " + d.Inputs.Finding
	}
	return text + ")"
}
