package forecast

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Guest is a VM that runs on the node.
type Guest struct {
	Namespace, VMI, VMIUID string

	Strategy      string // spec.evictionStrategy
	NotMigratable string // why it cannot be live-migrated; empty where it can

	// How it stands with its evacuation, if one is open.
	Marked         bool
	Failed         int           // attempts of it that failed
	RetryAt        time.Time     // before which KubeVirt makes no next attempt; zero where it waits for none
	Outlook        trail.Outlook // whether it can succeed; empty where nothing is in its way
	OutlookBecause string
	MovingSince    time.Time // when its migration that is under way got its target pod; zero where none is

	RefusedAt   time.Time // when a PodDisruptionBudget last forbade to evict it, if that was the last answer; else zero
	RefusedText string
}

// effect returns what a drain does to the guest, and why where that is not to move it.
func (g *Guest) effect() (trail.DrainEffect, string) {
	switch {
	case !g.MovingSince.IsZero():
		return trail.DrainMoves, ""
	case g.Strategy == trail.StrategyExternal:
		return trail.DrainStays, "its eviction strategy is External: its owner must move it"
	case g.Outlook == trail.OutlookNever || g.Outlook == trail.OutlookNotUntil:
		return trail.DrainStays, g.OutlookBecause
	case !trail.AsksToBeMoved(g.Strategy):
		return trail.DrainShutsDown, "its eviction strategy " + trail.FormatStrategy(g.Strategy) + " does not ask to be moved"
	case g.NotMigratable != "" && g.Strategy == trail.StrategyIfPossible:
		return trail.DrainShutsDown, "it cannot be live-migrated: " + g.NotMigratable
	case g.NotMigratable != "":
		return trail.DrainStays, "it cannot be live-migrated, and its eviction is refused: " + g.NotMigratable
	case !g.RefusedAt.IsZero():
		return trail.DrainStays, fmt.Sprintf("a PodDisruptionBudget forbade it at %s: %s", trail.FormatClock(g.RefusedAt), g.RefusedText)
	}
	return trail.DrainMoves, ""
}
