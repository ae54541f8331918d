package trail

import (
	"cmp"
	"strings"
	"time"
)

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
	ToAt      time.Time `json:"to_at,omitzero"`     // zero while the guest is there
	ArrivedBy string    `json:"arrived_by"`         // a migration's UID, ArrivedStart or ArrivedUnknown
	LeftBy    string    `json:"left_by,omitempty"`  // a migration's UID, LeftEnd or ArrivedUnknown; empty while it is there
	EndedBy   Ending    `json:"ended_by,omitempty"` // why the guest ended there; empty unless LeftBy is LeftEnd
	SeenLate  bool      `json:"seen_late"`

	EndedRequester      string         `json:"ended_requester,omitempty"`       // user name of who began what the platform did; empty where nobody did, or where unknown
	EndedRequesterClass RequesterClass `json:"ended_requester_class,omitempty"` // empty where nobody asked for it, or where unknown
	EndedDetail         string         `json:"ended_detail,omitempty"`          // the taint, the reason that was stated, Kubernetes' message, or the migration

	Strategy           string    `json:"strategy,omitempty"`            // spec.evictionStrategy, as last seen there
	NotMigratable      string    `json:"not_migratable,omitempty"`      // why it cannot be live-migrated, at the end of the stay; empty where it can
	NotMigratableSince time.Time `json:"not_migratable_since,omitzero"` // since when
	OutdatedSince      time.Time `json:"outdated_since,omitzero"`       // since when its virt-launcher is outdated, at the end of the stay; zero where it is not
	OptedOut           bool      `json:"opted_out"`                     // the pod asks the descheduler to leave it alone
	TerminatingSince   time.Time `json:"terminating_since,omitzero"`    // since when its pod is being deleted while the guest is there; zero where it is not

	seenAt time.Time // our time of the arrival
}

// placementsOf returns the stays of one VMI, in the order in which its object had them: at most one of them, the last, has no end. Their times are of
// several clocks, which may be apart: no stay begins before the one before it, or ends before it began.
func placementsOf(l *life, migrations []*migration, facts []Fact) []Placement {
	var out []Placement
	epoch := Epoch(0)      // of the last stay
	var outdated time.Time // since when the virt-launcher is; a guest that moved is labelled until KubeVirt looks at its new one
	for _, f := range l.facts {
		if f.Kind == KindLauncherOutdated {
			outdated = f.OccurredAt
		}
		if f.Kind == KindLauncherCurrent {
			outdated = time.Time{}
		}
		if f.Kind != KindVMIPlaced {
			if n := len(out); n > 0 && out[n-1].Node == f.Node {
				out[n-1].OutdatedSince = outdated
			}
			continue
		}
		before := epoch
		epoch = EpochOf(f.Object.ResourceVersion)
		if n := len(out); n > 0 && out[n-1].Node == f.Node && epoch > before { // it was found where it had been
			continue
		}
		by, at := ArrivedUnknown, findArrivalTime(f, migrations)
		if d, ok := f.Detail.(*VMIDetail); ok && d.MigrationUID != "" {
			by = d.MigrationUID
		} else if f.Reason == ReasonStarted {
			by = ArrivedStart
		}
		if n := len(out); n > 0 {
			at = maxTime(at, out[n-1].FromAt)
			out[n-1].ToAt, out[n-1].LeftBy = at, by
		}
		out = append(out, Placement{
			ID: f.ID, Namespace: l.namespace, VMI: l.vmi, VMIUID: l.uid,
			Node: f.Node, FromAt: at, ArrivedBy: by, SeenLate: f.Late, OutdatedSince: outdated, seenAt: f.ObservedAt,
		})
	}
	if n := len(out); n > 0 && !l.endedAt.IsZero() {
		out[n-1].ToAt, out[n-1].LeftBy = maxTime(l.endedAt, out[n-1].FromAt), LeftEnd
	}
	for i := range out {
		out[i].fillEndState(l, facts)
	}
	return out
}

// fillEndState says what the VMI was like at the end of a stay.
func (p *Placement) fillEndState(l *life, facts []Fact) {
	for _, f := range facts {
		if f.Reason == ReasonPreferNoEviction && f.VMIUID == l.uid && f.Node == p.Node && (p.ToAt.IsZero() || !f.OccurredAt.After(p.ToAt)) {
			p.OptedOut = f.Kind == KindAnnotationSet
		}
	}
	for _, f := range l.facts {
		if !p.ToAt.IsZero() && f.OccurredAt.After(p.ToAt) {
			continue
		}
		switch d := f.Detail.(type) {
		case *MarkDetail:
			p.Strategy = cmp.Or(d.Strategy, p.Strategy)
		case *VMIDetail:
			p.Strategy = cmp.Or(d.Strategy, p.Strategy)
		case *ConditionDetail:
			if d.Type == ConditionLiveMigratable {
				p.NotMigratable, p.NotMigratableSince = "", time.Time{}
				if d.Status != "" {
					p.NotMigratable, p.NotMigratableSince = strings.TrimSpace(d.Reason+" "+d.Message), f.OccurredAt
				}
			}
		}
	}
}

// arrivalMigrationUID returns the UID of the migration that brought the guest, empty where none did or none is known.
func (p Placement) arrivalMigrationUID() string {
	if p.ArrivedBy == ArrivedStart || p.ArrivedBy == ArrivedUnknown {
		return ""
	}
	return p.ArrivedBy
}

// findArrivalTime returns the time at which a guest came to a node. An arrival that a list showed is older than its sight: then
// the end of the migration that brought it, as virt-controller stamped it, is nearer, or, where that migration was
// never seen, its end as the source node stamped it.
func findArrivalTime(f Fact, migrations []*migration) time.Time {
	d, ok := f.Detail.(*VMIDetail)
	if !ok || !f.Late || d.MigrationUID == "" {
		return f.OccurredAt
	}
	best := d.MigrationEnd
	for _, m := range migrations {
		if m.UID == d.MigrationUID {
			best = m.FinishedAt
		}
	}
	if best.IsZero() || best.After(f.OccurredAt) {
		return f.OccurredAt
	}
	return best
}

// nodeAt returns the node on which the guest ran at a time; before the first stay that is known, the first.
func (l *life) nodeAt(at time.Time) string {
	node := ""
	for _, p := range l.placements {
		if node == "" || !p.FromAt.After(at) {
			node = p.Node
		}
	}
	return node
}

// newEnding returns how the stay ended with its guest.
func (p *Placement) newEnding() ending {
	return ending{cause: p.EndedBy, requester: p.EndedRequester, class: p.EndedRequesterClass, detail: p.EndedDetail, node: p.Node, strategy: p.Strategy}
}

// endPlacements says why each guest that ended did.
func endPlacements(lives []*life, sources *endingSources) {
	for _, l := range lives {
		n := len(l.placements)
		for _, f := range l.facts {
			if f.Kind != KindVMIEnded || EpochOf(f.Object.ResourceVersion) < l.epoch {
				continue
			}
			if l.ending.cause == "" || l.ending.cause == EndingDeleted {
				l.ending = endingOf(l, f, sources)
			}
			if n > 0 {
				p, e := &l.placements[n-1], l.ending
				p.EndedBy, p.EndedRequester, p.EndedRequesterClass, p.EndedDetail = e.cause, e.requester, e.class, e.detail
			}
		}
	}
}
