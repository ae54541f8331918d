package fold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestEndedPodsAreLeftOut has a VMI whose pods of earlier moves were left behind, as before KubeVirt v1.9. A window has none of them until something is said of one: kubectl
// drain evicts what it finds on a node, a pod that had ended long ago as well, and this is no eviction of the guest that has come back to that node.
func TestEndedPodsAreLeftOut(t *testing.T) {
	t.Parallel()
	launcher, late := func(n int) string { return fmt.Sprintf("launcher-%d", n) }, time.Date(2026, 3, 22, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name string
		said tracker.Observation // of the pod of the first stay
	}{
		{"evicted", tracker.RequestObservation{
			Seen: tracker.Seen{At: late.Add(time.Minute)}, Source: trail.SourceAudit, ID: "a1", Stage: "ResponseComplete", Action: trail.ActionEvict,
			Namespace: "shop", Name: launcher(1), AskedAt: late.Add(time.Minute), Detail: trail.RequestDetail{User: "anna", Code: 201, Status: "Success"},
		}},
		{"gone", tracker.PodObservation{
			Seen: tracker.Seen{At: late.Add(time.Minute), Gone: true},
			Meta: tracker.Meta{UID: launcher(1), Namespace: "shop", Name: launcher(1), ResourceVersion: "900"},
			VMI:  "db", VMIUID: "u1", Node: "n1", Phase: "Succeeded",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules, begin := trail.DefaultThresholds(), late.Add(-20*24*time.Hour)
			tr, m, version := tracker.New("c1"), newMemory(trail.DefaultThresholds()), 100
			c := New(m, 1<<20)
			var recorded []trail.Fact
			meta := func(uid, name string) tracker.Meta {
				version++
				return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version), CreatedAt: begin}
			}
			fold := func(all ...tracker.Observation) {
				var facts []trail.Fact
				for _, o := range all {
					facts = append(facts, tr.Observe(o)...)
				}
				recorded = append(recorded, facts...)
				now := all[len(all)-1].SeenAt()
				changes, err := c.Fold(t.Context(), Batch{Now: now, Thresholds: rules, Dirty: m.recordFacts(facts), Others: 5, Nodes: 5})
				require.NoError(t, err)
				m.applyChanges(changes)
				require.Equal(t, deriveExpectedRows(t, recorded, rules, now), m.encodeRows())
			}
			vmi := func(at time.Time, node, mark string) tracker.Observation {
				return tracker.VMIObservation{Seen: tracker.Seen{At: at}, Meta: meta("u1", "db"), Node: node, Phase: "Running", Strategy: "LiveMigrate", Mark: mark}
			}
			pod := func(at time.Time, n int, node, phase string) tracker.Observation {
				return tracker.PodObservation{Seen: tracker.Seen{At: at}, Meta: meta(launcher(n), launcher(n)), VMI: "db", VMIUID: "u1", Node: node, Phase: phase}
			}
			for n, node := range []string{"n1", "n2", "n1"} {
				at := begin.Add(time.Duration(n) * time.Hour)
				moved := []tracker.Observation{pod(at, n+1, node, "Running"), vmi(at.Add(time.Second), node, "")}
				if n > 0 {
					moved = append(moved, pod(at.Add(2*time.Second), n, node, "Succeeded"))
				}
				fold(moved...)
			}
			c.Reset()
			fold(vmi(late, "n1", "n1"))
			w := c.windows[trail.VMISubject("shop", "db")]
			knows := func(w *Window) bool {
				return slices.ContainsFunc(w.Facts, func(f trail.Fact) bool { return f.Object.UID == launcher(1) })
			}
			require.False(t, knows(w), "the pod of the first stay")
			fold(test.said)
			fold(vmi(late.Add(2*time.Minute), "n1", ""))
			require.True(t, knows(c.windows[w.Subject]))
		})
	}
}
