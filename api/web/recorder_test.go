package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

func TestBanner(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	seen := func(cluster string, ago time.Duration) trail.RecorderStatus {
		return trail.ClusterSigns{Cluster: cluster, AliveAt: now.Add(-ago), LastEventAt: now.Add(-ago)}.Status(now)
	}
	played := trail.ClusterSigns{Cluster: "old", AliveAt: now.AddDate(0, 0, -3), Replayed: true}.Status(now)
	well, late, stopped := seen("a", 3*time.Second), seen("b", 5*time.Minute), seen("c", 68*time.Hour)
	for _, c := range []struct {
		name, cluster string
		all           []trail.RecorderStatus
		class         string
		headline      string
		troubled      int
		live, certain bool
	}{
		{"one that records", "", []trail.RecorderStatus{well}, "good", "Recording; last event 3 s ago", 0, true, true},
		{"one that stopped", "", []trail.RecorderStatus{stopped}, "bad", "Last event 2 d 20 h ago; recorder stopped 2 d 20 h ago", 0, false, false},
		{"one that may have stopped", "", []trail.RecorderStatus{late}, "warn", "Last event 5 min 0 s ago; recorder stopped 5 min 0 s ago", 0, true, false},
		{"a recording", "", []trail.RecorderStatus{played}, "past", "Recording of 18 Nov 2026, replayed", 0, false, true},
		{"of several, one that is chosen", "a", []trail.RecorderStatus{well, late, stopped}, "good", "Recording; last event 3 s ago", 0, true, true},
		{"several", "", []trail.RecorderStatus{well, late, stopped}, "bad", "2 of 3 clusters are not fully recorded:", 2, true, false},
		{"several, one in trouble", "", []trail.RecorderStatus{well, stopped, played}, "bad", "1 of 3 clusters is not fully recorded:", 1, true, false},
		{"several that record", "", []trail.RecorderStatus{well, seen("d", time.Second), played}, "good", "Recording 2 clusters; last event 1 s ago", 0, true, true},
		{"recordings alone", "", []trail.RecorderStatus{played, played}, "past", "2 recordings, replayed", 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bannerOf(c.all, c.cluster)
			require.Equal(t, c.class, b.Class)
			require.Equal(t, c.headline, b.Headline)
			require.Len(t, b.Troubled, c.troubled)
			require.Equal(t, c.live, b.Live)
			require.Equal(t, c.certain, b.Certain)
		})
	}
	require.Nil(t, bannerOf(nil, ""))
	require.Nil(t, bannerOf([]trail.RecorderStatus{well}, "other"))
	require.False(t, frame{}.Certain(), "nothing is known")
}

func TestCount(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, "<b>0</b>", renderCount(0, true))
	require.EqualValues(t, "<b>3</b>", renderCount(3, false))
	require.EqualValues(t, `<b title="not known">?</b>`, renderCount(0, false))
}
