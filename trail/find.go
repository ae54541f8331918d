package trail

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
