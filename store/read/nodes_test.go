package read_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestNodes counts what is on nodes, what is to leave them and what fails, for who sees all and for who sees one namespace.
func TestNodes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 3))
	require.NoError(t, err)
	tr, at := tracker.New("c1"), storetest.Start.Add(time.Hour)
	meta := func(namespace, name, version string) tracker.Meta {
		return tracker.Meta{UID: "uid-" + name, Namespace: namespace, Name: name, ResourceVersion: version, CreatedAt: at}
	}
	facts := tr.Observe(tracker.NodeObservation{Meta: meta("", "n3", "900"), Seen: tracker.Seen{At: at, Listed: true}})
	for _, o := range []tracker.Observation{
		tracker.VMIObservation{Meta: meta("bank", "ledger", "901"), Seen: tracker.Seen{At: at}, Node: "n1", Phase: "Running"},
		tracker.VMIObservation{Meta: meta("bank", "ledger", "902"), Seen: tracker.Seen{At: at.Add(time.Second)}, Node: "n1", Phase: "Running", Mark: "n1", Strategy: "LiveMigrate"},
		tracker.MigrationObservation{
			Meta: meta("bank", "evac", "903"), Seen: tracker.Seen{At: at.Add(3 * time.Second)}, VMI: "ledger", Evacuation: true, EvacuationNode: "n1", Phase: trail.PhaseFailed,
			PhaseTimes: []trail.PhaseTime{{Phase: trail.PhasePending, At: at.Add(2 * time.Second)}, {Phase: trail.PhaseFailed, At: at.Add(3 * time.Second)}},
		},
	} {
		facts = append(facts, tr.Observe(o)...)
	}
	_, err = s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)

	n1 := trail.NodeSummary{Cluster: "c1", Node: "n1", VMs: 1, Leaving: 1, Stuck: 1}
	n2 := trail.NodeSummary{Cluster: "c1", Node: "n2", VMs: 3}
	for _, c := range []struct {
		name  string
		scope trail.Scope
		query trail.NodeQuery
		want  []trail.NodeSummary
	}{
		{"worst first", trail.Everything(), trail.NodeQuery{Order: trail.NodesByTrouble, Limit: 10}, []trail.NodeSummary{n1, n2}},
		{"most VMs first", trail.Everything(), trail.NodeQuery{Order: trail.NodesByVMs, Limit: 10}, []trail.NodeSummary{n2, n1}},
		{"one by name", trail.Everything(), trail.NodeQuery{Order: trail.NodesByName, Name: "2", Limit: 10}, []trail.NodeSummary{n2}},
		{"the first", trail.Everything(), trail.NodeQuery{Order: trail.NodesByName, Limit: 1}, []trail.NodeSummary{n1}},
		{"another cluster", trail.Everything(), trail.NodeQuery{Cluster: "c2", Limit: 10}, []trail.NodeSummary{}},
		{"a tenant", trail.Only("c1", "shop"), trail.NodeQuery{Order: trail.NodesByTrouble, Limit: 10}, []trail.NodeSummary{n2, {Cluster: "c1", Node: "n1"}}},
		{"a tenant elsewhere", trail.Only("c1", "bank"), trail.NodeQuery{Order: trail.NodesByTrouble, Limit: 10}, []trail.NodeSummary{n1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := s.SeenBy(c.scope).Nodes(t.Context(), c.query)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	found, _, err := s.Find(t.Context(), "c1", "ledger")
	require.NoError(t, err)
	require.Equal(t, []trail.Found{{Cluster: "c1", Kind: trail.FoundVM, Namespace: "bank", Name: "ledger", Node: "n1", State: trail.VMStuck}}, found)
}
