package forecast

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Path says what an eviction does to a guest.
type Path string

// The paths of a guest.
const (
	Moves     Path = "moves"      // KubeVirt moves it
	ShutsDown Path = "shuts_down" // its pod is deleted, and its memory is lost
	Stays     Path = "stays"      // as things are it does not leave
)

// Paths lists the paths of a guest.
func Paths() []Path { return []Path{Moves, ShutsDown, Stays} }

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

// path returns what an eviction does to the guest, and why where that is not to move it.
func (g *Guest) path() (Path, string) {
	switch {
	case !g.MovingSince.IsZero():
		return Moves, ""
	case g.Strategy == trail.StrategyExternal:
		return Stays, "its eviction strategy is External: its owner must move it"
	case g.Outlook == trail.OutlookNever || g.Outlook == trail.OutlookNotUntil:
		return Stays, g.OutlookBecause
	case !trail.AsksToBeMoved(g.Strategy):
		return ShutsDown, "its eviction strategy " + trail.FormatStrategy(g.Strategy) + " does not ask to be moved"
	case g.NotMigratable != "" && g.Strategy == trail.StrategyIfPossible:
		return ShutsDown, "it cannot be live-migrated: " + g.NotMigratable
	case g.NotMigratable != "":
		return Stays, "it cannot be live-migrated, and its eviction is refused: " + g.NotMigratable
	case !g.RefusedAt.IsZero():
		return Stays, fmt.Sprintf("a PodDisruptionBudget forbade it at %s: %s", trail.FormatClock(g.RefusedAt), g.RefusedText)
	}
	return Moves, ""
}
