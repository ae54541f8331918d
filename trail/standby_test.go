package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestOldestStandby looks for the one that is furthest behind of those that answered.
func TestOldestStandby(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 40, 0, 0, time.UTC)
	status := func(used bool, behind time.Duration) trail.RecorderStatus {
		return trail.RecorderStatus{Standby: &trail.StandbySigns{Used: used, AsOf: at.Add(-behind), LagSeconds: behind.Seconds()}}
	}
	primary := trail.RecorderStatus{}
	require.Nil(t, trail.OldestStandby(nil))
	require.Empty(t, trail.OldestStandby(nil).Notice())
	require.Nil(t, trail.OldestStandby([]trail.RecorderStatus{primary, status(false, time.Hour)}), "the primary answered")
	oldest := trail.OldestStandby([]trail.RecorderStatus{primary, status(true, time.Second), status(true, time.Minute), status(false, time.Hour), status(true, 0)})
	require.Equal(t, at.Add(-time.Minute), oldest.AsOf)
}
