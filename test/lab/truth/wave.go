package truth

import (
	"maps"
	"slices"
	"time"
)

// Wave is what became of the VMs that an upgrade of KubeVirt left outdated, up to now: their guests run in an older virt-launcher than they would be
// started in. A scenario has one at most.
type Wave struct {
	From          string `json:"from"`           // version of KubeVirt before; empty: it did not change
	To            string `json:"to"`             // version of KubeVirt
	VMs           int    `json:"vms"`            // VMIs that were outdated
	Left          int    `json:"left"`           // that are outdated
	Staying       int    `json:"staying"`        // of these: that cannot be live-migrated
	Moved         int    `json:"moved"`          // that are outdated no more since a live migration
	ShutDown      int    `json:"shut_down"`      // that ended outdated
	Failed        int    `json:"failed"`         // migrations by which KubeVirt tried to update VMs
	MovedAgain    int    `json:"moved_again"`    // VMIs with more than one migration that succeeded
	MostAtOnce    int    `json:"most_at_once"`   // migrations by which KubeVirt tried to update VMs that were under way at once
	ParallelLimit int    `json:"parallel_limit"` // of migrations in the cluster
}

// guest is what the objects show of a VMI that was outdated.
type guest struct {
	outdated, ended, fixed bool
}

// kubeVirt is what the object KubeVirt shows.
type kubeVirt struct {
	versions []string // in their order
	parallel int
}

// countWave counts what became of the VMIs that were outdated, by their UIDs; none where no VMI was.
func countWave(guests map[string]*guest, migrations []Migration, of kubeVirt) []Wave {
	if len(guests) == 0 {
		return nil
	}
	w := Wave{VMs: len(guests), ParallelLimit: of.parallel}
	if n := len(of.versions); n > 0 {
		w.To = of.versions[n-1]
	}
	if len(of.versions) > 1 {
		w.From = of.versions[len(of.versions)-2]
	}
	for _, g := range guests {
		switch {
		case g.outdated && g.fixed:
			w.Left, w.Staying = w.Left+1, w.Staying+1
		case g.outdated:
			w.Left++
		case g.ended:
			w.ShutDown++
		default:
			w.Moved++
		}
	}
	moves, changes := map[string]int{}, map[time.Time]int{}
	for _, m := range migrations {
		if m.Phase == "Succeeded" {
			moves[m.VMI]++
		}
		if !m.Update {
			continue
		}
		if m.Phase == "Failed" {
			w.Failed++
		}
		if at, began := m.Phases["Scheduling"]; began {
			changes[at]++
			for _, phase := range []string{"Succeeded", "Failed"} {
				if at, ended := m.Phases[phase]; ended {
					changes[at]--
				}
			}
		}
	}
	for _, n := range moves {
		if n > 1 {
			w.MovedAgain++
		}
	}
	busy := 0
	for _, at := range slices.SortedFunc(maps.Keys(changes), time.Time.Compare) {
		busy += changes[at]
		w.MostAtOnce = max(w.MostAtOnce, busy)
	}
	return []Wave{w}
}
