package read_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// goRound returns the facts of two VMs that the descheduler moves round n1, n2 and n3, one half a turn behind the other, with a move
// every half hour, and the time of the last.
func goRound() (facts []trail.Fact, last time.Time) {
	tr, version := tracker.New("c1"), 0
	meta := func(name string) tracker.Meta {
		version++
		return tracker.Meta{
			UID: "uid-" + name, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version), CreatedAt: storetest.Start,
		}
	}
	vmi := func(name string, at time.Time, node, mark string, state *tracker.MigrationState) {
		o := tracker.VMIObservation{
			Meta: meta(name), Seen: tracker.Seen{At: at}, Node: node, Phase: "Running", Strategy: "LiveMigrate", Mark: mark, State: state,
		}
		if mark != "" {
			o.EvictionSource = "descheduler"
		}
		facts = append(facts, tr.Observe(o)...)
	}
	last = storetest.Start
	for _, node := range []string{"n1", "n2", "n3"} {
		o := tracker.NodeObservation{Meta: meta(node), Seen: tracker.Seen{At: last, Listed: true}}
		facts = append(facts, tr.Observe(o)...)
	}
	on := map[string]int{"a": 0, "b": 0}
	nodes := []string{"n1", "n2", "n3"}
	for vm := range on {
		vmi(vm, last, "n1", "", nil)
	}
	for i, vm := range []string{"b", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a"} {
		at, uid := last.Add(30*time.Minute), fmt.Sprint("move-", i)
		from, to := nodes[on[vm]], nodes[(on[vm]+1)%3]
		done := tracker.MigrationState{
			UID: "uid-" + uid, SourceNode: from, TargetNode: to, StartedAt: at.Add(-30 * time.Second), EndedAt: at, Completed: true,
		}
		vmi(vm, at.Add(-time.Minute), from, from, nil)
		move := func(phase string, began time.Time) {
			facts = append(facts, tr.Observe(tracker.MigrationObservation{
				Meta: meta(uid), Seen: tracker.Seen{At: began}, VMI: vm, Evacuation: true, EvacuationNode: from, Phase: phase,
				PhaseTimes: []trail.PhaseTime{{Phase: phase, At: began}},
			})...)
		}
		move(trail.PhaseScheduling, at.Add(-50*time.Second))
		move(trail.PhaseRunning, at.Add(-30*time.Second))
		vmi(vm, at, to, "", &done)
		move(trail.PhaseSucceeded, at.Add(time.Second))
		on[vm], last = (on[vm]+1)%3, at
	}
	return facts, last.Add(time.Second)
}

// TestLoopsAtEachOfTheirNodes asks each node of a circle for its loops: lists, counts and answers, as of now and of a moment before,
// have the oscillation, which is of the node whose name comes first, and lists the ping-pongs of the VMs, too. A node beside has none.
func TestLoopsAtEachOfTheirNodes(t *testing.T) {
	t.Parallel()
	facts, last := goRound()
	s := storetest.New(t)
	storetest.Record(t, s, facts)
	all := trail.DeriveAll(facts, trail.DefaultThresholds(), last)
	require.Len(t, all.LoopsAt("n1"), 1)
	require.Equal(t, []string{"n1", "n2", "n3"}, all.LoopsAt("n1")[0].Nodes)
	for _, node := range []string{"n1", "n2", "n3"} {
		kinds := map[trail.LoopKind]int{}
		page, err := s.ListJSON(t.Context(), trail.ViewLoops, trail.Query{Node: node})
		require.NoError(t, err)
		for _, raw := range page.Rows {
			var l trail.Loop
			require.NoError(t, json.Unmarshal(raw, &l))
			require.ElementsMatch(t, []string{"n1", "n2", "n3"}, l.Nodes)
			kinds[l.Kind]++
		}
		require.Equal(t, map[trail.LoopKind]int{trail.LoopOscillation: 1, trail.LoopPingPong: 2}, kinds, node)
		sum, err := s.Nodes(t.Context(), trail.NodeQuery{Name: node, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, 3, sum[0].Loops, node)
		for _, at := range []time.Time{{}, last.Add(-20 * time.Minute)} {
			q := trail.Question{Of: trail.Subject{Kind: trail.SubjectNode, Name: node}, At: at}
			c, err := s.Ask(t.Context(), q)
			require.NoError(t, err)
			want := all
			if !at.IsZero() {
				want = trail.DeriveAll(factsUntil(facts, at), trail.DefaultThresholds(), at)
			}
			got := c.LoopsAt(node)
			require.Len(t, got, 1, "%s at %s", node, at)
			got[0].OpenedAt = got[0].OpenedAt.UTC()
			require.Equal(t, want.LoopsAt(node), got, "%s at %s", node, at)
			require.Contains(t, c.WhyNode(node).Paragraph, "in a circle, from n1 to n2 and back to n1 from n3", "%s at %s", node, at)
			require.Contains(t, c.WhyNotNode(node).Paragraph, "in a circle", "%s at %s", node, at)
		}
	}
	page, err := s.ListJSON(t.Context(), trail.ViewLoops, trail.Query{Node: "n4"})
	require.NoError(t, err)
	require.Empty(t, page.Rows)
}

// factsUntil returns the facts that were there at a time.
func factsUntil(facts []trail.Fact, at time.Time) (out []trail.Fact) {
	for _, f := range facts {
		if !f.ObservedAt.After(at) {
			out = append(out, f)
		}
	}
	return out
}
