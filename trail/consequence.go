package trail

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Likelihood says how sure it is that one move caused another.
type Likelihood string

// The degrees of likelihood.
const (
	Likely   Likelihood = "likely"   // the earlier move brought the node over its threshold, and the later one began while it was over it
	Possible Likelihood = "possible" // only the order in time and the node speak for it: of one of the two the load is not known
)

// causesWithin is how long after an arrival the descheduler may take VMs away because of it: some cycles, and the cooldown of those that came with it.
const causesWithin = 30 * time.Minute

// Consequence ties a move away from a node to an earlier one that had come there and overloaded it, or without need.
type Consequence struct {
	ID           FactID     `json:"consequence_id"`
	At           time.Time  `json:"at"` // when the later one was made
	Namespace    string     `json:"namespace"`
	VMI          string     `json:"vmi"`
	VMIUID       string     `json:"vmi_uid,omitempty"`
	Node         string     `json:"node"`
	MigrationUID string     `json:"migration_uid"`
	CauseUID     string     `json:"cause_uid"`  // of the migration that had come
	CauseNeed    Need       `json:"cause_need"` // whether that was needed itself
	Likelihood   Likelihood `json:"likelihood"`
	Because      string     `json:"because"`
}

// mayCause reports whether a move can be what made the descheduler take VMs from the node that it came to: it was made without need, or brought
// that node over its threshold.
func (m *Migration) mayCause() bool {
	return m.Outcome == OutcomeSucceeded && m.TargetNode != "" && (m.Need == NotNeeded || m.Benefit == Harmed)
}

// findConsequences ties the evictions by the descheduler from the node to what had come there before. A later attempt is no new decision, and what was not needed was
// caused by nothing on the node.
func (n *node) findConsequences() []Consequence {
	var out []Consequence
	for _, m := range n.Migrations {
		if m.Trigger != TriggerDescheduler || m.Attempt > 1 || m.Need == NotNeeded || m.Need == "" {
			continue
		}
		for _, cause := range n.Arrivals {
			since := m.CreatedAt.Sub(cause.bestEndTime().Truncate(time.Second))
			if cause.UID != m.UID && since >= 0 && since <= causesWithin && !n.hadLeft(cause, m.CreatedAt) {
				out = append(out, n.newConsequence(m, cause))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Consequence) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.MigrationUID, b.MigrationUID), cmp.Compare(a.CauseUID, b.CauseUID))
	})
	return out
}

// hadLeft reports whether the guest that a move had brought to the node was gone from there before a time.
func (n *node) hadLeft(m *Migration, at time.Time) bool {
	return slices.ContainsFunc(n.Placements, func(p *Placement) bool { return p.ArrivedBy == m.UID && !p.ToAt.IsZero() && p.ToAt.Before(at) })
}

func (n *node) newConsequence(m, cause *Migration) Consequence {
	c := Consequence{
		ID: hashID("consequence", n.name, m.UID, cause.UID), At: m.CreatedAt, Namespace: m.Namespace, VMI: m.VMI, VMIUID: m.VMIUID, Node: n.name,
		MigrationUID: m.UID, CauseUID: cause.UID, CauseNeed: cause.Need, Likelihood: Possible,
		Because: fmt.Sprintf("a VM had come to %s without need %s before", n.name, formatSpan(m.CreatedAt.Sub(cause.bestEndTime()))),
	}
	if cause.Benefit == Harmed {
		c.Because = fmt.Sprintf("a VM had come to %s %s before: %s", n.name, formatSpan(m.CreatedAt.Sub(cause.bestEndTime())), cause.BenefitBecause)
		if m.Need == Needed {
			c.Likelihood = Likely
		}
	}
	return c
}
