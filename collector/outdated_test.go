package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestUpdatesOfWorkloadsAreRead decodes how KubeVirt brings VMs to a new version, and the label of those that are to be brought there.
func TestUpdatesOfWorkloadsAreRead(t *testing.T) {
	t.Parallel()
	for interval, want := range map[string]*trail.Span{`"1m30s"`: new(trail.Span(90 * time.Second)), `"soon"`: nil, `null`: nil} {
		o, err := Decode("kubevirts", []byte(`{"metadata":{"name":"kubevirt","uid":"kv","resourceVersion":"7"},"spec":{"workloadUpdateStrategy":
			{"workloadUpdateMethods":["LiveMigrate","Evict"],"batchEvictionSize":3,"batchEvictionInterval":`+interval+`}},"status":{"observedKubeVirtVersion":"v1.8.4"}}`))
		require.NoError(t, err)
		require.Equal(t, trail.KubeVirtSettings{
			Version: "v1.8.4", WorkloadUpdateMethods: []string{"LiveMigrate", "Evict"}, BatchEvictionSize: new(int64(3)), BatchEvictionInterval: want,
		}, o(tracker.Seen{}).(tracker.KubeVirtObservation).Settings, interval)
	}
	for labels, want := range map[string]bool{`{"kubevirt.io/outdatedLauncherImage":""}`: true, `{"app":"db"}`: false, `null`: false} {
		o, err := Decode("virtualmachineinstances", []byte(`{"metadata":{"name":"db","namespace":"shop","uid":"v1","resourceVersion":"7","labels":`+labels+`}}`))
		require.NoError(t, err)
		require.Equal(t, want, o(tracker.Seen{}).(tracker.VMIObservation).Outdated, labels)
	}
}
