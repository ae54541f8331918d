package trail_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestKindsAreClosed holds that every reason that a story's fact has is listed for its kind, with a sentence.
func TestKindsAreClosed(t *testing.T) {
	t.Parallel()
	listed := map[trail.Kind]map[trail.Reason]bool{}
	for _, k := range trail.Kinds() {
		require.NotEmpty(t, k.Text, k.Kind)
		listed[k.Kind] = map[trail.Reason]bool{}
		for _, r := range k.Reasons {
			require.NotEmpty(t, r.Text, r.Reason)
			listed[k.Kind][r.Reason] = true
		}
	}
	for _, s := range readStories(t) {
		for _, f := range s.observeFacts() {
			require.True(t, listed[f.Kind][f.Reason], "%s/%s", f.Kind, f.Reason)
			require.NotEmpty(t, f.Evidence, "%s/%s", f.Kind, f.Reason)
		}
	}
}
