package trail

import (
	"cmp"
	"time"
)

// NodeSummary says in numbers how it stands with a node.
type NodeSummary struct {
	Cluster       string    `json:"cluster" db:"cluster"`
	Node          string    `json:"node" db:"node"`
	VMs           int       `json:"vms" db:"vms"`                                  // that run on it now
	Leaving       int       `json:"leaving" db:"leaving"`                          // of its evacuations, those that are open
	Stuck         int       `json:"stuck" db:"stuck"`                              // of these, those with failed attempts
	Loops         int       `json:"loops" db:"loops"`                              // that are open
	DrainingSince time.Time `json:"draining_since,omitzero" db:"draining_since"`   // zero: no drain goes on
	NotReadySince time.Time `json:"not_ready_since,omitzero" db:"not_ready_since"` // zero: nothing says that it is not ready
}

// NodeOrder is an order of nodes.
type NodeOrder string

// The orders of nodes.
const (
	NodesByTrouble NodeOrder = "trouble" // not ready first, then those with the most stuck evacuations, loops and drains, then those with the most VMs
	NodesByName    NodeOrder = "name"
	NodesByVMs     NodeOrder = "vms" // those with the most VMs first
)

// NodeOrders lists the orders of nodes.
func NodeOrders() []NodeOrder { return []NodeOrder{NodesByTrouble, NodesByName, NodesByVMs} }

// NodeQuery asks for nodes.
type NodeQuery struct {
	Cluster string // empty: of all clusters
	Name    string // only those whose names contain this
	Order   NodeOrder
	Limit   int // the first that many
}

// Compare orders two nodes, as the store does.
func (o NodeOrder) Compare(a, b NodeSummary) int {
	byName := cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Cluster, b.Cluster))
	byVMs := cmp.Or(cmp.Compare(b.VMs, a.VMs), byName)
	switch o {
	case NodesByName:
		return byName
	case NodesByTrouble:
		return cmp.Or(
			CompareBools(a.NotReadySince.IsZero(), b.NotReadySince.IsZero()), cmp.Compare(b.Stuck, a.Stuck), cmp.Compare(b.Loops, a.Loops),
			CompareBools(a.DrainingSince.IsZero(), b.DrainingSince.IsZero()), byVMs)
	case NodesByVMs:
	}
	return byVMs
}
