package nodesim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSilentNodes: a node that is down changes none of its pods, no VMI that runs there, and none that is on its way there.
func TestSilentNodes(t *testing.T) {
	t.Parallel()
	v := parseVMI(t, handedOver)
	target := v.Status.Migration.TargetNode
	require.Equal(t, []string{v.Status.NodeName, target}, v.handledBy())
	s := &Simulator{nodes: map[string]*node{v.Status.NodeName: {}, target: {}}}
	require.False(t, s.hasDownNode(v.handledBy()...))
	require.Error(t, s.SetNodeDown("nowhere", true))
	require.NoError(t, s.SetNodeDown(target, true))
	require.True(t, s.hasDownNode(target))
	require.True(t, s.hasDownNode(v.handledBy()...))
	require.False(t, s.hasDownNode(v.Status.NodeName))
	v.Status.Migration = nil
	require.False(t, s.hasDownNode(v.handledBy()...), "it only runs beside")
	require.NoError(t, s.SetNodeDown(target, false))
	require.False(t, s.hasDownNode(target))
}
