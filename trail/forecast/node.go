package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// HistoryLength is how far back a forecast looks.
const HistoryLength = 30 * 24 * time.Hour

// Rows are the derived rows that a forecast needs; more of them do no harm.
type Rows struct {
	Placements  []*trail.Placement       // that go on
	Evacuations []*trail.Evacuation      // that are open
	Requests    []*trail.EvictionRequest // of the last hour for VMs of the node
	Migrations  []*trail.Migration       // that go on, and those of the last HistoryLength
}

// RefusalLasts is how long a refusal by a PodDisruptionBudget is taken to hold.
const RefusalLasts = time.Hour

// NewNode returns a node as rows show it at a time. The order of the rows does not matter.
func NewNode(cluster, node string, at time.Time, settings trail.KubeVirtSettings, rows Rows) Node {
	n := Node{Cluster: cluster, Name: node, At: at}
	n.PerCluster, n.PerNode = settings.ParallelLimits()
	guests := map[string]*Guest{}
	for _, p := range rows.Placements {
		if p.Node == node && p.ToAt.IsZero() {
			n.Guests = append(n.Guests, Guest{Namespace: p.Namespace, VMI: p.VMI, VMIUID: p.VMIUID, Strategy: p.Strategy, NotMigratable: p.NotMigratable})
		}
	}
	slices.SortFunc(n.Guests, func(a, b Guest) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.VMI, b.VMI), cmp.Compare(a.VMIUID, b.VMIUID))
	})
	for i := range n.Guests {
		guests[n.Guests[i].VMIUID] = &n.Guests[i]
	}
	for _, e := range rows.Evacuations {
		if g := guests[e.VMIUID]; g != nil && e.EndedAt.IsZero() && e.Node == node {
			g.Marked, g.Failed, g.RetryAt, g.Outlook, g.OutlookBecause = true, e.FailedAttempts, e.NextRetryAt, e.Outlook, e.OutlookBecause
		}
	}
	n.addRefusals(guests, rows.Requests)
	n.addMigrations(guests, rows.Migrations)
	slices.SortFunc(n.Others, time.Time.Compare)
	return n
}

// addRefusals notes which guests a budget keeps where they are: the last answer counts.
func (n *Node) addRefusals(guests map[string]*Guest, requests []*trail.EvictionRequest) {
	last := map[string]time.Time{}
	for _, r := range requests {
		g := guests[r.VMIUID]
		if g == nil || r.DryRun || r.RequestedAt.Before(last[r.VMIUID]) || n.At.Sub(r.RequestedAt) > RefusalLasts {
			continue
		}
		last[r.VMIUID], g.RefusedAt, g.RefusedText = r.RequestedAt, time.Time{}, ""
		if r.Answer == trail.AnswerPDB {
			g.RefusedAt, g.RefusedText = r.RequestedAt, r.AnswerText
		}
	}
}

// addMigrations notes those that are under way, and what became of those that ended.
func (n *Node) addMigrations(guests map[string]*Guest, migrations []*trail.Migration) {
	next := map[trail.FactID]*trail.Migration{} // of each evacuation, the attempt after the one looked at
	migrations = slices.Clone(migrations)
	slices.SortFunc(migrations, func(a, b *trail.Migration) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for _, m := range migrations {
		var after *trail.Migration
		if m.EvacuationID != nil {
			after, next[*m.EvacuationID] = next[*m.EvacuationID], m
		}
		switch {
		case m.SchedulingAt.IsZero():
		case m.Outcome == "" && m.FinishedAt.IsZero():
			if g := guests[m.VMIUID]; g != nil && m.SourceNode == n.Name {
				g.MovingSince = m.SchedulingAt
			} else {
				n.Others = append(n.Others, m.SchedulingAt)
			}
		case m.Outcome == trail.OutcomeSucceeded, m.Outcome == trail.OutcomeFailed:
			a := Attempt{Namespace: m.Namespace, VMI: m.VMI, Took: m.FinishedAt.Sub(m.SchedulingAt), Failed: m.Outcome == trail.OutcomeFailed}
			if a.Failed && after != nil {
				a.Retried = after.CreatedAt.Sub(m.FinishedAt)
			}
			n.History = append(n.History, a)
		}
	}
}
