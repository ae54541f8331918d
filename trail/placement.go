package trail

import "time"

// How a guest came to a node or left it, where no migration's UID says so.
const (
	ArrivedStart   = "start"   // the VM was started there
	ArrivedUnknown = "unknown" // nothing seen says how
	LeftEnd        = "end"     // the VMI ended there
)

// Placement is a stay of a guest on a node.
type Placement struct {
	ID        FactID    `json:"placement_id"`
	Namespace string    `json:"namespace"`
	VMI       string    `json:"vmi"`
	VMIUID    string    `json:"vmi_uid"`
	Node      string    `json:"node"`
	FromAt    time.Time `json:"from_at"`
	ToAt      time.Time `json:"to_at,omitzero"`    // zero while the guest is there
	ArrivedBy string    `json:"arrived_by"`        // a migration's UID, ArrivedStart or ArrivedUnknown
	LeftBy    string    `json:"left_by,omitempty"` // a migration's UID, LeftEnd or ArrivedUnknown; empty while it is there
	SeenLate  bool      `json:"seen_late"`
}

// placementsOf gives the stays of one VMI: at most one of them, the last, has no end.
func placementsOf(l *life) []Placement {
	var out []Placement
	for _, f := range l.facts {
		if f.Kind != KindVMIPlaced {
			continue
		}
		by := ArrivedUnknown
		if d, ok := f.Detail.(*VMIDetail); ok && d.MigrationUID != "" {
			by = d.MigrationUID
		} else if f.Reason == ReasonStarted {
			by = ArrivedStart
		}
		if n := len(out); n > 0 {
			out[n-1].ToAt, out[n-1].LeftBy = f.OccurredAt, by
		}
		out = append(out, Placement{
			ID: f.ID, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid,
			Node: f.Node, FromAt: f.OccurredAt, ArrivedBy: by, SeenLate: f.Late,
		})
	}
	if n := len(out); n > 0 && !l.endedAt.IsZero() {
		out[n-1].ToAt, out[n-1].LeftBy = l.endedAt, LeftEnd
	}
	return out
}

// nodeAt gives the node on which the guest ran at a time; before the first stay that is known, the first.
func (l *life) nodeAt(at time.Time) string {
	node := ""
	for _, p := range l.placements {
		if node == "" || !p.FromAt.After(at) {
			node = p.Node
		}
	}
	return node
}
