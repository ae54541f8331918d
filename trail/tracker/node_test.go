package tracker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestLabelsOfNodes records the labels of a node when they were first seen, when they change and when they go, and not when nothing changed.
func TestLabelsOfNodes(t *testing.T) {
	t.Parallel()
	tr, at := tracker.New("c1"), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	zone := func(version, name string) []trail.Fact {
		at = at.Add(time.Minute)
		o := tracker.NodeObservation{Seen: tracker.Seen{At: at}, Meta: tracker.Meta{UID: "n", Name: "worker-1", ResourceVersion: version}}
		if name != "" {
			o.Labels = map[string]string{"topology.kubernetes.io/zone": name}
		}
		return tr.Observe(o)
	}
	require.Empty(t, zone("1", ""), "nothing to say of a node without labels")
	for i, name := range []string{"a", "b", ""} {
		got := zone(string(rune('2'+2*i)), name)
		require.Len(t, got, 1)
		require.Equal(t, trail.KindNodeLabels, got[0].Kind)
		require.Equal(t, "worker-1", got[0].Node)
		require.Equal(t, at, got[0].OccurredAt)
		require.Equal(t, name, got[0].Detail.(*trail.LabelsDetail).Zone)
		require.Empty(t, zone(string(rune('3'+2*i)), name), "the same labels")
	}
}
