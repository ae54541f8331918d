package trail

import (
	"cmp"
	"slices"
	"strings"
)

// FoundKind says what was found by a search.
type FoundKind string

// What can be found.
const (
	FoundVM        FoundKind = "vm"
	FoundNode      FoundKind = "node"
	FoundMigration FoundKind = "migration"
)

// FoundKinds lists what can be found.
func FoundKinds() []FoundKind { return foundLabels.values() }

// The bounds of a search.
const (
	MostFound   = 50    // of what it returns
	MostCounted = 1_000 // of the migrations that begin so, of which there may be millions
)

// Found is something that answers a search.
type Found struct {
	Cluster   string    `json:"cluster" db:"cluster"`
	Kind      FoundKind `json:"kind" db:"kind"`
	Namespace string    `json:"namespace,omitempty" db:"namespace"` // empty for a node
	Name      string    `json:"name" db:"name"`
	VMI       string    `json:"vmi,omitempty" db:"vmi"`     // the VM that a migration moves, in its namespace; else empty
	UID       string    `json:"uid,omitempty" db:"uid"`     // of a migration; of a VMI only where the search named it
	Node      string    `json:"node,omitempty" db:"node"`   // on which a VM runs now; empty where it does not run
	State     VMState   `json:"state,omitempty" db:"state"` // of a VM that runs now; else empty
}

// SortFound sorts what was found for a text, as the store does: what is named exactly first, then what begins so, then the rest.
func SortFound(found []Found, text string) {
	text = strings.ToLower(strings.TrimSpace(text))
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.rank(text), b.rank(text)), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.UID, b.UID))
	})
}

// rank says how well something answers a search; less is better.
func (f Found) rank(text string) int {
	within := f.Name
	if f.Kind == FoundVM && strings.Contains(text, "/") {
		within = f.Namespace + "/" + f.Name
	}
	switch {
	case text == f.Name || text == f.UID || f.Kind == FoundVM && text == f.Namespace+"/"+f.Name:
		return 0
	case strings.HasPrefix(within, text):
		return 1
	}
	return 2
}
